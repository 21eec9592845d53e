"""One turn: embed, seeds, narrow, graph, rerank, pack; every stage inside the plan, every cut with its reason."""

from __future__ import annotations

import contextlib
import contextvars
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hades.errors import HadesError
from hades.ports.graph import ViewInfo
from hades.ports.services import (
    Embedder,
    LoadsModel,
    MemoryHit,
    MemorySearch,
    ProviderError,
    Tokenizer,
    embed_questions,
)
from hades.retrieval.answer.absence import certify_absence
from hades.retrieval.answer.assemble import AnswerParts, passages_inside, paths_inside, show
from hades.retrieval.answer.memory_states import add_memory_paths, place_states, recall_states
from hades.retrieval.answer.path_text import QuickCounts
from hades.retrieval.answer.prompt import MOST_RELEVANT, WindowSize, pack, pack_window
from hades.retrieval.code.search import CodeHits
from hades.retrieval.core.metered_view import MeteredView
from hades.retrieval.core.types import (
    AUTO,
    DEFAULT,
    LEVELS,
    MODES,
    OPEN,
    PASSAGE,
    VECTOR,
    CandidateGraph,
    Question,
    Recipe,
    SeedHits,
    StepResult,
    caps_of,
    recipe_named,
    unused_keys,
)
from hades.retrieval.core.words import subqueries
from hades.retrieval.ranking.feedback import Beliefs
from hades.retrieval.ranking.judge import BY_HAND, Judge, judge_of
from hades.retrieval.ranking.select import ExplorationRules, FlowPruning, Selection, prune_by_flow, select, swap_some
from hades.retrieval.recipes import STEPS, Start, explain_first
from hades.retrieval.search.code_passages import (
    RANKED,
    SnapshotCode,
    code_leads,
    code_of,
    find_code,
    join_code,
    rank_level,
)
from hades.retrieval.search.near_document import nodes_near
from hades.retrieval.search.seeds import entry_points, find_seeds, narrow, search_ahead
from hades.retrieval.turn_result import AskedQuestion, TurnResult, query_id_of, report
from hades.settings.tree import HippoSettings, HiragPathrag
from hades.snapshot.remote import HOPS, QUESTIONS, Neighbourhood, OpenView, PartView, RemoteView, WriteUnderWay
from hades.snapshot.view import GraphView
from hades.telemetry.turn import Turn, budget_seconds
from schemas.answer import Retrieval
from schemas.ids import Mask
from schemas.plan import Plan, Reason

_SHOWN_TOPICS = 8
_EMBED_SHARE = 0.4  # of the turn's time
_LEAST_WAIT_S = 0.02  # for the embedder, however short the turn
_ROUND = 1.25  # of the last round's time must be left for one more


class BadQuestion(HadesError):
    """A question that cannot be asked."""


@dataclass(frozen=True)
class Tools:
    """What answering needs beside the graph. Without an embedder the words search alone.

    `beliefs` are what judged answers taught, fetched when a recipe asks for them.
    """

    tokenizer: Tokenizer
    embedder: Embedder | None = None
    rules: HiragPathrag = field(default_factory=HiragPathrag)
    walk: HippoSettings = field(default_factory=HippoSettings)
    clock: Callable[[], float] = budget_seconds
    beliefs: Callable[[], Beliefs] = Beliefs
    swapping: ExplorationRules = field(default_factory=ExplorationRules)
    judge: Callable[[MeteredView, Question], Judge] = judge_of
    memory: MemorySearch | None = None  # what was remembered, searched beside the documents


def retrieve(
    graph: OpenView,
    text: str,
    tools: Tools,
    *,
    at: datetime,
    recipe: str = DEFAULT,
    plan: Plan = Plan(),
    mask: Mask = OPEN,
    near: Sequence[str] = (),
    vector: NDArray[np.float32] | None = None,
    **options: Any,
) -> Retrieval:
    """Answer a question from the graph; `options` are those of `AskedQuestion`.

    A `vector` that the caller has already is not computed again; it must come from the embedder of the tools. The
    default recipe searches code where the graph holds files of a workspace.
    """
    asked = AskedQuestion(text, recipe_named(recipe), plan, mask, at, tuple(near), **options)
    _check_question(asked)
    try:
        return _take_turn(graph, asked, tools, vector)
    except WriteUnderWay as met:  # begin again on a view that has no half-applied write
        return _take_turn(met.instead, asked, tools, vector)


