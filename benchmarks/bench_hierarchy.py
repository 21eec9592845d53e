"""Topics beside plain HDBSCAN and plain Leiden, and what a small change of the corpus moves.

    python benchmarks/bench_hierarchy.py [--home FOLDER] [--json FILE]

`--home` (by default HADES_HOME) is a home into which `arxiv/papers.jsonl.gz` was ingested, with any
embedder; it is copied and never written to. Agreement is the normalised mutual information between
groups and the first arXiv category, over the papers; noise is one group of its own. It favours few
groups, so the number of groups stands beside.

Plain HDBSCAN runs on principal components of the same vectors with the same minimum size and
samples, at several dimensions and with both ways of selecting groups; plain Leiden on the same
relations at several resolutions; of each the best one counts. "Leiden on the joint graph" is the
structural step of ours alone (relations, shared neighbours and nearest vectors), at resolution 1,
which is its default, and at ours. The change is one new paper in a hundred.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import shutil
import sys
import tempfile
import time
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Literal

import numpy as np
import pyarrow as pa
from rich.console import Console
from rich.table import Table
from sklearn.metrics import adjusted_mutual_info_score, normalized_mutual_info_score

from hades.night.context import BuildContext
from hades.night.topics.cluster import joint_graph
from hades.night.topics.inputs import HierarchyRules, Material, read_material
from hades.night.topics.stage import build_topics
from hades.ports.services import Tracker
from hades.ports.store import GraphStore, Mode, Term
from hades.settings.tree import PathSettings
from hades.stores.sqlite.store import SqliteStore
from models.arrays import unit_rows
from models.topics import Labels, communities, density_labels, nearest_graph, principal_components

AS_OF = datetime(2026, 1, 1, tzinfo=UTC)
RULES = HierarchyRules()
DIMENSIONS = (15, 30, 50)
SELECTIONS: tuple[Literal["eom", "leaf"], ...] = ("eom", "leaf")
RESOLUTIONS = (0.5, 1.0, 3.0, 10.0)


def main() -> None:
    """Compare, print the table."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--home", type=Path, default=Path(os.environ.get("HADES_HOME", ".hades")))
    parser.add_argument("--json", type=Path)
    arguments = parser.parse_args()
    if not (arguments.home / "graph.db").exists():
        sys.exit(
            f"{arguments.home / 'graph.db'} is not there; run `hades ingest arxiv` first. Nothing "
            "was measured."
        )
    with tempfile.TemporaryDirectory() as folder:
        shutil.copy(arguments.home / "graph.db", folder)
        store = SqliteStore.open(Path(folder) / "graph.db", Mode.ADMIN)
        store.provision()
        figures = measure(store)
        store.close()
    table = Table(title=f"{figures['papers']:,.0f} papers, {figures['entities']:,.0f} entities")
    for heading in ("what", "figure"):
        table.add_column(heading)
    for name, value in figures.items():
        table.add_row(name.replace("_", " "), f"{value:,.4g}")
    Console().print(table)
    if arguments.json:
        arguments.json.write_text(json.dumps(figures, indent=1))


def measure(store: GraphStore) -> dict[str, float]:
    """Build without one paper in a hundred, put them back, build again; then the plain methods on
    the same material.
    """
    model = _model_of(store)
    categories = _categories(store)
    held_back = sorted(categories)[::100]
    returned = _take_out(store, held_back)
    _build(store, model, "without")
    before_change = _topics(store)
    returned()
    began = time.process_time()
    built, seconds = _timed(lambda: _build(store, model, "with"))
    cpu_seconds = time.process_time() - began
    peak_mb = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    topics = _topics(store)

    material = read_material(store, model)
    papers = [row for row, key in enumerate(material.keys) if key in categories]
    truth = np.unique([categories[material.keys[row]] for row in papers], return_inverse=True)[1]
    figures: dict[str, float] = {
        "papers": len(papers),
        **{name: built[name] for name in ("entities", "topics", "supertopics")},
        "seconds": seconds,
        "cpu_seconds": cpu_seconds,
        "peak_mb": peak_mb,
    }
    keys = [material.keys[row] for row in papers]
    _agree(
        figures, "topics", np.unique([topics[key] for key in keys], return_inverse=True)[1], truth
    )
    above = {
        row["_key"]: row["parent"] for batch in store.scan("clusters") for row in batch.to_pylist()
    }
    _agree(
        figures,
        "supertopics",
        np.unique([above[topics[key]] for key in keys], return_inverse=True)[1],
        truth,
    )
    figures["papers_that_kept_their_topic"] = float(
        np.mean([before_change[key] == topics[key] for key in before_change])
    )
    figures |= _plain(material, np.array(papers), truth)
    figures["nmi_over_best_plain"] = figures["topics_nmi"] - max(
        figures["plain_hdbscan_nmi"], figures["plain_leiden_nmi"]
    )
    return figures


