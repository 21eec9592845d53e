"""Walking memory from topic to topic along the edges that are true for a reader; one read a hop."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from hades.memory.history import rows as records
from hades.memory.history.names import EDGES, LATEST, key_of, state_id, topic_of_key
from hades.memory.history.reader import Reader
from hades.ports.store import Direction
from hades.telemetry.turn import Turn
from schemas.memory import LatestState
from schemas.plan import Reason

FANOUT = 1_000  # edges of one version, heaviest first
VERSIONS = 1_000  # of one topic, newest first
_DIGITS = 8


@dataclass(frozen=True)
class Step:
    """A version that was reached, how strongly, and the keys of the edges that lead there."""

    state: str
    strength: float
    way: tuple[str, ...]


@dataclass(frozen=True)
class _Bond:
    state: str  # the version at the other end
    edge: str
    strength: float
    kind: tuple[str, bool]  # relation, and whether it leads away


class Walk:
    """What was read of the graph so far; widened hop by hop, inside the budget of a turn."""

    def __init__(
        self,
        reader: Reader,
        types: Sequence[str] | None,
        turn: Turn,
        *,
        per_hop: int | None = None,
        weakest: float = 0.0,
        newest: int | None = None,
    ) -> None:
        self.weaker = 0
        self._reader, self._types, self._turn = reader, types, turn
        self._per_hop, self._weakest, self._newest = per_hop, weakest, newest
        self._bonds: dict[str, list[_Bond]] = {}  # by topic key

    def widen(self, topics: Iterable[str], depth: int) -> None:
        """Read the edges of these topics and of what they lead to."""
        frontier = list(dict.fromkeys(topics))
        for _ in range(depth):
            self._read([topic for topic in frontier if topic not in self._bonds])
            ends = (topic_of_key(bond.state) for topic in frontier for bond in self._best(topic))
            frontier = [topic for topic in dict.fromkeys(ends) if topic not in self._bonds]
            if not frontier:
                return

    def reached(self, start: str, depth: int) -> list[Step]:
        """The versions within reach of a topic, each by its strongest way; strongest first, then by key."""
        best: dict[str, Step] = {}
        frontier: list[tuple[str, float, tuple[str, ...]]] = [(start, 1.0, ())]
        for _ in range(depth):
            met: dict[str, Step] = {}
            for topic, strength, way in frontier:
                for bond in self._best(topic):
                    step = Step(bond.state, strength * bond.strength, (*way, bond.edge))
                    if topic_of_key(bond.state) != start and _better(step, met.get(bond.state)):
                        met[bond.state] = step
            fresh = [step for step in met.values() if _better(step, best.get(step.state))]
            fresh = sorted(fresh, key=lambda step: (-step.strength, step.state))[: self._per_hop]
            best |= {step.state: step for step in fresh}
            frontier = _topics(fresh)
        return sorted(best.values(), key=lambda step: (-step.strength, step.state))

    def _best(self, topic: str) -> list[_Bond]:
        return self._bonds.get(topic, [])

    def _read(self, topics: Sequence[str]) -> None:
        """The edges of some topics, one question to the store; as many topics as the work that is left allows."""
        pointers = records.fetch(self._reader.rows, LATEST, sorted(topics), LatestState)
        nodes: list[str] = []
        for topic in topics:
            newest = pointers[topic].version if topic in pointers else 0
            first = max(1, newest - VERSIONS + 1)
            if 2 * (newest - first + 1) + len(nodes) > self._turn.work_left:  # each version, and an edge of each
                self._turn.trimmed(Reason.CAP_EXCEEDED)
                break
            self._turn.worked(newest - first + 1, capped=first > 1)
            self._bonds[topic] = []
            nodes += [state_id(f"{topic}_{version:0{_DIGITS}d}") for version in range(first, newest + 1)]
        if nodes:
            self._ask(nodes)

    def _ask(self, nodes: Sequence[str]) -> None:
        fanout = min(FANOUT, max(1, self._turn.work_left // len(nodes)))
        table = self._reader.rows.neighbours(
            nodes, edges=EDGES, direction=Direction.ANY, types=self._types, fanout=fanout, mask=self._reader.edges
        )
        self._turn.worked(table.num_rows)
        for row in table.to_pylist():
            topic, other = topic_of_key(key_of(row["node"])), key_of(row["neighbour"])
            if topic_of_key(other) == topic:
                continue  # the trace says the same
            strength = 1.0 if row["weight"] is None else float(row["weight"])
            if strength < self._weakest:
                self.weaker += 1
                continue
            self._bonds[topic].append(_Bond(other, row["edge"], strength, (row["type"], row["outbound"])))
        for topic in {topic_of_key(key_of(node)) for node in nodes}:
            bonds = self._bonds[topic] if self._newest is None else self._latest_of_each_kind(self._bonds[topic])
            self._bonds[topic] = sorted(bonds, key=lambda bond: (-bond.strength, bond.edge))

    def _latest_of_each_kind(self, bonds: Sequence[_Bond]) -> list[_Bond]:
        """Of each relation, each way, the edges that became true last."""
        table = self._reader.rows.get(EDGES, sorted({bond.edge for bond in bonds}), columns=["valid_from"])
        began = dict(zip(table.column("_key").to_pylist(), table.column("valid_from").to_pylist(), strict=True))
        kinds: dict[tuple[str, bool], list[_Bond]] = {}
        for bond in sorted(bonds, key=lambda bond: (began[bond.edge], bond.edge), reverse=True):
            kinds.setdefault(bond.kind, []).append(bond)
        return [bond for some in kinds.values() for bond in some[: self._newest]]


def _better(step: Step, other: Step | None) -> bool:
    if other is None:
        return True
    return (-step.strength, len(step.way), step.way) < (-other.strength, len(other.way), other.way)


def _topics(steps: Sequence[Step]) -> list[tuple[str, float, tuple[str, ...]]]:
    """The topics that were reached, each by its strongest step."""
    first: dict[str, tuple[str, float, tuple[str, ...]]] = {}
    for step in steps:
        topic = topic_of_key(step.state)
        first.setdefault(topic, (topic, step.strength, step.way))
    return list(first.values())
