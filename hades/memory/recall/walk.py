"""Walking memory from topic to topic along the edges that are true for a reader.

The index of this process knows them all; where there is none, the store is asked once a hop.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import pyarrow as pa

from hades.memory.history import rows as records
from hades.memory.history.names import EDGES, LATEST, key_of, state_id, topic_of_key
from hades.memory.history.reader import Reader
from hades.memory.recall.edge_index import Bond
from hades.memory.recall.index_holder import index_of
from hades.memory.recall.read_states import model_of
from hades.memory.recall.standing import ALWAYS, Standing, to_micros
from hades.memory.recall.state_index import StateIndex
from hades.ports.store import Direction
from hades.telemetry.turn import Caps, Turn
from schemas.memory import LatestState
from schemas.plan import Reason

FANOUT = 1_000  # edges of one version, heaviest first
VERSIONS = 1_000  # of one topic, newest first
_DIGITS = 8
_LINK_WORK = 20_000  # versions and edges looked at to count links; topics beyond it count as joined to nothing


@dataclass(frozen=True)
class Step:
    """A version that was reached, how strongly, and the keys of the edges that lead there."""

    state: str
    strength: float
    way: tuple[str, ...]


def count_links(reader: Reader, topics: Sequence[str]) -> dict[str, int]:
    """How many edges that are true for a reader join each of these topics, by its key, to others."""
    turn = Turn(Caps(docs_max=0, work_max=_LINK_WORK, latency_ms=float("inf")))
    with turn.stage("links"):
        walk = Walk(reader, None, turn)
        walk.widen(topics, 1)
        return {topic: walk.degree(topic) for topic in topics}


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
        self._bonds: dict[str, list[Bond]] = {}  # by topic key

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

    def degree(self, topic: str) -> int:
        """How many edges of a topic were read."""
        return len(self._best(topic))

    def _best(self, topic: str) -> list[Bond]:
        return self._bonds.get(topic, [])

    def _read(self, topics: Sequence[str]) -> None:
        """The edges of some topics; as many topics as the work that is left allows."""
        with index_of(self._reader.rows, model_of(self._reader)) as index:
            if index is not None:
                self._look_up(index, topics)
                return
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

    def _look_up(self, index: StateIndex, topics: Sequence[str]) -> None:
        """The edges of some topics from the index of this process."""
        standing = Standing.of(self._reader.mask, self._reader.now)
        for topic in topics:
            most = min(FANOUT, self._turn.work_left)
            if most < 1:
                self._turn.trimmed(Reason.CAP_EXCEEDED)
                return
            bonds = index.edges.bonds(topic, standing, self._types)
            self._turn.worked(min(most, len(bonds)), capped=len(bonds) > most)
            self._keep(topic, bonds[:most])

    def _ask(self, nodes: Sequence[str]) -> None:
        """The edges of some versions from the store, one question."""
        fanout = min(FANOUT, max(1, self._turn.work_left // len(nodes)))
        table = self._reader.rows.neighbours(
            nodes, edges=EDGES, direction=Direction.ANY, types=self._types, fanout=fanout, mask=self._reader.edges
        )
        self._turn.worked(table.num_rows)
        found: dict[str, list[Bond]] = {topic_of_key(key_of(node)): [] for node in nodes}
        began = self._began(table) if self._newest is not None else {}
        for row in table.to_pylist():
            topic, other = topic_of_key(key_of(row["node"])), key_of(row["neighbour"])
            if topic_of_key(other) != topic:  # the trace tells of those between its versions
                strength = 1.0 if row["weight"] is None else float(row["weight"])
                kind = row["type"], row["outbound"]
                found[topic].append(Bond(other, row["edge"], strength, kind, began.get(row["edge"], ALWAYS)))
        for topic, bonds in found.items():
            self._keep(topic, sorted(bonds, key=lambda bond: (-bond.strength, bond.edge)))

    def _keep(self, topic: str, bonds: Sequence[Bond]) -> None:
        """Those that are strong enough; where asked, of each relation only the last few."""
        strong = [bond for bond in bonds if bond.strength >= self._weakest]
        self.weaker += len(bonds) - len(strong)
        if self._newest is not None and len(strong) > self._newest:
            last = self._latest_of_each_kind(strong)
            strong = [bond for bond in strong if bond.edge in last]
        self._bonds[topic] = strong

    def _began(self, edges: pa.Table) -> dict[str, int]:
        """When edges became true, in microseconds since 1970; one read for all."""
        wanted = sorted(set(edges.column("edge").to_pylist()))
        table = self._reader.rows.get(EDGES, wanted, columns=["valid_from"])
        pairs = zip(table.column("_key").to_pylist(), table.column("valid_from").to_pylist(), strict=True)
        return {key: to_micros(moment) for key, moment in pairs if moment is not None}

    def _latest_of_each_kind(self, bonds: Sequence[Bond]) -> set[str]:
        """Of each relation, each way, the edges that became true last."""
        kinds: dict[tuple[str, bool], list[Bond]] = {}
        for bond in sorted(bonds, key=lambda bond: (bond.began, bond.edge), reverse=True):
            kinds.setdefault(bond.kind, []).append(bond)
        return {bond.edge for some in kinds.values() for bond in some[: self._newest]}


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
