"""An open graph that answers; versions."""

from __future__ import annotations

import logging
import re
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import date, datetime
from typing import Any, Self

from hades.budget import Turn
from hades.errors import HadesError, NothingPublished
from hades.ports.graph import DocumentFilter, ViewInfo
from hades.ports.services import utc_now
from hades.retrieval.answer.assemble import AnswerParts
from hades.retrieval.answer.path_text import QuickCounts
from hades.retrieval.answer.prompt import pack
from hades.retrieval.code.index import CodeIndex
from hades.retrieval.code.search import CodeHits, search_code
from hades.retrieval.core.types import (
    AUTO,
    DEFAULT,
    NEXUS,
    PASSAGE,
    caps_of,
    clamp,
    recipe_named,
)
from hades.retrieval.pipeline import BadQuestion, Tools, retrieve
from hades.retrieval.ranking.feedback import MODES
from hades.retrieval.search.code_passages import CODE, RANKED, rank_level
from hades.retrieval.turn_result import AskedQuestion, TurnResult, report
from hades.snapshot.remote import OpenView, RemoteView
from hades.snapshot.rights_file import PUBLIC, Readers, RightsFile, within_rights
from hades.snapshot.view import GraphView
from hades.telemetry.logs import span, turn_fields
from hades.text.dates import as_moment, parse_moment
from schemas.answer import CitedPassage, Retrieval, Telemetry
from schemas.ids import Mask, content_key, node_id
from schemas.plan import HARD_CAPS, Plan, Profile, Reason

# An open graph that answers: the view, kept as fresh as the pointer, and what a turn needs beside
# it. Any number of threads may ask at once. Each question reads one view from its first read to its
# last, so a publish in the middle does not mix two graphs in an answer.
logger = logging.getLogger(__name__)


