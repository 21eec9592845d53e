"""Topics over all entities: rebuilt or updated, worded, journalled and written in one transaction."""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any, Literal

import numpy as np

from hades.build_state import ledger
from hades.ports.progress import Progress
from hades.ports.store import GraphStore
from hades.ports.text import LanguageModel
from hades.stages.contracts.last_result import keep_results
from hades.stages.topics.drift import mean_drift, too_far, too_many_changes
from hades.stages.topics.local_update import changes_since, reassign
from hades.stages.topics.membership_journal import Move, gone_by_topic, moves_between, moving_topics
from hades.stages.topics.previous_hierarchy import PreviousHierarchy, read_standing
from hades.stages.topics.topic_inputs import Material, read_material
from hades.stages.topics.topic_report import HierarchyReport, Stopwatch, TopicSize
from hades.stages.topics.topic_rows import COLLECTIONS, WRITTEN, Entry, make_rows, write_rows
from hades.stages.topics.topic_rules import HierarchyRules
from hades.stages.topics.topic_wording import (
    Wording,
    Writer,
    keep_wording,
    outdated,
    terms_said,
    word_above,
    word_topics,
)
from hades.stages.topics.tree_shape import BUCKET, Shape

Mode = Literal["auto", "full", "incremental"]
BIGGEST = 10
STEPS = 5


@dataclass(frozen=True)
class _Decision:
    """The hierarchy that is to stand, which way it was made and why, and what has changed since the last full one."""

    shape: Shape
    mode: Literal["full", "incremental"]
    why: str
    drift: float
    entities_at_full: int
    changed_since_full: int


def make_hierarchy(
    store: GraphStore,
    rules: HierarchyRules,
    *,
    model: str,
    digest: str,
    params: str,
    as_of: datetime,
    mode: Mode,
    language_model: LanguageModel | None,
    progress: Progress,
) -> HierarchyReport:
    """Read entities and relations, decide on the topics, word them, and write what changed in one transaction."""
    last = ledger.complete(store, ledger.HIERARCHY)
    watch = Stopwatch()
    with watch.step("read"):
        material, standing = read_material(store, model), read_standing(store)
    progress("hierarchy", 1, STEPS)
    with watch.step("topics"):
        gone = gone_by_topic(material, standing)
        decided = _decide(material, standing, rules, model, mode, params, last.report if last else {}, gone.total())
    progress("hierarchy", 2, STEPS)
    moves = moves_between(material, decided.shape, decided.mode)
    writer = Writer(store, material, standing, rules, model, language_model)
    with watch.step("words"):
        moving = moving_topics(decided.shape, moves, gone)
        topics, above = _words(writer, decided, {one.cluster for one in moving})
    progress("hierarchy", 3, STEPS)
    rows = make_rows(material, decided.shape, topics, above, rules, model, standing)
    build = ledger.digest_of(digest, last.generation if last else "")[:25]
    report = replace(
        _report(decided, standing, moves, topics),
        moving=moving,
        gone=gone.total(),
        build=build,
        generation=rows.generation,
        summaries_written=len(writer.written),
        params=params,
    )
    progress("hierarchy", 4, STEPS)
    with watch.step("write"), store.bulk(COLLECTIONS) as inside, keep_results(inside, WRITTEN):
        write_rows(inside, rows, standing, moves, Entry(build, as_of, set(material.keys)))
        done = ledger.StageCompletion(ledger.HIERARCHY, digest, report.generation, as_of, report.as_record())
        ledger.record(inside, done)
    progress("hierarchy", 5, STEPS)
    return replace(report, seconds=watch.seconds)


