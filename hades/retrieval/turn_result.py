"""The Retrieval of a turn; query_logs."""

from __future__ import annotations

import atexit
import logging
import queue
import threading
from collections import OrderedDict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from functools import cached_property
from operator import attrgetter
from typing import Any, TypeVar

import pyarrow as pa

from hades.budget import Turn, TurnStage
from hades.errors import HadesError, StoreError
from hades.ports.graph import DocumentFilter
from hades.ports.store import RowStore
from hades.retrieval.answer.absence_certificate import written_filters
from hades.retrieval.answer.assemble import AnswerParts
from hades.retrieval.answer.prompt import PackedPrompt, WindowSize
from hades.retrieval.core.conveyance import ConveyanceParts, convey
from hades.retrieval.core.types import (
    MODES,
    PASSAGE,
    CandidateGraph,
    FoundPassage,
    FoundPath,
    Recipe,
    Seed,
)
from hades.retrieval.core.words import content_words, passage_body, stem
from hades.retrieval.ranking.select import FlowPruning
from schemas.answer import CitedPassage, Path, RankedItem, Retrieval, StageReport, Telemetry, Tokens
from schemas.ids import Mask, content_key, iso
from schemas.plan import Plan
from schemas.record import canonical_json, from_rows, to_table
from schemas.telemetry import (
    Feedback,
    JudgedRanks,
    QueryLog,
    ShownPassage,
    ShownPath,
    ShownResults,
    ShownTopic,
)


@dataclass(frozen=True)
class AskedQuestion:
    """What was asked, of whom, and when; `at` is for its id.

    `near` are ids of documents or nodes that the question is asked from. With `only`, passages and
    remembered states of what it selects are shown, and paths whose every vertex belongs to it. With
    `pruning`, paths that carry less flow than its threshold are dropped and the rest is ordered by
    it. With a `window`, the prompt is that of specification 000: the question and the paths that
    fit the reader's context window. `level` asks for a ranking of files or symbols beside the
    passages. `anyway` shows evidence that is too weak to answer from; the reason and the doubt
    stay.
    """

    text: str
    recipe: Recipe
    plan: Plan
    mask: Mask
    at: datetime
    near: tuple[str, ...] = ()
    level: str = PASSAGE
    only: DocumentFilter | None = None
    max_paths: int | None = None
    mode: str = MODES[0]
    pruning: FlowPruning | None = None
    window: WindowSize | None = None
    anyway: bool = False

    @property
    def is_limited(self) -> bool:
        """Whether some of the graph is left out: by a filter, or for its date."""
        return self.only is not None or not self.mask.is_open


@dataclass(frozen=True)
class TurnResult:
    """What the turn came to, in numbers and in words."""

    question: str
    seeds: Sequence[Seed]
    candidates: CandidateGraph | None
    paths: Sequence[FoundPath]
    passages: Sequence[FoundPassage]
    shown: AnswerParts
    packed: PackedPrompt
    bridges: int = 0

    @cached_property
    def words(self) -> tuple[int, int]:
        """How many content words of the question the answer speaks of, and how many it has."""
        path_texts = " ".join(path.text for path in self.shown.paths)
        question_stems = set(map(stem, content_words(self.question)))
        answer_stems = set(map(stem, content_words(path_texts)))

        for passage in self.shown.passages:
            answer_stems |= passage_body(passage.title, passage.text).content_stems

        return len(question_stems & answer_stems), len(question_stems)