def _plain(material: Material, papers: np.ndarray, truth: Labels) -> dict[str, float]:
    """The best of plain HDBSCAN over dimensions and the best of plain Leiden over resolutions."""
    figures: dict[str, float] = {}
    density, seconds = _timed(
        lambda: [
            density_labels(
                unit_rows(principal_components(material.vectors[papers], dimension)),
                min_cluster_size=RULES.min_cluster_size,
                min_samples=RULES.min_samples,
                selection=selection,
            )
            for dimension in DIMENSIONS
            for selection in SELECTIONS
        ]
    )
    best = max(density, key=lambda labels: normalized_mutual_info_score(truth, labels))
    _agree(figures, "plain_hdbscan", best, truth)
    figures["plain_hdbscan_noise"] = float(np.mean(best < 0))
    figures["plain_hdbscan_seconds"] = seconds / len(density)
    structure, seconds = _timed(
        lambda: [
            communities(material.edges, resolution=one, seed=RULES.seed)[papers]
            for one in RESOLUTIONS
        ]
    )
    best = max(structure, key=lambda labels: normalized_mutual_info_score(truth, labels))
    _agree(figures, "plain_leiden", best, truth)
    figures["plain_leiden_seconds"] = seconds / len(RESOLUTIONS)
    joint = joint_graph(
        material, papers, nearest_graph(material.vectors[papers], RULES.neighbours), RULES
    )
    for name, resolution in (("default", 1.0), ("our", len(papers) ** 0.5 / RULES.topic_scale)):
        found = communities(joint, resolution=resolution, seed=RULES.seed)
        _agree(figures, f"leiden_on_joint_graph_{name}_resolution", found, truth)
    return figures


def _agree(figures: dict[str, float], name: str, labels: Labels, truth: Labels) -> None:
    figures[f"{name}_nmi"] = float(normalized_mutual_info_score(truth, labels))
    figures[f"{name}_ami"] = float(adjusted_mutual_info_score(truth, labels))
    figures[f"{name}_groups"] = len(set(labels.tolist()))


def _build(store: GraphStore, model: str, inputs: str) -> dict[str, Any]:
    context = BuildContext(store, Path(), model, PathSettings(), _no_tracker)
    return build_topics(context, AS_OF, rules=RULES, inputs=inputs)


def _no_tracker() -> Tracker:
    raise AssertionError("this stage registers nothing")


def _model_of(store: GraphStore) -> str:
    where = [Term("type", "==", "paper"), Term("embedding_model", "not_null")]
    for batch in store.scan("entities", where=where, columns=["embedding_model"]):
        return str(batch.column("embedding_model")[0].as_py())
    sys.exit("no paper has a vector; run `hades ingest arxiv` to the end. Nothing was measured.")


def _categories(store: GraphStore) -> dict[str, str]:
    """The first category of each paper, by the key of its entity."""
    by_title = {
        row["title"]: row["categories"][0]
        for batch in store.scan("papers_raw", columns=["title", "categories"])
        for row in batch.to_pylist()
        if row["categories"]
    }
    found = {}
    for batch in store.scan(
        "entities", where=[Term("type", "==", "paper")], columns=["_key", "name"]
    ):
        for row in batch.to_pylist():
            if row["name"] in by_title:
                found[row["_key"]] = by_title[row["name"]]
    return found


def _topics(store: GraphStore) -> dict[str, str]:
    where = [Term("type", "==", "paper")]
    batches = store.scan("entities", where=where, columns=["_key", "cluster_id"])
    return {row["_key"]: row["cluster_id"] for batch in batches for row in batch.to_pylist()}


def _take_out(store: GraphStore, keys: list[str]) -> Callable[[], None]:
    """Remove entities with their edges; what comes back puts them all in again."""
    ids = [f"entities/{key}" for key in keys]
    taken: list[tuple[str, pa.Table]] = [("entities", store.get("entities", keys))]
    for collection, ends in (("relations", ("_from", "_to")), ("mentions", ("_to",))):
        for end in ends:
            batches = list(store.scan(collection, where=[Term(end, "in", ids)]))
            if batches:
                rows = pa.Table.from_batches(batches)
                taken.append((collection, rows))
                store.delete(collection, keys=rows.column("_key").to_pylist())
    store.delete("entities", keys=keys)
    return lambda: [store.upsert(collection, rows) for collection, rows in taken] and None


def _timed(work: Callable[[], Any]) -> tuple[Any, float]:
    began = time.perf_counter()
    done = work()
    return done, time.perf_counter() - began


if __name__ == "__main__":
    main()