def _take_turn(graph: OpenView, asked: AskedQuestion, tools: Tools, vector: NDArray[np.float32] | None) -> Retrieval:
    """One turn on one state of the graph; its clock begins when models are loaded."""
    began, chosen, plan = tools.clock(), asked.recipe, asked.plan
    _load(tools, vector)
    code = code_of(graph) if chosen.name == AUTO and not isinstance(graph, RemoteView) else None
    turn = Turn(caps_of(plan), tools.clock, loading_ms=(tools.clock() - began) * 1000)
    _note_conditions(turn, graph.info, plan, unused_keys(plan, chosen))
    parts = embedded(turn, graph.info, asked.text, tools, chosen, plan, asked.mask, vector)
    if isinstance(graph, RemoteView):
        return _answer_in_parts(graph, turn, parts, asked, tools)
    return _answer(graph, turn, parts, asked, tools, code)


def _answer_in_parts(
    graph: RemoteView, turn: Turn, parts: Sequence[Question], asked: AskedQuestion, tools: Tools
) -> Retrieval:
    """Answer from what was fetched, then again with what that answer missed, until it misses nothing.

    What a filter selects is told by documents far around, so there everything near is fetched at once instead. Where
    there is no time for one more round, or it was too long, the answer of the round before counts.
    """
    searches_code = asked.recipe.name == AUTO
    began, before = turn.ms, None
    found = _fetch(graph, turn, parts, asked.near, hops=HOPS if asked.only is not None else 0)
    while True:
        own = turn.branch()
        answer = _answer(found.view, own, parts, asked, tools, code_of(found.view) if searches_code else None)
        if before is not None and Reason.TIMEOUT in own.reasons:
            return before
        is_last = found.is_late or found.round_trips >= QUESTIONS or turn.ms_left <= _ROUND * (turn.ms - began)
        if is_last or asked.only is not None or not found.view.missing():
            return answer
        began, before = turn.ms, answer
        with turn.stage("fetch") as stage:
            found = graph.further(found, turn.ms_left / 1000)
            stage.given, turn.round_trips = sum(found.view.info.nodes.values()), found.round_trips
            if found.is_cut:
                turn.trimmed(Reason.CAP_EXCEEDED)
            if found.is_late:
                return answer


def _answer(
    view: GraphView,
    turn: Turn,
    parts: Sequence[Question],
    asked: AskedQuestion,
    tools: Tools,
    code: SnapshotCode | None,
) -> Retrieval:
    """The answer of a graph in memory; what a part of one lacks is a reason."""
    chosen, plan, near, info = asked.recipe, asked.plan, asked.near, view.info
    metered = MeteredView(view, turn, asked.only)
    excluded = view.count_outside(asked.only) if asked.only is not None and not info.is_part else None
    if near:
        with turn.stage("near") as stage:
            nodes = nodes_near(metered, near)
            stage.taken, stage.given, stage.coverage = len(near), len(nodes), float(bool(nodes))
        parts = [replace(part, near=nodes) for part in parts]
    stages = _Stages(metered, parts, asked, tools)
    starts_itself = chosen.starts_itself and plan.graph.hops > 0 and not near
    found = stages.seed(ahead=starts_itself)
    judge = tools.judge(metered, parts[0]) if chosen.name == AUTO else BY_HAND
    candidates, reached = stages.walk(found, judge, explains=code is None)
    if starts_itself:
        found = stages.starts_of(reached)
    reached, hits = stages.join_code(code, found, reached)
    if code is not None and reached.passages and plan.graph.hops:
        reached = stages.explain(reached)
    if chosen.finds_paths and plan.graph.hops and not reached.paths:
        turn.because(Reason.NO_PATHS)
    if asked.pruning is not None and reached.paths:
        reached = stages.prune(reached, asked.pruning)
    states = recall_states(metered, tools.memory, parts[0])
    is_text = code is None or hits is None or not code_leads(code, asked.text)
    selected = select(
        metered,
        parts[0],
        found,
        reached,
        chosen,
        plan,
        max_paths=tools.rules.path.max_paths if asked.max_paths is None else asked.max_paths,
        must_support=chosen.name == AUTO and not near and is_text,
        has_ranked_paths=asked.pruning is not None,
        is_remembered=bool(states),
        anyway=asked.anyway,
        judge=judge,
    )
    ready = f"vectors {info.vectors:.0%}" if info.vectors < 1.0 else ""
    unused = unused_keys(plan, chosen)
    ignored = f"{chosen.name} does not use {', '.join(unused)}" if unused else ""
    why = "; ".join(filter(None, (ready, reached.why, selected.doubt, ignored)))
    if tools.swapping.share:
        selected = swap_some(selected, tools.swapping, query_id_of(asked, info.snapshot))
    turned = stages.pack(found, candidates, reached, selected, states)
    if asked.window is not None:
        turned = _fit_window(turn, turned, asked.window, tools.tokenizer)
    ranking = () if asked.level == PASSAGE else rank_level(asked.level, hits, turned.shown.passages)
    absence = None
    if Reason.ABSTAINED in turn.reasons or not (turned.shown.passages or turned.shown.paths):
        read = found.passages if reached.passages is None else reached.passages
        absence = certify_absence(metered, parts[0], read, turned.shown.passages, memory=tools.memory is not None)
    if isinstance(view, PartView) and view.missing():
        turn.trimmed(Reason.CAP_EXCEEDED)
    judged = {"why": why, "confidence": selected.confidence, "excluded": excluded, "absence": absence}
    return report(asked, turn, info.snapshot, turned, ranking, **judged)