def _decide(
    material: Material,
    standing: PreviousHierarchy,
    rules: HierarchyRules,
    model: str,
    mode: Mode,
    params: str,
    last: dict[str, Any],
    gone: int,
) -> _Decision:
    """Repair the standing hierarchy where that is allowed and enough; otherwise build in full, and say why."""
    drift = 0.0
    why = _why_not_local(standing, mode, params, last)
    if why is None:
        changes = changes_since(material, standing, gone)
        entities_at_full, changed = last["entities_at_full"], last["changed_since_full"] + changes.total
        why = too_many_changes(changed, entities_at_full, rules)
        if why is None or mode == "incremental":
            shape = reassign(material, standing, rules, changes)
            drift = mean_drift(shape.drift, shape.sizes())
            why = why or too_far(drift, rules)
            if why is None or mode == "incremental":
                said = (
                    f"{changes.fresh} new, {changes.altered} changed and {changes.gone} gone entities: placed locally"
                )
                said += f", drift {drift:.4f}" + (f"; a full build is due: {why}" if why else "")
                return _Decision(shape, "incremental", said, drift, entities_at_full, changed)
    from hades.stages.topics.full_build import (
        build_whole_hierarchy,
    )  # clustering libraries, which a small change does not need

    return _Decision(build_whole_hierarchy(material, standing, rules, model), "full", why, drift, len(material), 0)


def _why_not_local(standing: PreviousHierarchy, mode: Mode, params: str, last: dict[str, Any]) -> str | None:
    """Why there is nothing to repair; None when there is."""
    if mode == "full":
        return "a full build was asked for"
    if not last or not standing.topics:
        return "there is no earlier hierarchy"
    if last["params"] != params:
        return "the rules, the embedding model, the language model or the version changed"
    return None


def _words(writer: Writer, decided: _Decision, moving: set[str]) -> tuple[list[Wording], list[Wording]]:
    """What is said of each topic and super-topic; in a repair only where members moved or a quote is out of date."""
    shape, standing = decided.shape, writer.standing
    touched = _find_touched(writer, shape, moving) if decided.mode == "incremental" else {*shape.topics, *shape.above}
    if not touched:
        return [keep_wording(standing, key) for key in shape.topics], [
            keep_wording(standing, key) for key in shape.above
        ]
    said = terms_said(writer.material, shape)
    fresh = word_topics(writer, shape, said, [n for n, key in enumerate(shape.topics) if key in touched])
    topics = [fresh[n] if n in fresh else keep_wording(standing, key) for n, key in enumerate(shape.topics)]
    raised = word_above(writer, shape, said, topics, [n for n, key in enumerate(shape.above) if key in touched])
    return topics, [raised[n] if n in raised else keep_wording(standing, key) for n, key in enumerate(shape.above)]


def _find_touched(writer: Writer, shape: Shape, moving: set[str]) -> set[str]:
    """Clusters that are new, gained or lost a member, quote what has changed, or are above one of these."""
    standing = writer.standing
    touched = moving | outdated(writer.store, standing)
    touched |= {key for key in (*shape.topics, *shape.above) if key not in standing.clusters}
    for number, key in enumerate(shape.topics):
        if shape.above and key in touched:
            touched.add(shape.above[shape.parents[number]])
    return touched | {row["parent"] for key, row in standing.clusters.items() if key in touched and row["parent"]}


def _report(
    decided: _Decision, standing: PreviousHierarchy, moves: list[Move], topics: list[Wording]
) -> HierarchyReport:
    shape, sizes = decided.shape, decided.shape.sizes()
    now, before = set(shape.topics), set(standing.topics)
    largest = sorted(range(len(topics)), key=lambda number: (-sizes[number], shape.topics[number]))[:BIGGEST]
    return HierarchyReport(
        mode=decided.mode,
        why=decided.why,
        entities=len(shape.labels),
        topics=len(shape.topics),
        supertopics=len(shape.above),
        noise=int(np.count_nonzero(shape.noise)),
        unplaced=int(sizes[shape.topics.index(BUCKET)]) if BUCKET in now else 0,
        moved=sum(move.left is not None for move in moves),
        placed=sum(move.left is None for move in moves),
        topics_new=len(now - before),
        topics_gone=len(before - now),
        topics_kept=len(now & before),
        drift=decided.drift,
        biggest=tuple(TopicSize(shape.topics[number], topics[number].name, int(sizes[number])) for number in largest),
        entities_at_full=decided.entities_at_full,
        changed_since_full=decided.changed_since_full,
    )
