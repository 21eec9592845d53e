"""Learning from use: importance from what people say, judge and read; trust in sources from decided conflicts.

    useful    importance + (1 - importance) / 4
    useless   importance - importance / 4
    n reads   importance + (0.75 - importance) * (1 - 2^(-n / 16)), where that is more

Reading raises the importance to 0.75 at most: what is shown often is not shown ever more often for it. Importance holds
up the strength of a state, which search and context rank by (`recall.strength`). A source is trusted as its newest
state under `source/` says; deciding a conflict moves it towards the share of conflicts that it won.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

import pyarrow as pa

from hades.memory.history.checks import check_share
from hades.memory.history.conflicts import DEFAULT_TRUST
from hades.memory.history.current import named
from hades.memory.history.names import STATES, MemoryRefused, topic_key
from hades.memory.history.ratings import set_importance
from hades.memory.history.states import by_keys
from hades.memory.history.transactions import in_unit
from hades.memory.recall.accesses import take_accesses
from hades.memory.service import Memory
from hades.ports.store import RowStore
from schemas.memory import MemoryState

SOURCES = "source/"
_SAID = 4  # decided conflicts that what a person said of a source counts as
_STEP = 0.25
_MOST_BY_READING = 0.75
_HALF_READS = 16
_ACCESSED = pa.schema(
    [
        ("_key", pa.string()),
        ("access_count", pa.int64()),
        ("last_accessed", pa.timestamp("us", tz="UTC")),
        ("importance_score", pa.float64()),
    ]
)


@dataclass(frozen=True)
class LearningReport:
    """What counting the readings did."""

    reads: int
    states: int
    raised: int  # states that became more important

    def as_dict(self) -> dict[str, Any]:
        """The report as JSON."""
        return asdict(self)


def rate_state(
    memory: Memory,
    name: str,
    *,
    importance: float | None = None,
    is_useful: bool | None = None,
    who: str = "",
    why: str = "",
) -> MemoryState:
    """Set the importance of what holds of a topic, or of a version, or move it by a judgement; undo restores it."""
    if (importance is None) == (is_useful is None):
        raise MemoryRefused(f"say either how important {name!r} is or whether it was useful, one of the two")

    def work(rows: RowStore) -> MemoryState:
        act = memory.act(who, why)
        state = named(rows, name, act.at)
        before = state.importance_score
        after = check_share("importance", importance) if importance is not None else _judgement(before, bool(is_useful))
        set_importance(rows, state, after, act)
        act.keep(rows)
        return state.model_copy(update={"importance_score": after})

    return in_unit(memory.store, work)


def judge_states(
    memory: Memory, good: Sequence[str], bad: Sequence[str], *, who: str = "", why: str = ""
) -> list[MemoryState]:
    """Move the importance of states that an answer showed; those that are gone since are left out."""
    judged = [*((one, True) for one in good), *((one, False) for one in bad)]
    known = {state.key for state in memory.states([one for one, _ in judged])}
    keys = [(one.rpartition("/")[2], is_useful) for one, is_useful in judged]
    return [rate_state(memory, key, is_useful=is_useful, who=who, why=why) for key, is_useful in keys if key in known]


def count_accesses(memory: Memory) -> LearningReport:
    """Count what was read since the last time into the states, and raise their importance by it."""
    taken = take_accesses(memory.home)
    if not taken.counts:
        return LearningReport(0, 0, 0)

    def work(rows: RowStore) -> LearningReport:
        found = by_keys(rows, sorted(taken.counts))
        read = [_read(state, taken.counts[state.key]) for state in found]
        table = [
            {**row, "last_accessed": max(filter(None, (state.last_accessed, taken.last[state.key])))}
            for state, row in zip(found, read, strict=True)
        ]
        if table:
            rows.patch(STATES, pa.Table.from_pylist(table, schema=_ACCESSED))
        raised = sum(row["importance_score"] > state.importance_score for state, row in zip(found, read, strict=True))
        return LearningReport(sum(taken.counts.values()), len(found), raised)

    return in_unit(memory.store, work)


def trust_source(memory: Memory, source: str, trust: float, *, who: str = "", why: str = "") -> MemoryState:
    """Say how far a source is trusted, 0 to 1: the next version of the topic `source/NAME`."""
    if not source.strip():
        raise MemoryRefused("the source has no name; name it as facts do in `source`")
    share = check_share("trust", trust)
    told = f"The source {source} is trusted {share:.2f}."
    return memory.add(f"{SOURCES}{source}", told, metadata={"trust": share}, who=who, why=why)


def known_trust(memory: Memory) -> dict[str, float]:
    """How far each source is trusted, of those that somebody spoke about."""
    topics = memory.topics(SOURCES)
    states = memory.reader().current([topic_key(topic) for topic in topics])
    told = {state.topic.removeprefix(SOURCES): state.metadata.get("trust") for state in states}
    return {source: float(value) for source, value in told.items() if isinstance(value, int | float)}


def learn_trust(memory: Memory, winner: str, loser: str, *, who: str = "") -> None:
    """Move the trust in two sources after a person decided between their facts."""
    for source, won in ((winner, 1), (loser, 0)):
        if not source.strip() or winner == loser:
            continue
        state = memory.latest(f"{SOURCES}{source}")
        known = dict(state.metadata) if state else {}
        said = known.get("said", known.get("trust", DEFAULT_TRUST))
        decided, wins = known.get("decided", 0) + 1, known.get("won", 0) + won
        share = round((wins + _SAID * said) / (decided + _SAID), 4)
        told = f"The source {source} is trusted {share:.2f}: it won {wins} of {decided} decided conflicts."
        learned = {"trust": share, "said": said, "decided": decided, "won": wins}
        memory.add(f"{SOURCES}{source}", told, metadata=learned, who=who, why="a conflict was decided")


def _judgement(importance: float, is_useful: bool) -> float:
    moved = importance + (1 - importance) * _STEP if is_useful else importance - importance * _STEP
    return round(moved, 6)


def _read(state: MemoryState, reads: int) -> dict[str, Any]:
    room = max(0.0, _MOST_BY_READING - state.importance_score)
    importance = round(state.importance_score + room * (1 - 2 ** (-reads / _HALF_READS)), 6)
    return {"_key": state.key, "access_count": state.access_count + reads, "importance_score": importance}