def _note_conditions(turn: Turn, info: ViewInfo, plan: Plan, unused: Sequence[str]) -> None:
    """Give the reasons that hold before anything is searched."""
    conditions = {
        Reason.VIEW_DEGRADED: info.degraded_from is not None,
        Reason.EMBEDDINGS_MISSING: info.vectors < 1.0,
        Reason.ANALYZER_MISMATCH: info.has_other_analyzer,
        Reason.KEY_UNUSED: bool(unused),
    }
    for reason in (*plan.reasons, *(reason for reason, holds in conditions.items() if holds)):
        turn.because(reason)


def _check_question(asked: AskedQuestion) -> None:
    if not isinstance(asked.text, str):
        raise BadQuestion(f"the question is of type {type(asked.text).__name__}; give a text")
    if not asked.text.strip():
        raise BadQuestion("the question is empty; ask something")
    if asked.mode not in MODES:
        raise BadQuestion(f"no mode is called {asked.mode!r}; use one of {', '.join(MODES)}")
    if asked.level not in LEVELS:
        raise BadQuestion(f"no level is called {asked.level!r}; use one of {', '.join(LEVELS)}")


def _fit_window(turn: Turn, turned: TurnResult, window: WindowSize, tokenizer: Tokenizer) -> TurnResult:
    try:
        packed = pack_window(turned.packed, turned.question, turned.shown.paths, window, tokenizer)
    except ValueError as error:  # the question alone is longer than the window
        raise BadQuestion(str(error)) from error
    if turned.shown.paths and MOST_RELEVANT not in packed.prompt:
        turn.because(Reason.PROMPT_FULL)
    return replace(turned, packed=packed)


def _load(tools: Tools, vector: NDArray[np.float32] | None) -> None:
    """Load models and open memory, before the turn's clock runs; `embed` reports a model that cannot."""
    wanted: list[object] = [tools.tokenizer, tools.memory, *([tools.embedder] if vector is None else [])]
    for tool in wanted:
        if isinstance(tool, LoadsModel):
            with contextlib.suppress(ProviderError):
                tool.load()


def embedded(
    turn: Turn,
    info: ViewInfo,
    text: str,
    tools: Tools,
    recipe: Recipe,
    plan: Plan,
    mask: Mask = OPEN,
    vector: NDArray[np.float32] | None = None,
) -> list[Question]:
    """The question and its sub-queries, with vectors where the recipe compares them and the graph has the like."""
    texts = subqueries(text, plan.q) if recipe.reranks else (text,)
    parts = [Question(part, mask=mask) for part in texts]
    embedder = tools.embedder
    if embedder is None or not (VECTOR in recipe.searches or recipe.narrows):
        return parts
    with turn.stage("embed", _EMBED_SHARE * plan.budget.latency_ms) as stage:
        model = embedder.model.tag
        stage.taken = len(parts)
        if not any(model in tags for tags in info.models.values()):
            return parts  # nothing to compare with; the seeds say so
        wanted = texts if vector is None else texts[1:]
        try:
            made = _embed_in_time(turn, embedder, wanted) if wanted else []
        except ProviderError:
            return parts
        found = made if vector is None else [(np.asarray(vector, np.float32), None), *made]
        stage.given, stage.coverage = len(found), float(bool(found))
        compared = [
            replace(part, vector=one, tokens=tokens, model=model)
            for part, (one, tokens) in zip(parts, found, strict=False)
        ]
        return compared + parts[len(compared) :]


