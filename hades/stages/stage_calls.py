"""The stages after ingestion, one call each: every one skips itself when nothing it works from has changed."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Any

from hades.build_state import ledger
from hades.snapshot.pointer import served
from hades.stages.bridges.bridge_rules import bridge_rules_of
from hades.stages.bridges.build_bridges import BridgeRules, build_bridges
from hades.stages.build_context import BuildContext, Mode, derivation, generation_of
from hades.stages.ranker.ranker_questions import QUESTIONS, too_few_judgements
from hades.stages.topics.build_topics import build_hierarchy
from hades.stages.topics.topic_rules import HierarchyRules
from hades.stages.weights.weigh_edges import weigh_relations
from hades.stages.weights.weight_rules import WeightRules, rules_of

if TYPE_CHECKING:
    from hades.stages.ranker.train_ranker import QuestionSet

RANKER_SECONDS = 300  # what training takes at most on a graph of a size to be expected


def build_topics(
    context: BuildContext, as_of: datetime, mode: Mode = "auto", rules: HierarchyRules | None = None
) -> dict[str, Any]:
    """Topics and super-topics over all entities."""
    report = build_hierarchy(
        context.store,
        rules or HierarchyRules(),
        model=context.model,
        inputs=derivation(context),
        as_of=as_of,
        mode=mode,
        language_model=context.language_model,
        progress=context.progress,
    )
    return report.as_dict()


def weigh(context: BuildContext, as_of: datetime, rules: WeightRules | None = None) -> dict[str, Any]:
    """Weight and cost of every relation, weight of every mention, with what judged answers taught."""
    report = weigh_relations(
        context.store,
        rules or rules_of(context.path, context.learning),
        model=context.model,
        inputs=derivation(context),
        as_of=as_of,
        progress=context.progress,
    )
    return report.as_dict()


def bridge(
    context: BuildContext,
    as_of: datetime,
    deadline: Callable[[], bool] = lambda: False,
    rules: BridgeRules | None = None,
) -> dict[str, Any]:
    """Edges between topics marked, and the hot paths between them computed ahead."""
    hierarchy = ledger.complete(context.store, ledger.HIERARCHY)
    report = build_bridges(
        context.store,
        rules or bridge_rules_of(context.path),
        inputs=ledger.digest_of(generation_of(context, ledger.HIERARCHY), generation_of(context, ledger.WEIGHTS)),
        generation=generation_of(context, ledger.WEIGHTS),
        as_of=as_of,
        moved=[one["cluster"] for one in (hierarchy.report["moving"] if hierarchy else ())],
        anew=hierarchy is not None and hierarchy.report["mode"] == "full",
        deadline=deadline,
        progress=context.progress,
    )
    return report.as_dict()


def train(
    context: BuildContext, as_of: datetime, sets: Sequence[QuestionSet] = (), *, seconds_left: float | None = None
) -> dict[str, Any]:
    """A ranker from labelled questions and judged answers, asked of the graph that serves now.

    Without sets the file of questions under HADES_HOME is one, where there is one. It is left for another night when
    the time box is nearly spent: what serves goes on serving.
    """
    if seconds_left is not None and seconds_left < RANKER_SECONDS:
        return {
            "skipped": True,
            "why": f"{seconds_left:.0f} s of the time box are left, too few to train",
        }
    if context.open_tools is None or not served(context.home):
        return {"skipped": True, "why": "nothing is published that questions could be asked of"}
    own = context.home / QUESTIONS
    if not sets and not own.is_file() and (why := too_few_judgements(context.store)):
        return {"skipped": True, "why": why}
    from hades.stages.ranker.train_ranker import QuestionSet, train_ranker  # all of retrieval and more

    chosen = list(sets) or ([QuestionSet(own)] if own.is_file() else [])
    return train_ranker(context, context.open_tools(), chosen, as_of)