def report(
    question: AskedQuestion,
    turn: Turn,
    snapshot: str,
    turn_result: TurnResult,
    ranking: tuple[RankedItem, ...] = (),
    **judged: Any,
) -> Retrieval:
    """The answer in the shape that programs know; `judged` are `why`, `confidence`, `excluded`,
    `absence` and `changes`.
    """
    packed = turn_result.packed
    shown = number_results(turn_result.shown, packed)
    offered = len(shown.paths) + len(shown.passages)
    in_prompt = len(packed.paths) + len(packed.passages)
    room = question.plan.final_context
    measured = ConveyanceParts(
        words=turn_result.words,
        cited=(shown.cited, shown.facts),
        fitted=(in_prompt, min(offered, room)),
        ms=turn.ms,
        evidence=(offered, room),
        seeds=(_seeds_shown(turn_result), len(turn_result.seeds)),
        stages=turn.stages,
        reach=[path.reliability for path in shown.paths],
    )
    filters = written_filters(question.only)

    if question.near:
        filters = filters | {"near": list(question.near)}

    return Retrieval(
        **judged,
        query_id=query_id_of(question, snapshot),
        query=question.text,
        recipe=question.recipe.name,
        plan=question.plan,
        level=question.level,
        filters=filters,
        snapshot=snapshot,
        as_of=question.mask.as_of,
        known_at=question.mask.known_at,
        reasons=tuple(turn.reasons),
        paths=shown.paths,
        passages=shown.passages,
        hierarchy=shown.topics,
        prompt=packed.prompt,
        tokens=Tokens(**packed.tokens),
        telemetry=telemetry_of(turn, _counters(turn_result)),
        conveyance=convey(measured),
        ranking=ranking,
    )


Result = TypeVar("Result", Path, CitedPassage)


def number_results(shown: AnswerParts, packed: PackedPrompt) -> AnswerParts:
    """The parts of the answer with the numbers that the prompt gives them, and whether it holds
    them.
    """
    paths = tuple(_number(shown.paths, 0, packed.paths))
    passages = tuple(_number(shown.passages, len(paths), packed.passages))
    return replace(
        shown,
        paths=paths,
        passages=passages,
    )


def _number(
    results: Sequence[Result],
    preceding: int,
    in_prompt: Sequence[Result],
) -> Iterator[Result]:
    ranks = set(map(attrgetter("rank"), in_prompt))
    for result in results:
        place = {
            "number": preceding + result.rank,
            "in_prompt": result.rank in ranks,
        }
        yield result.model_copy(update=place)


def query_id_of(question: AskedQuestion, snapshot: str) -> str:
    """The id of this question at this moment: the same question asked again later is another
    turn.
    """
    moments = (question.mask.as_of, question.mask.known_at)

    mask = []
    for moment in moments:
        mask.append("" if moment is None else iso(moment))

    plan = question.plan.model_dump_json()
    return content_key(
        "q",
        snapshot,
        question.recipe.name,
        question.text,
        plan,
        *mask,
        iso(question.at),
        *question.near,
    )


def telemetry_of(turn: Turn, counters: dict[str, int]) -> Telemetry:
    """The account of the turn, stage by stage."""
    stages = tuple(_stage_report(stage) for stage in turn.stages)
    more = {
        "round_trips": turn.round_trips,
        "approximate_searches": turn.approximate_searches,
    }
    counters = counters | {name: count for name, count in more.items() if count}
    return Telemetry(
        reads=turn.reads_spent,
        ms=round(turn.ms, 3),
        loading_ms=round(turn.loading_ms, 3),
        stages=stages,
        work=turn.work_spent,
        counters=counters,
    )


def _stage_report(stage: TurnStage) -> StageReport:
    spent = {}
    for name, value in vars(stage).items():
        if name != "repeats":
            spent[name] = value

    spent |= {
        "ms": round(stage.ms, 3),
        "coverage": min(1.0, stage.coverage),
    }
    if stage.taken:
        repeated = stage.repeats / stage.taken
    else:
        repeated = 0.0

    return StageReport(
        **spent,
        dedupe_rate=repeated,
        reads_stage=spent["reads"],
        latency_stage=spent["ms"],
        coverage_score=spent["coverage"],
        flags={name: spent[name] for name in ("capped", "early_stop")},
    )