class Answers:
    """Answers questions of one graph. A snapshot that is published meanwhile serves from the next
    question on.
    """

    def __init__(
        self,
        open_view: Callable[[], OpenView],
        version: Callable[[], str],
        tools: Tools,
        plan: Plan = Plan(),
        now: Callable[[], datetime] = utc_now,
        open_version: Callable[[str], OpenView] | None = None,
        unbuilt: Callable[[], CodeIndex | None] | None = None,
        rights: RightsFile | None = None,
    ) -> None:
        self.tools = tools
        self.rights = rights
        self.plan = plan
        self._open_view = open_view
        self._version = version
        self._now = now
        self._open_version = open_version
        self._unbuilt = unbuilt
        self._opened: tuple[str, OpenView] | None = None
        self._lock = threading.Lock()

    @property
    def view(self) -> OpenView:
        """The newest published graph, for a caller that asks alone; beside others, read it under a
        `lease`.
        """
        with self._lock:
            return self._newest()

    @contextmanager
    def lease(self) -> Iterator[OpenView]:
        """The newest published graph for the length of one question; a mapping goes with its last
        reader.
        """
        yield self.view

    @contextmanager
    def read(self, near: Sequence[str] = (), hops: int = 1) -> Iterator[GraphView]:
        """A lease to read by node; of a graph over a network, what lies within some hops of these
        ids.
        """
        with self.lease() as view:
            if isinstance(view, RemoteView):
                yield view.around([], [], "", near, hops=hops).view
            else:
                yield view

    def ready(self) -> ViewInfo | None:
        """What serves, if it is open already; never opens and never waits, so that an event loop
        may ask it.
        """
        if not self._lock.acquire(blocking=False):
            return None

        try:
            newest = self._opened
            if newest is not None and newest[0] == self._version():
                return newest[1].info
            return None
        finally:
            self._lock.release()

    def _newest(self) -> OpenView:
        """What serves now, opened if need be; the caller holds the lock."""
        version = self._version()
        if self._opened is None or self._opened[0] != version:
            self._opened = version, self._open_view()

        return self._opened[1]

    def retrieve(
        self,
        text: str,
        *,
        recipe: str = DEFAULT,
        plan: Plan | Mapping[str, Any] | None = None,
        as_of: str | date | None = None,
        known_at: str | date | None = None,
        near: Sequence[str] = (),
        domain: str | None = None,
        only: DocumentFilter | None = None,
        level: str = PASSAGE,
        asker: Readers = PUBLIC,
        **options: Any,
    ) -> Retrieval:
        """Answer a question; a plan given as a mapping is lowered to its profile's caps, with the
        reason in it.

        Without a plan, nexus has one that holds what its mode returns. `as_of` and `known_at` are
        times, dates or texts such as 2026-01-31. `asker` are the names that whoever asks reads by
        (`asker_of`); nothing of a document that they may not read is shown. `options` are those of
        `pipeline.retrieve`.
        """
        if plan is None and recipe == NEXUS and "mode" in options:
            plan = plan_for_mode(self.plan, options["mode"])

        if plan is None:
            plan = self.plan
        elif not isinstance(plan, Plan):
            plan = clamp(plan)

        mask = Mask(_read_moment(as_of, "as_of"), _read_moment(known_at, "known_at"))
        if only is None and domain is not None:
            only = DocumentFilter(domain)

        only = within_rights(self.rights, only, asker)
        is_limited = only is not None and only.within is not None
        if is_limited:
            near = ()  # what is near a hidden text tells of it

        if self._unbuilt is not None and only is None and self._is_unbuilt(recipe, text, mask):
            index = self._unbuilt()
            if index is not None:
                question = AskedQuestion(
                    text,
                    recipe_named(recipe),
                    plan,
                    mask,
                    at=self._now(),
                    near=tuple(near),
                    level=level,
                )
                return answer_from_files(index, question, self.tools)

        with (
            self.lease() as view,
            span(
                "hades.turn",
                recipe=recipe,
                snapshot=view.info.snapshot,
            ) as mark,
        ):
            _require_rights(view, only)
            answer = retrieve(
                view,
                text,
                self.tools,
                at=self._now(),
                recipe=recipe,
                plan=plan,
                mask=mask,
                near=near,
                only=only,
                level=level,
                **options,
            )
            mark.note(
                query_id=answer.query_id,
                reads=answer.telemetry.reads,
                reasons=list(map(str, answer.reasons)),
            )

        logger.info("answered", extra=turn_fields(answer))
        return without_whole(answer) if is_limited else answer

    def _is_unbuilt(self, recipe: str, text: str, mask: Mask) -> bool:
        """Whether nothing was published yet and the question can be answered from the files of a
        workspace.
        """
        if self._opened is not None or recipe not in (AUTO, DEFAULT):
            return False
        if not text.strip() or not mask.is_open:
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
            raise HadesError(
                f"this view reads the graph as it is now, so snapshot {snapshot} cannot be asked"
            )

        opened = self._open_version(snapshot)
        return Answers(
            lambda: opened,
            lambda: snapshot,
            self.tools,
            self.plan,
            self._now,
            rights=self.rights,
        )

    def close(self) -> None:
        """Let go of the graph; a question that is being answered keeps its own."""
        with self._lock:
            self._opened = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *raised: object) -> None:
        self.close()


def _require_rights(view: OpenView, only: DocumentFilter | None) -> None:
    """Refuse a live view where only a part may be read: rights are kept beside snapshots."""
    within = None if only is None else only.within
    if within is not None and within.readers and isinstance(view, RemoteView):
        raise HadesError(
            "some documents are not for everybody, and the live view (HADES_VIEW=arango) does not "
            "know who may read them; set HADES_VIEW=snapshot"
        )


def without_whole(answer: Retrieval) -> Retrieval:
    """An answer for somebody who sees a part: without what counts or describes the rest.

    A path that is hidden is a path too, so no passage says that it has none. Of the telemetry the
    stage stays by which a cache knows that the question was embedded.
    """
    passages = [passage.model_copy(update={"no_path": ""}) for passage in answer.passages]

    embedded = []
    for stage in answer.telemetry.stages:
        if stage.name == "embed":
            embedded.append(stage)

    parts = {
        "excluded": None,
        "hierarchy": (),
        "passages": tuple(passages),
        "telemetry": Telemetry(stages=tuple(embedded)),
    }
    return answer.model_copy(update=parts)


