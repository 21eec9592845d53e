"""One turn: embed, seeds, narrow, graph, rerank, pack; every stage inside the plan, every cut with
its reason.
"""

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

from hades.budget import Turn, budget_seconds
from hades.errors import HadesError
from hades.ports.graph import ViewInfo
from hades.ports.services import (
    ChangeSearch,
    Embedder,
    LoadsModel,
    MemoryHit,
    MemorySearch,
    ProviderError,
    Tokenizer,
    embed_questions,
)
from hades.retrieval.answer.absence_certificate import certify_absence
from hades.retrieval.answer.assemble import AnswerParts, passages_inside, paths_inside, show
from hades.retrieval.answer.changes import find_changes, read_change_question
from hades.retrieval.answer.memory_states import add_memory_paths, place_states, recall_states
from hades.retrieval.answer.path_text import QuickCounts
from hades.retrieval.answer.prompt import WindowSize, pack, pack_window
from hades.retrieval.code.search import CodeHits
from hades.retrieval.core.metered_view import MeteredView
from hades.retrieval.core.types import (
    AUTO,
    DEFAULT,
    LEVELS,
    MODES,
    OPEN,
    VECTOR,
    CandidateGraph,
    FoundPassage,
    FoundPath,
    NarrowedTopic,
    Question,
    Recipe,
    Seed,
    SeedHits,
    StepResult,
    caps_of,
    recipe_named,
    unused_keys,
)
from hades.retrieval.core.words import subqueries
from hades.retrieval.ranking.feedback import Beliefs
from hades.retrieval.ranking.judge import BY_HAND, Judge, judge_of
from hades.retrieval.ranking.select import (
    ExplorationRules,
    FlowPruning,
    Selection,
    prune_by_flow,
    select,
    swap_some,
)
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
from hades.retrieval.search.seeds import (
    entry_points,
    find_seeds,
    narrow,
    search_ahead,
    topics_of,
)
from hades.retrieval.turn_result import AskedQuestion, TurnResult, query_id_of, report
from hades.settings.tree import HippoSettings, HiragPathrag
from hades.snapshot.manifest import NEWER
from hades.snapshot.remote import (
    HOPS,
    QUESTIONS,
    Neighbourhood,
    OpenView,
    PartView,
    RemoteView,
    WriteUnderWay,
)
from hades.snapshot.view import GraphView
from schemas.answer import AbsenceCertificate, ChangeReport, Retrieval
from schemas.ids import Mask
from schemas.plan import Plan, Reason

