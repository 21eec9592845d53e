"""Questions asked again, to be learned from: what the searches, the walks and the paths brought up for each.

The judge that serves is replaced by one that ranks by hand and remembers what it was given, so a ranker is fitted to
exactly what it will be asked about.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING

import numpy as np

from hades.ports.progress import Progress, silent
from hades.ports.view import GraphView
from hades.retrieval.ranking.judge import ByHand, ranks_of
from hades.retrieval.ranking.learned_ranker import LearnedJudge
from hades.retrieval.ranking.multihop_reranker import Pool
from hades.retrieval.ranking.sentence_match import Floats, QuestionWords
from hades.retrieval.turn.metered_view import MeteredView
from hades.retrieval.turn.pipeline import Tools, retrieve
from hades.retrieval.turn.types import FoundPassage, FoundPath, Question
from hades.retrieval.walks.second_hop import ReachState
from hades.snapshot.ranker_part import graph_of
from hades.stages.ranker.ranker_questions import LabelledQuestion
from hades.telemetry.turn import Caps, Turn
from models.ranker.infer import RankerModel, node_states
from schemas.plan import Plan, Profile

if TYPE_CHECKING:
    from collections.abc import Mapping

SEARCHED, WALKED = "hirag_pathrag", "hipporag"  # the recipes whose candidates are learned from
PLAN = Plan(profile=Profile.EVALUATION)
_MOMENT = datetime(2026, 1, 1, tzinfo=UTC)  # a replay stands still in time
_CAPS = Caps(docs_max=100_000, work_max=2_000_000_000, latency_ms=3_600_000)


@dataclass(frozen=True)
class ReplayedQuestion:
    """A question with what was brought up for it, and the documents as they are ranked by hand, by recipe."""

    asked: LabelledQuestion
    question: Question
    found: tuple[FoundPassage, ...]
    m: int
    nodes: tuple[int, ...]
    pool: Pool | None
    want: QuestionWords | None
    paths: tuple[FoundPath, ...]
    texts: tuple[str, ...]
    by_hand: Mapping[str, tuple[str, ...]]
    path_documents: tuple[frozenset[str], ...]
    gold: frozenset[str]


def replay(
    view: GraphView, tools: Tools, questions: Sequence[LabelledQuestion], progress: Progress = silent
) -> list[ReplayedQuestion]:
    """Ask every question by both recipes."""
    asked = []
    for number, question in enumerate(questions, 1):
        asked.append(_replay(view, tools, question))
        progress("replay", number, len(questions))
    return asked


def offline(view: GraphView) -> MeteredView:
    """A view for training: nothing it looks at is rationed."""
    return MeteredView(view, Turn(_CAPS))


class Recorder(ByHand):
    """Ranks by hand and remembers what it was given."""

    def __init__(self) -> None:
        self.question: Question | None = None
        self.found: tuple[FoundPassage, ...] = ()
        self.m = 0
        self.walk: tuple[tuple[int, ...], Pool, QuestionWords] | None = None
        self.routes: tuple[FoundPath, ...] = ()
        self.texts: tuple[str, ...] = ()

    def passages(
        self, view: MeteredView, question: Question, found: Sequence[FoundPassage], m: int
    ) -> list[FoundPassage]:
        """See `Judge.passages`."""
        self.question, self.found, self.m = question, tuple(found), m
        return super().passages(view, question, found, m)

    def walked(self, question: Question, nodes: Sequence[int], pool: Pool, want: QuestionWords) -> Floats:
        """See `Judge.walked`."""
        self.question, self.walk = question, (tuple(nodes), pool, want)
        return super().walked(question, nodes, pool, want)

    def paths(
        self, view: MeteredView, question: Question, paths: Sequence[FoundPath], texts: Sequence[str]
    ) -> list[FoundPath]:
        """See `Judge.paths`."""
        self.routes, self.texts = tuple(paths[: len(texts)]), tuple(texts)
        return super().paths(view, question, paths, texts)


def _replay(view: GraphView, tools: Tools, asked: LabelledQuestion) -> ReplayedQuestion:
    by_hand: dict[str, tuple[str, ...]] = {}
    recorder = Recorder()
    remembering = replace(tools, judge=lambda view, question: recorder)
    for recipe in (SEARCHED, WALKED):
        answer = retrieve(view, asked.text, remembering, at=_MOMENT, recipe=recipe, plan=PLAN)
        by_hand[recipe] = tuple(dict.fromkeys(passage.document for passage in answer.passages))
    nodes, pool, want = recorder.walk or ((), None, None)
    documents = tuple(
        frozenset(edge.document for edge in view.edges(np.array(path.edges, np.int64)) if edge.document)
        for path in recorder.routes
    )
    question = recorder.question or Question(asked.text)
    liked = view.number(sorted(asked.good))
    judged = {passage.document for passage in view.passages(liked[liked >= 0])}
    return ReplayedQuestion(
        asked, question, recorder.found, recorder.m, nodes, pool, want, recorder.routes, recorder.texts, by_hand,
        documents, asked.gold | judged,
    )  # fmt: skip


def rank_by(
    model: RankerModel, graphs: Sequence[tuple[GraphView, Sequence[ReplayedQuestion]]]
) -> dict[str, list[tuple[str, ...]]]:
    """What a fitted model makes of the same candidates: documents best first, by recipe, cases one after the other."""
    found: dict[str, list[tuple[str, ...]]] = {SEARCHED: [], WALKED: []}
    for view, cases in graphs:
        graph = graph_of(view, str(model.signature["model"]))
        states = node_states(model, graph.features, graph.starts, graph.targets)
        for case in cases:
            asked = model.question_state(np.asarray(case.question.vector, np.float32))
            judge = LearnedJudge(model, ReachState(states, asked))
            passages = judge.passages(offline(view), case.question, case.found, case.m)
            found[SEARCHED].append(_documents(view, [one.node for one in passages]))
            nodes = list(case.nodes)
            if case.pool is not None and case.want is not None and nodes:
                worth = judge.walked(case.question, nodes, case.pool, case.want)
                nodes = [nodes[place] for place in ranks_of(worth)]
            found[WALKED].append(_documents(view, nodes))
    return found


def _documents(view: GraphView, nodes: Sequence[int]) -> tuple[str, ...]:
    read = view.passages(np.array(nodes, np.int64))
    return tuple(dict.fromkeys(one.document for one in read))