def plan_for_mode(plan: Plan, mode: str) -> Plan:
    """The plan with room for the passages that a mode of nexus returns; of the profile `long` where
    that is more than its own profile allows.
    """
    results = MODES[mode].results if mode in MODES else 0
    if results <= plan.final_context:
        return plan
    if results <= HARD_CAPS[Profile(plan.profile)].final_context:
        return plan.model_copy(update={"final_context": results})

    return Plan(profile=Profile.LONG, final_context=results)


def _read_moment(value: str | date | None, name: str) -> datetime | None:
    try:
        return as_moment(value, name)
    except ValueError as error:
        raise BadQuestion(str(error)) from error


_SNAPSHOT_ID = re.compile(r"g[0-9a-f]+")


def is_snapshot_id(version: str | None) -> bool:
    """Whether a version names a snapshot, which never changes; a time or a live view does not."""
    return version is not None and _SNAPSHOT_ID.fullmatch(version) is not None


def retrieve_version(
    answers: Answers,
    query: str,
    version: str | None,
    *,
    as_of: str | date | None = None,
    **options: Any,
) -> Retrieval:
    """The answer of the version that was asked for; `options` are those of `Answers.retrieve`."""
    as_of = _read_moment(as_of, "as_of")
    then = None if version is None else _read_time(version)

    if then is not None and as_of is not None and then != as_of:
        raise BadQuestion(
            f"as_of_version says {version} and as_of {as_of.isoformat()}; give one of them"
        )

    if version is None or then is not None:
        return answers.retrieve(
            query,
            as_of=then or as_of,
            **options,
        )

    with answers.as_published(version) as published:
        return published.retrieve(query, as_of=as_of, **options)


def _read_time(version: str) -> datetime | None:
    """The time that a version spells, in UTC where it names no zone; None for the id of a
    snapshot.
    """
    if is_snapshot_id(version):
        return None

    if (moment := parse_moment(version)) is None:
        raise BadQuestion(
            f"as_of_version is {version!r}; give the id of a snapshot, which `hades snapshots` "
            "lists, or a time such "
            "as 2026-01-31T12:00Z"
        )

    return moment


def answer_from_files(
    index: CodeIndex,
    question: AskedQuestion,
    tools: Tools,
) -> Retrieval:
    """Files, symbols and units by words, names and history; without paths, topics and vectors, and
    it says so.
    """
    plan = question.plan
    turn = Turn(caps_of(plan), tools.clock)
    turn.because(Reason.NOT_BUILT)

    with turn.stage("code") as stage:
        hits = search_code(
            index,
            question.text,
            max(plan.reranker.m, RANKED),
        )
        stage.taken = len(index.units)
        stage.given = len(hits.units)
        stage.coverage = float(bool(hits.units))

    with turn.stage("pack") as stage:
        passages = tuple(_cite(index, hits, plan.final_context))
        count = len(passages)
        shown = AnswerParts(
            (),
            passages,
            (),
            facts=count,
            cited=count,
            verified=count,
        )
        packed = pack(
            QuickCounts(tools.tokenizer),
            (),
            passages,
            (),
            prompt_tokens=plan.budget.tokens_max,
            final_context=plan.final_context,
        )
        stage.taken = count
        stage.given = len(packed.passages)

    turn_result = TurnResult(
        question.text,
        seeds=(),
        candidates=None,
        paths=(),
        passages=(),
        shown=shown,
        packed=packed,
    )
    return report(
        question,
        turn,
        "",
        turn_result,
        rank_level(question.level, hits, passages),
    )


def _cite(
    index: CodeIndex,
    hits: CodeHits,
    limit: int,
) -> Iterator[CitedPassage]:
    for rank, (row, score) in enumerate(hits.units[:limit], 1):
        unit = index.units[row]
        yield CitedPassage(
            rank=rank,
            id=node_id("doc_chunks", content_key("c", unit.path, unit.text)),
            score=score,
            origins=(CODE,),
            tiers={CODE: score},
            lines=(unit.first_line, unit.last_line),
            document=unit.path,
            title=unit.path,
            path=unit.path,
            text=unit.text,
            symbol=unit.symbol,
            kind=unit.kind,
        )