_SHOWN_TOPICS = 8
_EMBED_SHARE = 0.4  # of the turn's time
_LEAST_WAIT_S = 0.02  # for the embedder, however short the turn
# Threads that may wait for an embedder, of all turns of the process. One that never answers keeps
# those it has; later turns wait for a free one as long as they would for it, and go on by words.
_EMBED_WORKERS = 8
_free_workers = threading.BoundedSemaphore(_EMBED_WORKERS)
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
    changes: ChangeSearch | None = None  # what the documents said before


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

    A `vector` that the caller has already is not computed again; it must come from the embedder of
    the tools. The default recipe searches code where the graph holds files of a workspace.
    """
    question = AskedQuestion(
        text,
        recipe_named(recipe),
        plan,
        mask,
        at,
        tuple(near),
        **options,
    )
    _check_question(question)

    try:
        return _take_turn(graph, question, tools, vector)
    except WriteUnderWay as conflict:
        # Begin again on a view that has no half-applied write.
        return _take_turn(
            conflict.instead,
            question,
            tools,
            vector,
        )


def _take_turn(
    graph: OpenView,
    question: AskedQuestion,
    tools: Tools,
    vector: NDArray[np.float32] | None,
) -> Retrieval:
    """One turn on one state of the graph; its clock begins when models are loaded."""
    began = tools.clock()
    recipe = question.recipe
    plan = question.plan
    _load(tools, vector)

    if recipe.name == AUTO and not isinstance(graph, RemoteView):
        code = code_of(graph)
    else:
        code = None

    turn = Turn(
        caps_of(plan),
        tools.clock,
        loading_ms=(tools.clock() - began) * 1000,
    )
    _note_conditions(
        turn,
        graph.info,
        plan,
        unused_keys(plan, recipe),
    )
    parts = embedded(
        turn,
        graph.info,
        question.text,
        tools,
        recipe,
        plan,
        mask=question.mask,
        vector=vector,
    )

    if isinstance(graph, RemoteView):
        return _answer_in_parts(
            graph,
            turn,
            parts,
            question,
            tools,
        )

    return _answer(
        graph,
        turn,
        parts,
        question,
        tools,
        code=code,
    )


def _answer_in_parts(
    graph: RemoteView,
    turn: Turn,
    parts: Sequence[Question],
    question: AskedQuestion,
    tools: Tools,
) -> Retrieval:
    """Answer from what was fetched, then again with what that answer missed, until it misses
    nothing.

    What a filter selects depends on documents far around, so there everything near is fetched at
    once instead. Where there is no time for one more round, or it was too long, the answer of the
    round before counts.
    """
    searches_code = question.recipe.name == AUTO
    began = turn.ms
    previous = None
    neighbourhood = _fetch(
        graph,
        turn,
        parts,
        question.near,
        hops=HOPS if question.is_limited else 0,
    )

    while True:
        attempt = turn.branch()
        code = code_of(neighbourhood.view) if searches_code else None
        answer = _answer(
            neighbourhood.view,
            attempt,
            parts,
            question,
            tools,
            code=code,
        )

        if previous is not None and Reason.TIMEOUT in attempt.reasons:
            return previous

        is_last = (
            neighbourhood.is_late
            or neighbourhood.round_trips >= QUESTIONS
            or turn.ms_left <= _ROUND * (turn.ms - began)
        )
        if is_last or question.is_limited or not neighbourhood.view.missing():
            return answer

        began = turn.ms
        previous = answer
        with turn.stage("fetch") as stage:
            neighbourhood = graph.further(neighbourhood, turn.ms_left / 1000)
            stage.given = sum(neighbourhood.view.info.nodes.values())
            turn.round_trips = neighbourhood.round_trips

            if neighbourhood.is_cut:
                turn.trimmed(Reason.CAP_EXCEEDED)
            if neighbourhood.is_late:
                return answer


def _answer(
    view: GraphView,
    turn: Turn,
    parts: Sequence[Question],
    question: AskedQuestion,
    tools: Tools,
    *,
    code: SnapshotCode | None,
) -> Retrieval:
    """The answer of a graph in memory; what a part of one lacks is a reason."""
    recipe = question.recipe
    plan = question.plan
    near = question.near
    info = view.info
    metered = MeteredView(
        view,
        turn,
        question.only,
        question.mask,
    )
    excluded = None

    if metered.only is not None and not info.is_part:
        excluded = view.count_outside(metered.only)
    if near:
        parts = _ask_from(metered, near, parts)

    stages = _Stages(metered, parts, question, tools)
    starts_itself = recipe.starts_itself and plan.graph.hops > 0 and not near
    seed_hits = stages.seed(ahead=starts_itself)

    if recipe.name == AUTO:
        judge = tools.judge(metered, parts[0])
    else:
        judge = BY_HAND

    candidates, result = stages.walk(seed_hits, judge, explains=code is None)
    if starts_itself:
        seed_hits = stages.starts_of(result)

    result, code_hits = stages.join_code(code, seed_hits, result)
    if code is not None and result.passages and plan.graph.hops:
        result = stages.explain(result)
    if recipe.finds_paths and plan.graph.hops and not result.paths:
        turn.because(Reason.NO_PATHS)
    if question.pruning is not None and result.paths:
        result = stages.prune(result, question.pruning)

    states = recall_states(metered, tools.memory, parts[0])
    is_text = code is None or code_hits is None or not code_leads(code, question.text)
    max_paths = question.max_paths

    if max_paths is None:
        max_paths = tools.rules.path.max_paths

    selected = select(
        metered,
        parts[0],
        seed_hits,
        result,
        recipe,
        plan,
        max_paths=max_paths,
        must_support=recipe.name == AUTO and not near and is_text,
        has_ranked_paths=question.pruning is not None,
        is_remembered=bool(states),
        anyway=question.anyway,
        judge=judge,
        is_common=lambda word: tools.tokenizer.count(word) == 1,
    )
    if tools.swapping.share:
        selected = swap_some(
            selected,
            tools.swapping,
            query_id_of(question, info.snapshot),
        )

    turn_result = stages.pack(
        seed_hits,
        candidates,
        result,
        selected,
        states,
    )
    if question.window is not None:
        turn_result = _fit_window(
            turn,
            turn_result,
            question.window,
            tools.tokenizer,
        )

    ranking = rank_level(
        question.level,
        code_hits,
        turn_result.shown.passages,
    )
    shown_nodes = np.array([passage.node for passage in selected.passages], np.int64)
    if not question.mask.is_open and metered.shows_undated(shown_nodes):
        turn.because(Reason.UNDATED)

    newer = info.parts.get(NEWER, "").split()
    if any(passage.document_id in newer for passage in turn_result.shown.passages):
        turn.because(Reason.GRAPH_FOLLOWS)

    changes = stages.find_changes(turn_result)
    absence = stages.certify(seed_hits, result, turn_result)
    if isinstance(view, PartView) and view.missing():
        turn.trimmed(Reason.CAP_EXCEEDED)

    return report(
        question,
        turn,
        info.snapshot,
        turn_result,
        ranking,
        why=_why(question, info, result, selected),
        confidence=selected.confidence,
        excluded=excluded,
        absence=absence,
        changes=changes,
    )


def _ask_from(
    view: MeteredView,
    near: Sequence[str],
    parts: Sequence[Question],
) -> list[Question]:
    """The parts of a question as asked from the nodes of some ids."""
    with view.turn.stage("near") as stage:
        nodes = nodes_near(view, near)
        stage.taken = len(near)
        stage.given = len(nodes)
        stage.coverage = float(bool(nodes))

    return [replace(part, near=nodes) for part in parts]


def _why(
    question: AskedQuestion,
    info: ViewInfo,
    result: StepResult,
    selected: Selection,
) -> str:
    """What set the ranking, and what the answer did without."""
    notes = [result.why, selected.doubt]
    if info.vectors < 1.0:
        notes.insert(0, f"vectors {info.vectors:.0%}")

    unused = unused_keys(question.plan, question.recipe)
    if unused:
        notes.append(f"{question.recipe.name} does not use {', '.join(unused)}")

    return "; ".join(filter(None, notes))


def _note_conditions(
    turn: Turn,
    info: ViewInfo,
    plan: Plan,
    unused: Sequence[str],
) -> None:
    """Give the reasons that hold before anything is searched."""
    conditions = {
        Reason.VIEW_DEGRADED: info.degraded_from is not None,
        Reason.EMBEDDINGS_MISSING: info.vectors < 1.0,
        Reason.ANALYZER_MISMATCH: info.has_other_analyzer,
        Reason.KEY_UNUSED: bool(unused),
    }
    for reason in plan.reasons:
        turn.because(reason)

    for reason, holds in conditions.items():
        if holds:
            turn.because(reason)


def _check_question(question: AskedQuestion) -> None:
    if not isinstance(question.text, str):
        raise BadQuestion(f"the question is of type {type(question.text).__name__}; give a text")
    if not question.text.strip():
        raise BadQuestion("the question is empty; ask something")
    if question.mode not in MODES:
        raise BadQuestion(f"no mode is called {question.mode!r}; use one of {', '.join(MODES)}")
    if question.level not in LEVELS:
        raise BadQuestion(f"no level is called {question.level!r}; use one of {', '.join(LEVELS)}")


def _fit_window(
    turn: Turn,
    turn_result: TurnResult,
    window: WindowSize,
    tokenizer: Tokenizer,
) -> TurnResult:
    shown = turn_result.shown
    try:
        packed = pack_window(
            turn_result.packed,
            turn_result.question,
            shown.paths,
            shown.passages,
            window,
            tokenizer,
        )
    except ValueError as error:  # the question alone is longer than the window
        raise BadQuestion(str(error)) from error

    if len(packed.paths) + len(packed.passages) < len(shown.paths) + len(shown.passages):
        turn.because(Reason.PROMPT_FULL)

    return replace(turn_result, packed=packed)


def _load(tools: Tools, vector: NDArray[np.float32] | None) -> None:
    """Load models and open memory, before the turn's clock runs; `embed` reports a model that
    cannot.
    """
    loadable: list[object] = [tools.tokenizer, tools.memory]
    if vector is None:
        loadable.append(tools.embedder)

    for tool in loadable:
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
    *,
    mask: Mask = OPEN,
    vector: NDArray[np.float32] | None = None,
) -> list[Question]:
    """The question and its sub-queries, with vectors where the recipe compares them and the graph
    has the like.
    """
    if recipe.reranks:
        texts = subqueries(text, plan.q)
    else:
        texts = (text,)

    parts = [Question(part, mask=mask) for part in texts]
    embedder = tools.embedder
    if embedder is None or not (VECTOR in recipe.searches or recipe.narrows):
        return parts

    with turn.stage("embed", _EMBED_SHARE * plan.budget.latency_ms) as stage:
        model = embedder.model.tag
        stage.taken = len(parts)
        if not any(model in tags for tags in info.models.values()):
            return parts  # nothing to compare with; the seeds say so

        unknown = texts if vector is None else texts[1:]
        try:
            if unknown:
                vectors = _embed_in_time(turn, embedder, unknown)
            else:
                vectors = []
        except ProviderError:
            return parts

        if vector is not None:
            vectors.insert(0, (np.asarray(vector, np.float32), None))

        stage.given = len(vectors)
        stage.coverage = float(bool(vectors))
        for place, (part_vector, tokens) in enumerate(vectors):
            parts[place] = replace(
                parts[place],
                vector=part_vector,
                tokens=tokens,
                model=model,
            )

        return parts


def _embed_in_time(
    turn: Turn,
    embedder: Embedder,
    texts: Sequence[str],
) -> list[tuple[NDArray[np.float32], NDArray[np.float32] | None]]:
    """Vectors and states of tokens; none, with the reason, where they take longer than the stage.

    The worker is not waited for any longer; it is one of `_EMBED_WORKERS`.
    """
    if not _free_workers.acquire(timeout=max(_LEAST_WAIT_S, turn.ms_left / 1000)):
        turn.note_early_end(Reason.EMBEDDER_SLOW)
        return []

    vectors: list[tuple[NDArray[np.float32], NDArray[np.float32] | None]] = []
    failed: list[BaseException] = []

    def embed() -> None:
        try:
            vectors.extend(zip(*embed_questions(embedder, texts), strict=True))
        except BaseException as error:  # raised again by who waits
            failed.append(error)
        finally:
            _free_workers.release()

    context = contextvars.copy_context()
    worker = threading.Thread(
        target=context.run,
        args=(embed,),
        name="hades-embed",
        daemon=True,
    )
    worker.start()
    worker.join(max(_LEAST_WAIT_S, turn.ms_left / 1000))

    if failed:
        raise failed[0]
    if not vectors:
        turn.note_early_end(Reason.EMBEDDER_SLOW)

    return list(vectors)


def fetch_neighbourhood(
    graph: OpenView,
    turn: Turn,
    parts: Sequence[Question],
    near: Sequence[str] = (),
) -> GraphView:
    """A graph in memory as it is; of one over a network what lies around the question, so that both
    are read alike.
    """
    if isinstance(graph, RemoteView):
        return _fetch(graph, turn, parts, near, HOPS).view
    return graph


def _fetch(
    graph: RemoteView,
    turn: Turn,
    parts: Sequence[Question],
    near: Sequence[str],
    hops: int,
) -> Neighbourhood:
    """What lies around a question, counted against its turn."""
    with turn.stage("fetch") as stage:
        neighbourhood = graph.around(
            [part.text for part in parts],
            [part.vector for part in parts if part.vector is not None],
            parts[0].model,
            near,
            turn.ms_left / 1000,
            hops=hops,
            mask=parts[0].mask,
        )
        turn.round_trips += neighbourhood.round_trips
        stage.given = sum(neighbourhood.view.info.nodes.values())
        stage.coverage = 1.0

    if neighbourhood.is_late:
        turn.because(Reason.TIMEOUT)
    if neighbourhood.is_cut:
        turn.trimmed(Reason.CAP_EXCEEDED)
    if neighbourhood.saw_write:
        turn.because(Reason.VIEW_DEGRADED)

    return neighbourhood


@dataclass(frozen=True)
class _Stages:
    """The stages of one turn, over what they share; what one hands to the next goes between
    them.
    """

    view: MeteredView
    parts: Sequence[Question]
    question: AskedQuestion
    tools: Tools

    @property
    def plan(self) -> Plan:
        return self.question.plan

    @property
    def least_paths(self) -> int:
        """Paths to look for beyond those that explain passages: all that the plan allows, where the
        caller asks for a number of paths.
        """
        if self.question.max_paths is None:
            return 0
        return self.plan.graph.beam

    def seed(self, *, ahead: bool = False) -> SeedHits:
        """Search where the turn starts; `ahead`, what a step that starts itself will ask for."""
        arguments = (self.view, self.parts, self.plan, self.question.recipe.searches)
        with self.view.turn.stage("seeds", self.plan.retriever.timeout_ms):
            if ahead:
                seed_hits = search_ahead(*arguments)
            else:
                seed_hits = find_seeds(*arguments)

        if not seed_hits.seeds and not ahead:
            self.view.turn.because(Reason.NO_ENTITY_MATCH)

        return seed_hits

    def starts_of(self, result: StepResult) -> SeedHits:
        """Where the step started; where it found nothing, what the seeds bring up is all there
        is.
        """
        if result.passages is None:
            return self.seed()

        stage = next(stage for stage in self.view.turn.stages if stage.name == "seeds")
        stage.given = len(result.seeds)
        stage.coverage = len(result.seeds) / self.plan.retriever.k
        return SeedHits(result.seeds, ())

    def walk(
        self,
        seed_hits: SeedHits,
        judge: Judge,
        explains: bool,
    ) -> tuple[CandidateGraph | None, StepResult]:
        """Narrow and go through the graph; both share the time of the graph stage. Without hops it
        stays out of it.
        """
        view = self.view
        plan = self.plan
        tools = self.tools
        recipe = self.question.recipe

        if recipe.name not in STEPS or plan.graph.hops == 0:
            return None, StepResult()

        question = self.parts[0]
        ms_left = float(plan.graph.timeout_ms)
        candidates = None

        if recipe.narrows:
            with view.turn.stage("narrow", ms_left) as stage:
                candidates = narrow(view, question, tools.rules)
                stage.given = len(candidates.nodes) if candidates is not None else 0
                stage.coverage = min(1.0, stage.given / tools.rules.cand_cap)

            ms_left = max(0.0, ms_left - stage.ms)

        with view.turn.stage("graph", ms_left) as stage:
            starts: list[Seed] = []
            if seed_hits.seeds:
                starts = entry_points(
                    view,
                    question,
                    seed_hits.seeds,
                    plan.retriever.k,
                )
            if not starts and (question.near or not recipe.starts_itself):
                view.turn.because(Reason.NO_ENTITY_MATCH)

            stage.taken = len(starts)
            start = Start(
                seed_hits,
                starts,
                candidates,
                plan,
                tools.rules,
                mode=self.question.mode,
                beliefs=tools.beliefs,
                judge=judge,
                parts=self.parts,
                walk=tools.walk,
                explains=explains,
                least_paths=self.least_paths,
            )
            result = STEPS[recipe.name](view, question, start)

            if view.only is not None:
                if result.passages is not None:
                    result = replace(result, passages=passages_inside(view, result.passages))
                result = replace(result, paths=paths_inside(view, result.paths))

            stage.taken += result.candidates
            stage.given = len(result.paths)
            stage.repeats = result.repeats
            stage.coverage = result.coverage

        return candidates, result

    def prune(self, result: StepResult, pruning: FlowPruning) -> StepResult:
        """The paths that carry enough flow."""
        with self.view.turn.stage("prune") as stage:
            paths = prune_by_flow(self.view, result.paths, pruning)
            stage.taken = len(result.paths)
            stage.given = len(paths)
            stage.coverage = stage.given / stage.taken

        if not paths:
            self.view.turn.because(Reason.NO_PATHS)

        return replace(result, paths=paths)

    def join_code(
        self,
        code: SnapshotCode | None,
        seed_hits: SeedHits,
        result: StepResult,
    ) -> tuple[StepResult, CodeHits | None]:
        """What was reached, joined with what the search of code found; None where there is no code
        or nothing in it.
        """
        if code is None:
            return result, None

        limit = self.plan.reranker.m
        question = self.parts[0]
        hits = find_code(
            self.view,
            code,
            question,
            max(limit, RANKED),
        )

        if not hits.units:
            return result, None

        passages = seed_hits.passages if result.passages is None else result.passages
        joined = join_code(
            self.view,
            code,
            hits,
            question.text,
            passages,
            limit=limit,
        )
        return replace(
            result,
            passages=joined,
            is_ranked=True,
        ), hits

    def explain(self, result: StepResult) -> StepResult:
        """The paths that lead to passages of code and of text in the order in which both are
        shown.
        """
        view = self.view
        with view.turn.stage("paths", self.plan.graph.timeout_ms) as stage:
            explained = explain_first(
                view,
                self.parts[0],
                result,
                self.plan,
                self.tools.rules,
                least_paths=self.least_paths,
            )
            if view.only is not None:
                explained = replace(explained, paths=paths_inside(view, explained.paths))

            stage.taken = len(result.passages or ())
            stage.given = len(explained.paths)
            stage.coverage = float(bool(explained.paths))

        return explained

    def _topics(
        self,
        candidates: CandidateGraph | None,
        paths: Sequence[FoundPath],
        passages: Sequence[FoundPassage],
    ) -> Sequence[NarrowedTopic]:
        """The topics that the search was narrowed to; of the default recipe, which is not, those of
        what it found.
        """
        if candidates is not None:
            return candidates.shown(_SHOWN_TOPICS)
        if self.question.recipe.name != AUTO or Reason.ABSTAINED in self.view.turn.reasons:
            return ()

        return topics_of(self.view, self.parts[0], paths, passages)

    def pack(
        self,
        seed_hits: SeedHits,
        candidates: CandidateGraph | None,
        result: StepResult,
        selected: Selection,
        states: Sequence[MemoryHit],
    ) -> TurnResult:
        """Read what is handed over, place remembered states among the passages, and write the
        prompt.
        """
        view = self.view
        plan = self.plan
        question = self.parts[0]
        paths = selected.paths
        passages = selected.passages

        with view.turn.stage("pack") as stage:
            stage.taken = len(paths) + len(passages)
            topics = self._topics(candidates, paths, passages)
            if topics and view.hides_later:
                topics = ()
                view.turn.because(Reason.TOPICS_LATER)

            counts = QuickCounts(self.tools.tokenizer)
            shown: AnswerParts = show(view, counts, paths, passages, topics)
            path_limit = min(plan.final_context, plan.graph.beam)

            if self.question.max_paths is not None:
                path_limit = min(path_limit, self.question.max_paths)

            shown = place_states(shown, question.text, states)
            shown = add_memory_paths(
                view,
                counts,
                question,
                states,
                shown,
                path_limit,
            )
            packed = pack(
                counts,
                shown.paths,
                shown.passages,
                shown.topics,
                prompt_tokens=plan.budget.tokens_max,
                final_context=plan.final_context,
            )
            stage.given = len(packed.paths) + len(packed.passages)

            if stage.given < min(len(shown.paths) + len(shown.passages), plan.final_context):
                view.turn.trimmed(Reason.PROMPT_FULL)

            turn_result = TurnResult(
                question.text,
                seeds=seed_hits.seeds,
                candidates=candidates,
                paths=paths,
                passages=passages,
                shown=shown,
                packed=packed,
                bridges=result.bridges,
            )
            spoken_count, question_count = turn_result.words
            stage.coverage = spoken_count / question_count if question_count else 0.0

        return turn_result

    def find_changes(self, turn_result: TurnResult) -> ChangeReport | None:
        """What changed, for a question that asks it; then it is answered. Whoever may see only a
        part of the corpus is told nothing: of a page that is gone nobody knows who might read it.
        """
        only = self.view.only
        if only is not None and only.within is not None:
            return None

        asked_at = self.question.mask.as_of or self.question.at
        asked = read_change_question(self.question.text, asked_at)
        if asked is None:
            return None

        tools = self.tools
        passages = turn_result.shown.passages
        changes = find_changes(
            self.view,
            tools.changes,
            tools.memory,
            asked,
            passages,
        )
        reasons = self.view.turn.reasons

        if changes and (changes.statements or changes.mentions) and Reason.ABSTAINED in reasons:
            reasons.remove(Reason.ABSTAINED)

        return changes

    def certify(
        self,
        seed_hits: SeedHits,
        result: StepResult,
        turn_result: TurnResult,
    ) -> AbsenceCertificate | None:
        """What was searched, for an answer that is empty or abstains; None for another."""
        turn = self.view.turn
        shown = turn_result.shown
        is_empty = not (shown.passages or shown.paths)

        if is_empty and turn.is_cut_short:
            turn.because(Reason.UNFINISHED)
            return None

        if not is_empty and Reason.ABSTAINED not in turn.reasons:
            return None

        ranked = seed_hits.passages if result.passages is None else result.passages
        has_memory = self.tools.memory is not None
        return certify_absence(
            self.view,
            self.parts[0],
            ranked,
            shown.passages,
            memory=has_memory,
        )