def _embed_in_time(
    turn: Turn, embedder: Embedder, texts: Sequence[str]
) -> list[tuple[NDArray[np.float32], NDArray[np.float32] | None]]:
    """Vectors and states of tokens; none, with the reason, where they take longer than the stage.

    The worker is not waited for.
    """
    done: list[tuple[NDArray[np.float32], NDArray[np.float32] | None]] = []
    failed: list[BaseException] = []

    def embed() -> None:
        try:
            done.extend(zip(*embed_questions(embedder, texts), strict=True))
        except BaseException as error:  # raised again by who waits
            failed.append(error)

    context = contextvars.copy_context()
    worker = threading.Thread(target=context.run, args=(embed,), name="hades-embed", daemon=True)
    worker.start()
    worker.join(max(_LEAST_WAIT_S, turn.ms_left / 1000))
    if failed:
        raise failed[0]
    if not done:
        turn.note_early_end(Reason.EMBEDDER_SLOW)
    return list(done)


def fetch_neighbourhood(graph: OpenView, turn: Turn, parts: Sequence[Question], near: Sequence[str] = ()) -> GraphView:
    """A graph in memory as it is; of one over a network what lies around the question, so that both are read alike."""
    return _fetch(graph, turn, parts, near, HOPS).view if isinstance(graph, RemoteView) else graph


def _fetch(graph: RemoteView, turn: Turn, parts: Sequence[Question], near: Sequence[str], hops: int) -> Neighbourhood:
    """What lies around a question, counted against its turn."""
    with turn.stage("fetch") as stage:
        vectors, texts = [part.vector for part in parts if part.vector is not None], [part.text for part in parts]
        seconds = turn.ms_left / 1000
        found = graph.around(texts, vectors, parts[0].model, near, seconds, hops, parts[0].mask)
        turn.round_trips += found.round_trips
        stage.given, stage.coverage = sum(found.view.info.nodes.values()), 1.0
    if found.is_late:
        turn.because(Reason.TIMEOUT)
    if found.is_cut:
        turn.trimmed(Reason.CAP_EXCEEDED)
    if found.saw_write:
        turn.because(Reason.VIEW_DEGRADED)
    return found


