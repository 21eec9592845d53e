"""The stage `topics`: found, described, journalled and written in one transaction; skipped on unchanged inputs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from datetime import datetime
from typing import Any

import numpy as np

from hades import build_state
from hades.build.context import BuildContext, Mode, derivation
from hades.build.stage import EDGES, TOPICS, Stage
from hades.build.topics.cluster import BUCKET, Hierarchy, find_hierarchy
from hades.build.topics.inputs import VERSION, HierarchyReport, HierarchyRules, read_material
from hades.build.topics.outline import read_outline
from hades.build.topics.rows import (
    COLLECTIONS,
    gone_by_topic,
    make_rows,
    moves_between,
    moving_topics,
    read_previous,
    topic_drift,
    write_rows,
)
from hades.build.topics.wording import Wording, Writer, describe_clusters
from hades.ports.services import LanguageModel, ProgressReport, silent
from hades.ports.store import GraphStore

BIGGEST = 10
STEPS = 5
_LASTING = ("build", "generation", "entities", "topics", "supertopics", "noise", "unplaced", "drift", "biggest")


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
    """Give every entity exactly one topic, and every topic a name, a summary and the key of the one it continues.

    `model` is the tag of the vectors that are compared, `inputs` a digest of everything this stage reads. Nothing is
    done when the last completion had the same, unless `mode` is "full".
    """
    digest = build_state.digest_of(
        inputs, asdict(rules), model, language_model.model if language_model else "", VERSION
    )
    last = build_state.complete(store, build_state.HIERARCHY)
    if last is not None and last.digest == digest and mode != "full":
        return _skip(last.report)
    material, previous = read_material(store, model), read_previous(store)
    progress("hierarchy", 1, STEPS)
    found = find_hierarchy(material, read_outline(store, material, model, rules), previous, rules)
    progress("hierarchy", 2, STEPS)
    writer = Writer(store, material, found, previous, rules, model, language_model)
    topics, above = describe_clusters(writer)
    progress("hierarchy", 3, STEPS)
    drift, sizes = topic_drift(found, previous), found.sizes()
    rows = make_rows(material, found, topics, above, drift, rules, model)
    moves, gone = moves_between(material, found), gone_by_topic(material, previous)
    now, before = set(found.topics), {key for key, row in previous.items() if row["level"] == 1}
    report = HierarchyReport(
        mode="full",
        why="something it depends on changed" if last else "there is no earlier hierarchy",
        build=build_state.digest_of(digest, last.generation if last else "")[:25],
        generation=rows.generation,
        entities=len(material),
        topics=len(found.topics),
        supertopics=len(found.above),
        noise=int(np.count_nonzero(found.noise)),
        unplaced=int(sizes[found.topics.index(BUCKET)]) if BUCKET in now else 0,
        moved=sum(move.left is not None for move in moves),
        placed=sum(move.left is None for move in moves),
        gone=gone.total(),
        topics_new=len(now - before),
        topics_gone=len(before - now),
        topics_kept=len(now & before),
        drift=round(float((drift * sizes).sum() / max(1, sizes.sum())), 6),
        moving=moving_topics(found, moves, gone),
        biggest=_list_biggest(found, topics),
        summaries_written=len(writer.written),
    )
    progress("hierarchy", 4, STEPS)
    with store.bulk(COLLECTIONS) as inside:
        write_rows(inside, rows, moves, build=report.build, at=as_of, present=set(material.keys))
        done = build_state.StageCompletion(build_state.HIERARCHY, digest, report.generation, as_of, asdict(report))
        build_state.record(inside, done)
    progress("hierarchy", 5, STEPS)
    return report


def _skip(last: Mapping[str, Any]) -> HierarchyReport:
    """The report of a build that had nothing to do, from the one that still stands."""
    why = "nothing it depends on changed since the last build"
    kept = {name: last[name] for name in _LASTING}
    return HierarchyReport(mode="skipped", why=why, topics_kept=last["topics"], **kept)


def _list_biggest(found: Hierarchy, topics: Sequence[Wording]) -> list[dict[str, Any]]:
    rows = [
        {"cluster": key, "name": said.name, "size": size}
        for key, said, size in zip(found.topics, topics, found.sizes().tolist(), strict=True)
    ]
    return sorted(rows, key=lambda row: (-row["size"], row["cluster"]))[:BIGGEST]


def build_topics(context: BuildContext, as_of: datetime, mode: Mode = "auto") -> dict[str, Any]:
    """Topics and super-topics over all entities."""
    report = build_hierarchy(
        context.store,
        HierarchyRules(),
        model=context.model,
        inputs=derivation(context),
        as_of=as_of,
        mode=mode,
        language_model=context.language_model,
        progress=context.progress,
    )
    return asdict(report)


STAGE = Stage(
    "topics",
    "build topics",
    # Once the time box is over topics are not built again without need.
    lambda context, ingest, night: build_topics(context, night.as_of, "auto" if night.is_over else night.mode),
    lambda report: f"{report['mode']}: {report['why']}; {report['topics']:,} topics, {report['moved']:,} moved",
    lambda report: (list(report["biggest"]), f"the largest topics; {report['mode']}: {report['why']}"),
    reads=("doc_chunks", *EDGES),
    writes=TOPICS,
    needs=("edges",),
    contracts=("hierarchy",),
    made_of={
        "clusters.centroid": ("entities.embedding",),
        "clusters.name": ("entities.name", "mentions.count"),
        "clusters.summary": ("doc_chunks.text", "mentions.count"),
        "cluster_membership_journal.cluster_id": ("entities.embedding", "relations.type"),
    },
    ledger=build_state.HIERARCHY,
)