def _counters(turn_result: TurnResult) -> dict[str, int]:
    """The counters of requirement C67."""
    if turn_result.candidates is None:
        candidates = 0
    else:
        candidates = len(turn_result.candidates.nodes)

    on_paths = _nodes_of(turn_result.paths)
    return {
        "candidates": candidates,
        "discarded_nodes": max(0, candidates - len(on_paths)),
        "kept_paths": len(turn_result.shown.paths),
        "prompt_tokens": turn_result.packed.tokens["prompt"],
        "bridges": turn_result.bridges,
        "verified_spans": turn_result.shown.verified,
        "trimmed_in_prompt": turn_result.packed.trimmed,
    }


def _seeds_shown(turn_result: TurnResult) -> int:
    """Seeds that the answer still speaks of: on a path, or shown as a passage."""
    shown = _nodes_of(turn_result.paths[: len(turn_result.shown.paths)])
    shown |= {passage.node for passage in turn_result.passages[: len(turn_result.shown.passages)]}
    return sum(seed.node in shown for seed in turn_result.seeds)


def _nodes_of(paths: Sequence[FoundPath]) -> set[int]:
    return set().union(*(path.nodes for path in paths))


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
    store.upsert(QUERY_LOGS, to_table(QueryLog, [log]))


def read_log(store: RowStore, query_id: str) -> QueryLog:
    """The row of a query, or `UnknownQuery`."""
    rows = store.get(QUERY_LOGS, [query_id]).to_pylist()
    if not rows:
        raise UnknownQuery(
            f"no query has the id {query_id!r}; `hades query` prints the id of each answer"
        )

    return from_rows(QueryLog, rows)[0]


def judge(
    store: RowStore,
    query_id: str,
    *,
    good: JudgedRanks = JudgedRanks(),
    bad: JudgedRanks = JudgedRanks(),
    at: datetime,
) -> Feedback:
    """Add a judgement to a query's log; a later word about the same rank replaces the earlier
    one.
    """
    log = read_log(store, query_id)
    results = ShownResults.model_validate(log.results)
    shown = {
        "paths": len(results.paths),
        "passages": len(results.passages),
    }

    for judged in (good, bad):
        _check_ranks(query_id, judged, shown)

    if log.feedback:
        previous = Feedback.model_validate(log.feedback)
    else:
        previous = Feedback(at=at)

    feedback = Feedback(
        good=_add(previous.good, good, bad),
        bad=_add(previous.bad, bad, good),
        at=at,
    )
    text = canonical_json(feedback.model_dump(mode="json"))
    store.patch(
        QUERY_LOGS,
        pa.table(
            {
                "_key": [query_id],
                "feedback": [text],
            }
        ),
    )
    return feedback


def _results_of(retrieval: Retrieval) -> ShownResults:
    plain = {*ShownPath.model_fields} - {"nodes", "edges"}
    paths = []
    for path in retrieval.paths:
        nodes = [node.id for node in path.nodes]
        edges = [edge.id for edge in path.edges]
        paths.append(path.model_dump(include=plain) | {"nodes": nodes, "edges": edges})

    passages = [
        passage.model_dump(include={*ShownPassage.model_fields}) for passage in retrieval.passages
    ]
    topics = []
    for topic in retrieval.hierarchy:
        topics.append(topic.model_dump(include={*ShownTopic.model_fields}))

    return ShownResults.model_validate(
        {
            "paths": paths,
            "passages": passages,
            "hierarchy": topics,
            "as_of": retrieval.as_of,
            "known_at": retrieval.known_at,
            "filters": retrieval.filters,
        }
    )


def _check_ranks(
    query_id: str,
    judged: JudgedRanks,
    shown: dict[str, int],
) -> None:
    for result_type, count in shown.items():
        for rank in getattr(judged, result_type):
            if not 1 <= rank <= count:
                raise UnknownQuery(
                    f"{query_id} has no {result_type.removesuffix('s')} {rank}; it showed "
                    f"{count} {result_type}, counted from 1"
                )


