"""An open graph that answers; versions."""

from __future__ import annotations

import logging
import re
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import datetime
from typing import Any, Self

from hades.errors import HadesError, NothingPublished
from hades.ports.graph import DocumentFilter, ViewInfo
from hades.ports.services import utc_now
from hades.retrieval.answer.assemble import AnswerParts
from hades.retrieval.answer.path_text import QuickCounts
from hades.retrieval.answer.prompt import pack
from hades.retrieval.code.index import CodeIndex
from hades.retrieval.code.search import CodeHits, search_code
from hades.retrieval.core.types import AUTO, DEFAULT, PASSAGE, caps_of, clamp, recipe_named
from hades.retrieval.pipeline import BadQuestion, Tools, retrieve
from hades.retrieval.search.code_passages import CODE, RANKED, rank_level
from hades.retrieval.turn_result import AskedQuestion, TurnResult, report
from hades.snapshot.remote import OpenView, RemoteView
from hades.snapshot.view import GraphView
from hades.telemetry.logs import span, turn_fields
from hades.telemetry.turn import Turn
from hades.text.dates import parse_moment
from schemas.answer import CitedPassage, Retrieval
from schemas.ids import Mask, content_key, node_id
from schemas.plan import Plan, Reason

# An open graph that answers: the view, kept as fresh as the pointer, and what a turn needs beside it. Any number of
# threads may ask at once. Each question reads one view from its first read to its last, so a publish in the middle
# does not mix two graphs in an answer.
logger = logging.getLogger(__name__)


class Answers:
    """Answers questions of one graph. A snapshot that is published meanwhile serves from the next question on."""

    def __init__(
        self,
        open_view: Callable[[], OpenView],
        version: Callable[[], str],
        tools: Tools,
        plan: Plan = Plan(),
        now: Callable[[], datetime] = utc_now,
        open_version: Callable[[str], OpenView] | None = None,
        unbuilt: Callable[[], CodeIndex | None] | None = None,
    ) -> None:
        self.tools, self.plan = tools, plan
        self._open_version, self._unbuilt = open_version, unbuilt
        self._open_view, self._version, self._now = open_view, version, now
        self._held: tuple[str, OpenView] | None = None
        self._lock = threading.Lock()

    @property
    def view(self) -> OpenView:
        """The newest published graph, for a caller that asks alone; beside others, read it under a `lease`."""
        with self._lock:
            return self._newest()

    @contextmanager
    def lease(self) -> Iterator[OpenView]:
        """The newest published graph for the length of one question; a mapping goes with its last reader."""
        yield self.view

    @contextmanager
    def read(self, near: Sequence[str] = (), hops: int = 1) -> Iterator[GraphView]:
        """A lease to read by node; of a graph over a network, what lies within some hops of these ids."""
        with self.lease() as view:
            yield view.around([], [], "", near, hops=hops).view if isinstance(view, RemoteView) else view

    def ready(self) -> ViewInfo | None:
        """What serves, if it is open already; never opens and never waits, so that an event loop may ask it."""
        if not self._lock.acquire(blocking=False):
            return None
        try:
            held = self._held
            return held[1].info if held is not None and held[0] == self._version() else None
        finally:
            self._lock.release()

    def _newest(self) -> OpenView:
        """What serves now, opened if need be; the caller holds the lock."""
        version = self._version()
        if self._held is None or self._held[0] != version:
            self._held = version, self._open_view()
        return self._held[1]

    def retrieve(
        self,
        text: str,
        *,
        recipe: str = DEFAULT,
        plan: Plan | Mapping[str, Any] | None = None,
        as_of: datetime | None = None,
        known_at: datetime | None = None,
        near: Sequence[str] = (),
        domain: str | None = None,
        only: DocumentFilter | None = None,
        level: str = PASSAGE,
        **options: Any,
    ) -> Retrieval:
        """Answer a question; a plan given as a mapping is lowered to its profile's caps, with the reason in it.

        `options` are those of `pipeline.retrieve`.
        """
        chosen = self.plan if plan is None else plan if isinstance(plan, Plan) else clamp(plan)
        mask = Mask(as_of, known_at)
        index = None
        if self._unbuilt is not None and only is None and domain is None and self._is_unbuilt(recipe, text, mask):
            index = self._unbuilt()
        if index is not None:
            asked = AskedQuestion(text, recipe_named(recipe), chosen, mask, self._now(), tuple(near), level)
            return answer_from_files(index, asked, self.tools)
        with self.lease() as view, span("hades.turn", recipe=recipe, snapshot=view.info.snapshot) as mark:
            answer = retrieve(
                view,
                text,
                self.tools,
                at=self._now(),
                recipe=recipe,
                plan=chosen,
                mask=mask,
                near=near,
                only=DocumentFilter(domain) if only is None and domain is not None else only,
                level=level,
                **options,
            )
            mark.note(query_id=answer.query_id, reads=answer.telemetry.reads, reasons=[*map(str, answer.reasons)])
        logger.info("answered", extra=turn_fields(answer))
        return answer

    def _is_unbuilt(self, recipe: str, text: str, mask: Mask) -> bool:
        """Whether nothing was published yet and the question can be answered from the files of a workspace."""
        if self._held is not None or recipe not in (AUTO, DEFAULT) or not text.strip() or mask != Mask(None, None):
            return False
        try:
            with self._lock:
                self._newest()
        except NothingPublished:
            return True
        return False

    def as_published(self, snapshot: str) -> Answers:
        """The same over a named snapshot, which opens or is refused."""
        if self._open_version is None:
            raise HadesError(f"this view reads the graph as it is now, so snapshot {snapshot} cannot be asked")
        opened = self._open_version(snapshot)
        return Answers(lambda: opened, lambda: snapshot, self.tools, self.plan, self._now)

    def close(self) -> None:
        """Let go of the graph; a question that is being answered keeps its own."""
        with self._lock:
            self._held = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *raised: object) -> None:
        self.close()


