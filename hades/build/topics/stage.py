"""Decide, word, write topics."""

from __future__ import annotations

from dataclasses import asdict, dataclass, replace
from datetime import datetime
from typing import Any, Literal

import numpy as np

from hades import build_state
from hades.build.contracts.check import keep_results
from hades.build.topics.cluster import (
    BUCKET,
    Shape,
    build_whole_hierarchy,
    changes_since,
    mean_drift,
    reassign,
    too_far,
    too_many_changes,
)
from hades.build.topics.inputs import (
    VERSION,
    HierarchyReport,
    HierarchyRules,
    Material,
    PreviousHierarchy,
    Stopwatch,
    TopicSize,
    read_material,
    read_standing,
)
from hades.build.topics.rows import (
    COLLECTIONS,
    WRITTEN,
    Entry,
    Move,
    gone_by_topic,
    make_rows,
    moves_between,
    moving_topics,
    write_rows,
)
from hades.build.topics.wording import Wording, Writer, keep_wording, outdated, terms_said, word_above, word_topics
from hades.ports.services import LanguageModel, ProgressReport, silent
from hades.ports.store import GraphStore

# The stage `topics`: skipped while its inputs are unchanged; what does the work is loaded only when there is some.


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
    progress: ProgressReport = silent,
) -> HierarchyReport:
    """Give every entity exactly one topic; `auto` updates after a small change and rebuilds after a large one.

    `model` is the tag of the vectors that are compared, `inputs` a digest of everything this stage reads. Nothing is
    done when the last completion had the same; a full build is repeated only where the last one was an update.
    """
    writes_with = language_model.model if language_model else ""
    params = build_state.digest_of(asdict(rules), model, writes_with, VERSION)
    digest = build_state.digest_of(inputs, params)
    last = build_state.complete(store, build_state.HIERARCHY)
    if last is not None and last.digest == digest and (mode != "full" or last.report["mode"] == "full"):
        return _skip(last)

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


def _skip(last: build_state.StageCompletion) -> HierarchyReport:
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


# Topics over all entities: rebuilt or updated, worded, journalled and written in one transaction.


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
    progress: ProgressReport,
) -> HierarchyReport:
    """Read entities and relations, decide on the topics, word them, and write what changed in one transaction."""
    last = build_state.complete(store, build_state.HIERARCHY)
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
    build = build_state.digest_of(digest, last.generation if last else "")[:25]
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
        done = build_state.StageCompletion(build_state.HIERARCHY, digest, report.generation, as_of, report.as_record())
        build_state.record(inside, done)
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