def _add(
    previous: JudgedRanks,
    judged: JudgedRanks,
    opposite: JudgedRanks,
) -> JudgedRanks:
    ranks = {}
    for name in ("paths", "passages"):
        standing = set(getattr(previous, name)) - set(getattr(opposite, name))
        ranks[name] = sorted(standing | set(getattr(judged, name)))

    return JudgedRanks.model_validate(ranks)


# Turns that were answered, kept so that they can be explained and judged. Who may write puts them
# into `query_logs` from one thread, many rows to a transaction: no question waits for the store.
# Who may only read keeps the last turns in memory and writes nothing. Closing, and the end of the
# process, write what is left.
logger = logging.getLogger(__name__)
_REMEMBERED = 2000
_WAITING = 10_000
_BATCH = 256
_LOOK_S = 0.1  # between two looks whether the writer is still there


class TurnLog:
    """Remembers turns; with a `writable` store, also keeps them there.

    Where the store falls far behind, a service drops turns and counts them; with `may_drop=False`
    the next turn waits.
    """

    def __init__(
        self,
        readable: RowStore,
        writable: RowStore | None = None,
        *,
        may_drop: bool = True,
    ) -> None:
        self._readable = readable
        self._writable = writable
        self._may_drop = may_drop
        self._recent: OrderedDict[str, QueryLog] = OrderedDict()
        self._lock = threading.Lock()
        self._queue: queue.Queue[QueryLog | None] = queue.Queue(_WAITING)
        self._writer: threading.Thread | None = None
        self.dropped = 0

        if writable is not None:
            # Arrow looks for pandas at its first conversion, and a thread cannot once the process
            # ends.
            pa.array([0])
            self._writer = threading.Thread(
                target=self._write,
                name="hades-turn-log",
                daemon=True,
            )
            self._writer.start()
            atexit.register(self.flush)

    def add(self, log: QueryLog) -> None:
        """Remember a turn; it is written soon."""
        with self._lock:
            self._recent[log.key] = log
            while len(self._recent) > _REMEMBERED:
                self._recent.popitem(last=False)

        if self._writer is not None:
            try:
                self._queue.put(log, block=not self._may_drop)
            except queue.Full:
                self.dropped += 1

    def find(self, query_id: str) -> QueryLog:
        """The turn of an id, or `UnknownQuery`."""
        with self._lock:
            log = self._recent.get(query_id)

        if log is not None:
            return log

        return read_log(self._readable, query_id)

    def flush(self) -> None:
        """Wait until everything added so far was written or given up, or the writer is gone."""
        with self._queue.all_tasks_done:
            while self._queue.unfinished_tasks and self._writer and self._writer.is_alive():
                self._queue.all_tasks_done.wait(_LOOK_S)

    def close(self) -> None:
        """Write what is left and stop."""
        if self._writer is not None:
            self._queue.put(None)
            self._writer.join()
            self._writer = None
            atexit.unregister(self.flush)

    def _write(self) -> None:
        while True:
            batch = [self._queue.get()]
            while len(batch) < _BATCH and not self._queue.empty():
                batch.append(self._queue.get())

            try:
                self._store([log for log in batch if log is not None])
            finally:
                for _ in batch:
                    self._queue.task_done()

            if None in batch:
                return

    def _store(self, logs: list[QueryLog]) -> None:
        assert self._writable is not None
        rows = {log.key: log for log in logs}  # the same question twice in a microsecond has one id
        if not rows:
            return

        try:
            self._writable.upsert(
                QUERY_LOGS,
                to_table(QueryLog, [rows[key] for key in sorted(rows)]),
            )
        except StoreError as error:  # an answer is worth more than its log
            self.dropped += len(rows)
            logger.warning(
                "%d turns were answered but not logged, so they cannot be judged: %s",
                len(rows),
                error,
            )