_SNAPSHOT_ID = re.compile(r"g[0-9a-f]+")


def is_snapshot_id(version: str | None) -> bool:
    """Whether a version names a snapshot, which never changes; a time or a live view does not."""
    return version is not None and _SNAPSHOT_ID.fullmatch(version) is not None


def retrieve_version(
    answers: Answers, query: str, version: str | None, *, as_of: datetime | None = None, **options: Any
) -> Retrieval:
    """The answer of the version that was asked for; `options` are those of `Answers.retrieve`."""
    then = None if version is None else _read_time(version)
    if then is not None and as_of is not None and then != as_of:
        raise BadQuestion(f"as_of_version says {version} and as_of {as_of.isoformat()}; give one of them")
    if version is None or then is not None:
        return answers.retrieve(query, as_of=then or as_of, **options)
    with answers.as_published(version) as published:
        return published.retrieve(query, as_of=as_of, **options)


def _read_time(version: str) -> datetime | None:
    """The time that a version spells, in UTC where it names no zone; None for the id of a snapshot."""
    if is_snapshot_id(version):
        return None
    if (moment := parse_moment(version)) is None:
        raise BadQuestion(
            f"as_of_version is {version!r}; give the id of a snapshot, which `hades snapshots` lists, or a time such "
            "as 2026-01-31T12:00Z"
        )
    return moment


def answer_from_files(index: CodeIndex, asked: AskedQuestion, tools: Tools) -> Retrieval:
    """Files, symbols and units by words, names and history; without paths, topics and vectors, and it says so."""
    plan = asked.plan
    turn = Turn(caps_of(plan), tools.clock)
    turn.because(Reason.NOT_BUILT)
    with turn.stage("code") as stage:
        hits = search_code(index, asked.text, max(plan.reranker.m, RANKED))
        stage.taken, stage.given = len(index.units), len(hits.units)
        stage.coverage = float(bool(hits.units))
    with turn.stage("pack") as stage:
        passages = tuple(_cite(index, hits, plan.final_context))
        shown = AnswerParts((), passages, (), facts=len(passages), cited=len(passages), verified=len(passages))
        counts = QuickCounts(tools.tokenizer)
        packed = pack(counts, (), passages, (), prompt_tokens=plan.budget.tokens_max, final_context=plan.final_context)
        stage.taken, stage.given = len(passages), len(packed.passages)
    turned = TurnResult(asked.text, (), None, (), (), shown, packed)
    return report(asked, turn, "", turned, rank_level(asked.level, hits, passages))


def _cite(index: CodeIndex, hits: CodeHits, limit: int) -> Iterator[CitedPassage]:
    for rank, (row, score) in enumerate(hits.units[:limit], 1):
        unit = index.units[row]
        yield CitedPassage(
            rank=rank,
            id=node_id("doc_chunks", content_key("c", unit.path, unit.text)),
            score=score,
            origins=(CODE,),
            tiers={CODE: score},
            lines=(unit.first_line, unit.last_line),
            **dict.fromkeys(("document", "title", "path"), unit.path),
            **{name: getattr(unit, name) for name in ("text", "symbol", "kind")},
        )
