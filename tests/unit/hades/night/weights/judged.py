"""Logs of judged answers over the small graph: two paths and two passages, of which one is
preferred.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from itertools import count

from hades.night.weights.feedback import is_held_out
from hades.ports.store import RowStore
from schemas.ids import edge_key, sha256_text
from schemas.record import to_table
from schemas.telemetry import Feedback, JudgedRanks, QueryLog, ShownPassage, ShownPath, ShownResults
from tests.contract.examples import put
from tests.unit.hades.night.weights.graphs import mention

SHARE = 0.2
BEGAN = datetime(2026, 1, 1, tzinfo=UTC)


def path_of(*edges: tuple[str, str, str]) -> tuple[str, ...]:
    """Ids of relations, each given as tail, type and head."""
    return tuple(
        f"relations/{edge_key(f'entities/{a}', kind, f'entities/{b}')}" for a, kind, b in edges
    )


AB = path_of(("a", "cites", "b"))
AD = path_of(("a", "cites", "d"))


def questions(held_out: int, teaching: int) -> list[str]:
    """So many questions that only test, and so many that teach."""
    asked = (f"question {number}" for number in count())
    tests, lessons = [], []
    while len(tests) < held_out or len(lessons) < teaching:
        one = next(asked)
        (tests if is_held_out(one, SHARE) else lessons).append(one)
    return tests[:held_out] + lessons[:teaching]


def log(
    question: str,
    *,
    paths: Sequence[tuple[str, ...]] = (AB, AD),
    passages: Sequence[str] = (),
    good: JudgedRanks = JudgedRanks(),
    bad: JudgedRanks = JudgedRanks(),
    minutes: int = 0,
) -> QueryLog:
    """One turn; without a judgement it was merely shown."""
    at = BEGAN + timedelta(minutes=minutes)
    shown = ShownResults(
        paths=tuple(
            ShownPath(rank=rank, score=1.0, reliability=1.0, origin="beam", nodes=(), edges=edges)
            for rank, edges in enumerate(paths, 1)
        ),
        passages=tuple(
            ShownPassage(rank=rank, score=1.0, id=one) for rank, one in enumerate(passages, 1)
        ),
    )
    said = Feedback(good=good, bad=bad, at=at).model_dump(mode="json") if good != bad else {}
    return QueryLog(
        key=f"q_{sha256_text(question)[:16]}_{minutes}",
        query=question,
        recipe="hipporag",
        snapshot="g1",
        at=at,
        results=shown.model_dump(mode="json"),
        feedback=said,
    )


def preferring(rank: int, asked: Sequence[str], *, first_minute: int = 0) -> list[QueryLog]:
    """A turn a question, in which the path at this rank was called good."""
    return [
        log(question, good=JudgedRanks(paths=(rank,)), minutes=first_minute + place)
        for place, question in enumerate(asked)
    ]


def put_logs(store: RowStore, logs: Sequence[QueryLog]) -> None:
    """Keep them."""
    store.upsert("query_logs", to_table(QueryLog, logs))


def put_second_chunk(store: RowStore) -> None:
    """Another passage, which names c and d."""
    text = "c and d"
    body = {
        "text": text,
        "span": [0, len(text)],
        "chunk_index": 1,
        "token_count": 3,
        "sha256": sha256_text(text),
    }
    put(store, "doc_chunks", {"_key": "c2", "document": "documents/doc", **body})
    put(store, "mentions", mention("c2", "c", 1, [0]), mention("c2", "d", 1, [6]))
