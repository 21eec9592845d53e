"""Which AQL variables are visible where: FOR and COLLECT open scopes, subqueries nest, nothing may be shadowed."""

from dataclasses import dataclass, field

from tests.arango_double.errors import aql_error

_BASES = ("main", "subquery")


@dataclass(slots=True)
class _Scope:
    kind: str
    names: dict[str, None] = field(default_factory=dict)


class Scopes:
    """The stack of scopes while parsing, and the stack of iterators that CURRENT may mean."""

    def __init__(self) -> None:
        self._stack = [_Scope("main")]
        self._currents: list[str] = []
        self._counter = 0

    def open(self, kind: str) -> None:
        self._stack.append(_Scope(kind))

    def close_subquery(self) -> None:
        self.end_nested()
        self._stack.pop()

    def end_nested(self) -> None:
        """Leave every FOR and COLLECT scope of the current query."""
        while self._stack[-1].kind not in _BASES:
            self._stack.pop()

    def kind(self) -> str:
        return self._stack[-1].kind

    def declare(self, name: str) -> None:
        """Make a user variable visible; a visible name may not be declared twice."""
        if name.startswith("_"):
            aql_error(1510, f"variable name '{name}' has an invalid format")
        if self._find(name):
            aql_error(1511, f"variable '{name}' is assigned multiple times")
        self._stack[-1].names[name] = None

    def declare_special(self, name: str) -> None:
        """OLD and NEW: kept under `$OLD` and `$NEW`, may be declared again."""
        self._stack[-1].names["$" + name] = None

    def admit(self, name: str) -> None:
        """Make a name visible that was declared (and checked) in a scope now closed."""
        self._stack[-1].names[name] = None

    def resolve(self, name: str) -> str | None:
        """The variable that `name` means here, or None when it can only be a collection."""
        if self._find(name):
            return name
        if name in ("CURRENT", "$CURRENT") and self._currents:
            return self._currents[-1]
        return None

    def push_current(self) -> str:
        """A fresh iterator variable that CURRENT refers to until it is popped."""
        self._counter += 1
        name = f"${self._counter}"
        self._currents.append(name)
        return name

    def pop_current(self) -> None:
        self._currents.pop()

    def hide_currents(self) -> list[str]:
        """A subquery runs before the expression around it, so CURRENT means nothing inside; returns what to restore."""
        hidden, self._currents = self._currents, []
        return hidden

    def restore_currents(self, hidden: list[str]) -> None:
        self._currents = hidden

    def nest_names(self) -> list[str]:
        """Variables of the current query that a COLLECT is about to hide."""
        names: list[str] = []
        for scope in reversed(self._stack):
            if scope.kind in _BASES:
                break
            names = [*scope.names, *names]
        return names

    def outer_names(self) -> list[str]:
        """Variables that stay visible after a COLLECT in the current query."""
        names: list[str] = []
        seen_base = False
        for scope in reversed(self._stack):
            seen_base = seen_base or scope.kind in _BASES
            if seen_base:
                names = [*scope.names, *names]
        return names

    def _find(self, name: str) -> bool:
        return any(name in scope.names for scope in self._stack)
