"""The stage `topics`: skipped while its inputs are unchanged; what does the work is loaded only when there is some."""

from __future__ import annotations

from dataclasses import asdict
from datetime import datetime
from typing import Literal

from hades.build_state import ledger
from hades.ports.progress import Progress, silent
from hades.ports.store import GraphStore
from hades.ports.text import LanguageModel
from hades.stages.topics.topic_report import HierarchyReport, TopicSize
from hades.stages.topics.topic_rules import VERSION, HierarchyRules

Mode = Literal["auto", "full", "incremental"]


def build_hierarchy(
    store: GraphStore,
    rules: HierarchyRules,
    *,
    model: str,
    inputs: str,
    as_of: datetime,
    mode: Mode = "auto",
    language_model: LanguageModel | None = None,
    progress: Progress = silent,
) -> HierarchyReport:
    """Give every entity exactly one topic; `auto` updates after a small change and rebuilds after a large one.

    `model` is the tag of the vectors that are compared, `inputs` a digest of everything this stage reads. Nothing is
    done when the last completion had the same; a full build is repeated only where the last one was an update.
    """
    writes_with = language_model.model if language_model else ""
    params = ledger.digest_of(asdict(rules), model, writes_with, VERSION)
    digest = ledger.digest_of(inputs, params)
    last = ledger.complete(store, ledger.HIERARCHY)
    if last is not None and last.digest == digest and (mode != "full" or last.report["mode"] == "full"):
        return _skip(last)
    from hades.stages.topics.make_topics import make_hierarchy  # scipy and more

    return make_hierarchy(
        store,
        rules,
        model=model,
        digest=digest,
        params=params,
        as_of=as_of,
        mode=mode,
        language_model=language_model,
        progress=progress,
    )


def _skip(last: ledger.StageCompletion) -> HierarchyReport:
    """Nothing to do: the counts of the last build, nothing moved."""
    held = {
        name: last.report[name]
        for name in ("build", "entities", "topics", "supertopics", "noise", "unplaced", "drift", "params")
    }
    return HierarchyReport(
        mode="skipped",
        why="nothing it depends on changed since the last build",
        generation=last.generation,
        topics_kept=last.report["topics"],
        biggest=tuple(TopicSize(**one) for one in last.report["biggest"]),
        entities_at_full=last.report["entities_at_full"],
        changed_since_full=last.report["changed_since_full"],
        **held,
    )