@dataclass(frozen=True)
class _Stages:
    """The stages of one turn, over what they share; what one hands to the next goes between them."""

    view: MeteredView
    parts: Sequence[Question]
    asked: AskedQuestion
    tools: Tools

    @property
    def plan(self) -> Plan:
        return self.asked.plan

    def seed(self, *, ahead: bool = False) -> SeedHits:
        """Search where the turn starts; `ahead`, what a step that starts itself will ask for."""
        asked = (self.view, self.parts, self.plan, self.asked.recipe.searches)
        with self.view.turn.stage("seeds", self.plan.retriever.timeout_ms):
            found = search_ahead(*asked) if ahead else find_seeds(*asked)
        if not found.seeds and not ahead:
            self.view.turn.because(Reason.NO_ENTITY_MATCH)
        return found

    def starts_of(self, reached: StepResult) -> SeedHits:
        """Where the step started; where it found nothing, what the seeds bring up is all there is."""
        if reached.passages is None:
            return self.seed()
        stage = next(one for one in self.view.turn.stages if one.name == "seeds")
        stage.given, stage.coverage = len(reached.seeds), len(reached.seeds) / self.plan.retriever.k
        return SeedHits(reached.seeds, ())

    def walk(self, found: SeedHits, judge: Judge, explains: bool) -> tuple[CandidateGraph | None, StepResult]:
        """Narrow and go through the graph; both share the time of the graph stage. Without hops it stays out of it."""
        view, plan, recipe, mode, tools = self.view, self.plan, self.asked.recipe, self.asked.mode, self.tools
        if recipe.name not in STEPS or plan.graph.hops == 0:
            return None, StepResult()
        question = self.parts[0]
        left, candidates = float(plan.graph.timeout_ms), None
        if recipe.narrows:
            with view.turn.stage("narrow", left) as stage:
                candidates = narrow(view, question, tools.rules)
                stage.given = len(candidates.nodes) if candidates is not None else 0
                stage.coverage = min(1.0, stage.given / tools.rules.cand_cap)
            left = max(0.0, left - stage.ms)
        with view.turn.stage("graph", left) as stage:
            starts = entry_points(view, question, found.seeds, plan.retriever.k) if found.seeds else []
            if not starts and (question.near or not recipe.starts_itself):
                view.turn.because(Reason.NO_ENTITY_MATCH)
            stage.taken = len(starts)
            given = (found, starts, candidates, plan, tools.rules, mode, tools.beliefs, judge, self.parts, tools.walk)
            reached = STEPS[recipe.name](view, question, Start(*given, explains))
            if view.only is not None:
                passages = None if reached.passages is None else passages_inside(view, reached.passages)
                reached = replace(reached, paths=paths_inside(view, reached.paths), passages=passages)
            stage.taken += reached.candidates
            stage.given, stage.repeats, stage.coverage = len(reached.paths), reached.repeats, reached.coverage
        return candidates, reached

    def prune(self, reached: StepResult, pruning: FlowPruning) -> StepResult:
        """The paths that carry enough flow."""
        with self.view.turn.stage("prune") as stage:
            kept = prune_by_flow(self.view, reached.paths, pruning)
            stage.taken, stage.given = len(reached.paths), len(kept)
            stage.coverage = stage.given / stage.taken
        if not kept:
            self.view.turn.because(Reason.NO_PATHS)
        return replace(reached, paths=kept)

    def join_code(
        self, code: SnapshotCode | None, found: SeedHits, reached: StepResult
    ) -> tuple[StepResult, CodeHits | None]:
        """What was reached, joined with what the search of code found; None where there is no code or nothing in it."""
        if code is None:
            return reached, None
        most, question = self.plan.reranker.m, self.parts[0]
        hits = find_code(self.view, code, question, max(most, RANKED))
        if not hits.units:
            return reached, None
        others = found.passages if reached.passages is None else reached.passages
        joined = join_code(self.view, code, hits, question.text, others, most)
        return replace(reached, passages=joined, is_ranked=True), hits

    def explain(self, reached: StepResult) -> StepResult:
        """The paths that lead to passages of code and of text in the order in which both are shown."""
        view = self.view
        with view.turn.stage("paths", self.plan.graph.timeout_ms) as stage:
            explained = explain_first(view, self.parts[0], reached, self.plan, self.tools.rules)
            if view.only is not None:
                explained = replace(explained, paths=paths_inside(view, explained.paths))
            stage.taken, stage.given = len(reached.passages or ()), len(explained.paths)
            stage.coverage = float(bool(explained.paths))
        return explained

    def pack(
        self,
        found: SeedHits,
        candidates: CandidateGraph | None,
        reached: StepResult,
        selected: Selection,
        states: Sequence[MemoryHit],
    ) -> TurnResult:
        """Read what is handed over, place remembered states among the passages, and write the prompt."""
        view, plan, question = self.view, self.plan, self.parts[0]
        paths, passages = selected.paths, selected.passages
        with view.turn.stage("pack") as stage:
            stage.taken = len(paths) + len(passages)
            topics = () if candidates is None else candidates.shown(_SHOWN_TOPICS)
            counts = QuickCounts(self.tools.tokenizer)
            shown: AnswerParts = show(view, counts, paths, passages, topics)
            wanted = plan.graph.beam if self.asked.max_paths is None else self.asked.max_paths
            most = min(plan.final_context, wanted, plan.graph.beam)
            shown = place_states(shown, question.text, states)
            shown = add_memory_paths(view, counts, question, states, shown, most)
            given = (shown.paths, shown.passages, shown.topics)
            packed = pack(counts, *given, prompt_tokens=plan.budget.tokens_max, final_context=plan.final_context)
            stage.given = len(packed.paths) + len(packed.passages)
            if stage.given < min(len(shown.paths) + len(shown.passages), plan.final_context):
                view.turn.trimmed(Reason.PROMPT_FULL)
            turned = TurnResult(question.text, found.seeds, candidates, paths, passages, shown, packed, reached.bridges)
            spoken, asked = turned.words
            stage.coverage = spoken / asked if asked else 0.0
        return turned
