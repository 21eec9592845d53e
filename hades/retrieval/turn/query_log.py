"""`query_logs`: what each turn showed and with which probability, so that it can be audited and learned from."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Any

import orjson

from hades.errors import HadesError
from schemas.retrieval import Retrieval
from schemas.telemetry import Feedback, JudgedRanks, QueryLog, ShownPassage, ShownPath, ShownResults, ShownTopic

if TYPE_CHECKING:  # the store port loads pyarrow, which a question does not need before it is logged
    from hades.ports.store import RowStore

QUERY_LOGS = "query_logs"


class UnknownQuery(HadesError):
    """A query id that no log has, or a rank that its answer did not."""


def log_of(retrieval: Retrieval, at: datetime) -> QueryLog:
    """The row of an answered question. Texts are left out: ids lead to them."""
    return QueryLog(
        key=retrieval.query_id,
        query=retrieval.query,
        recipe=retrieval.recipe,
        snapshot=retrieval.snapshot,
        at=at,
        reasons=tuple(str(reason) for reason in retrieval.reasons),
        plan=retrieval.plan.model_dump(mode="json"),
        results=_results_of(retrieval).model_dump(mode="json"),
        telemetry=retrieval.telemetry.model_dump(mode="json"),
        conveyance=retrieval.conveyance.model_dump(mode="json"),
    )


def write_log(store: RowStore, log: QueryLog) -> None:
    """Keep the row."""
    from schemas.columns import to_table

    store.upsert(QUERY_LOGS, to_table(QueryLog, [log]))


def read_log(store: RowStore, query_id: str) -> QueryLog:
    """The row of a query, or `UnknownQuery`."""
    from schemas.arrays import read_rows

    rows = read_rows(store.get(QUERY_LOGS, [query_id]))
    if not rows:
        raise UnknownQuery(f"no query has the id {query_id!r}; `hades query` prints the id of each answer")
    return _log(rows[0])


def judge(
    store: RowStore,
    query_id: str,
    *,
    good: JudgedRanks = JudgedRanks(),
    bad: JudgedRanks = JudgedRanks(),
    at: datetime,
) -> Feedback:
    """Add a judgement to a query's log; a later word about the same rank replaces the earlier one."""
    import pyarrow as pa

    from schemas.record import canonical_json

    log = read_log(store, query_id)
    results = ShownResults.model_validate(log.results)
    shown = {"paths": len(results.paths), "passages": len(results.passages)}
    for judged in (good, bad):
        _check_ranks(query_id, judged, shown)
    before = Feedback.model_validate(log.feedback) if log.feedback else Feedback(at=at)
    feedback = Feedback(good=_add(before.good, good, bad), bad=_add(before.bad, bad, good), at=at)
    text = canonical_json(feedback.model_dump(mode="json"))
    store.patch(QUERY_LOGS, pa.table({"_key": [query_id], "feedback": [text]}))
    return feedback


def _results_of(retrieval: Retrieval) -> ShownResults:
    return ShownResults(
        paths=tuple(
            ShownPath(
                rank=path.rank,
                score=path.score,
                reliability=path.reliability,
                origin=path.origin,
                why=path.why,
                nodes=tuple(node.id for node in path.nodes),
                edges=tuple(edge.id for edge in path.edges),
                propensity=path.propensity,
            )
            for path in retrieval.paths
        ),
        passages=tuple(
            ShownPassage(
                rank=passage.rank,
                score=passage.score,
                id=passage.id,
                tiers=passage.tiers,
                propensity=passage.propensity,
            )
            for passage in retrieval.passages
        ),
        hierarchy=tuple(ShownTopic(id=topic.id, level=topic.level) for topic in retrieval.hierarchy),
        as_of=retrieval.as_of,
        known_at=retrieval.known_at,
    )


def _log(row: dict[str, Any]) -> QueryLog:
    parsed = {name: orjson.loads(row[name]) for name in ("plan", "results", "telemetry", "conveyance", "feedback")}
    return QueryLog.model_validate({**row, **parsed})


def _check_ranks(query_id: str, judged: JudgedRanks, shown: dict[str, int]) -> None:
    for what, count in shown.items():
        ranks: Sequence[int] = getattr(judged, what)
        for rank in ranks:
            if not 1 <= rank <= count:
                raise UnknownQuery(
                    f"{query_id} has no {what.removesuffix('s')} {rank}; it showed {count} {what}, counted from 1"
                )


def _add(before: JudgedRanks, now: JudgedRanks, against: JudgedRanks) -> JudgedRanks:
    return JudgedRanks(
        paths=tuple(sorted((set(before.paths) - set(against.paths)) | set(now.paths))),
        passages=tuple(sorted((set(before.passages) - set(against.passages)) | set(now.passages))),
    )
