"""Which index a FOR loop over a collection would use for the FILTERs that follow it."""

from dataclasses import dataclass

from tests.arango_double import syntax
from tests.arango_double.documents import Collection
from tests.arango_double.indexes import Buckets, Index
from tests.arango_double.operators import attribute_path
from tests.arango_double.syntax import Node, Statement
from tests.arango_double.values import Value

_FLIPPED = {"==": "==", "<": ">", ">": "<", "<=": ">=", ">=": "<="}
_VOLATILE = ("RAND", "NOOPT", "NOEVAL", "SLEEP")


@dataclass(frozen=True, slots=True)
class Wish:
    """A FILTER condition that an index could answer: `field operator expression`."""

    field: str
    operator: str
    value: Node


@dataclass(frozen=True, slots=True)
class Choice:
    """An index and the conditions it answers; `buckets` is None for the primary index."""

    index: Index
    buckets: Buckets | None
    wishes: list[Wish]


def wishes_for(variable: str, following: list[Statement], binds: dict[str, Value]) -> list[Wish]:
    """Conditions on `variable` in the FILTERs right after its FOR."""
    hidden = {variable}
    found: list[Wish] = []
    for statement in following:
        if isinstance(statement, syntax.Let):
            hidden.add(statement.variable)
        elif isinstance(statement, syntax.Filter):
            for part in _conjuncts(statement.condition):
                wish = _wish(part, variable, binds)
                if wish is not None and _is_known_before(wish.value, hidden):
                    found.append(wish)
        else:
            break
    return found


def choose(collection: Collection, wishes: list[Wish], hint: str | None = None) -> Choice | None:
    """The best index for the wishes, or None for a full scan."""
    best: Choice | None = None
    score = 0.0
    for index in collection.indexes.values():
        choice = _primary(index, wishes) if index.type == "primary" else _secondary(index, wishes)
        if choice is None:
            continue
        points = len(choice.wishes) + (10 if index.type == "primary" else 0) + 0.5 * index.unique
        points += 100 * (index.name == hint)
        if points > score:
            best, score = choice, points
    return best


def _primary(index: Index, wishes: list[Wish]) -> Choice | None:
    for wish in wishes:
        if wish.field in ("_key", "_id") and wish.operator in ("==", "IN"):
            return Choice(index, None, [wish])
    return None


def _secondary(index: Index, wishes: list[Wish]) -> Choice | None:
    best: Choice | None = None
    for buckets in index.buckets:
        used: list[Wish] = []
        for name in buckets.fields:
            fitting = [wish for wish in wishes if wish.field == name]
            exact = next((wish for wish in fitting if wish.operator == "=="), None)
            if exact is not None:
                used.append(exact)
                continue
            used.extend(wish for wish in fitting if wish.operator == "IN" or not index.sparse)
            break
        if used and (best is None or len(used) > len(best.wishes)):
            best = Choice(index, buckets, used)
    return best


def _conjuncts(node: Node) -> list[Node]:
    if isinstance(node, syntax.Binary) and node.operator == "AND":
        return _conjuncts(node.left) + _conjuncts(node.right)
    return [node]


def _wish(node: Node, variable: str, binds: dict[str, Value]) -> Wish | None:
    if not isinstance(node, syntax.Binary):
        return None
    left, right = _path(node.left, variable, binds), _path(node.right, variable, binds)
    if node.operator == "IN":
        if left is not None:
            return Wish(left, "IN", node.right)
        return Wish(right + "[*]", "==", node.left) if right is not None else None
    if node.operator not in _FLIPPED:
        return None
    if left is not None:
        return Wish(left, node.operator, node.right)
    return Wish(right, _FLIPPED[node.operator], node.left) if right is not None else None


def _path(node: Node, variable: str, binds: dict[str, Value]) -> str | None:
    if isinstance(node, syntax.Expansion) and isinstance(node.item, syntax.Ref) and node.condition is None:
        node = node.base
    return attribute_path(node, variable, binds)


def _is_known_before(node: Node, hidden: set[str]) -> bool:
    for part in syntax.walk(node):
        if isinstance(part, syntax.Ref) and part.name in hidden:
            return False
        if isinstance(part, syntax.Subquery) or (isinstance(part, syntax.Call) and part.name in _VOLATILE):
            return False
    return True
