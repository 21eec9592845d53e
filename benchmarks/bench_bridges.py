"""Building bridges, and not building them where nothing changed; and using one beside searching for
it.

    python benchmarks/bench_bridges.py [--entities 50000] [--json FILE]

All figures come from one run on one machine; read the ratios. The graph is made up: topics of fifty
entities, six relations an entity, one in five of them to another topic, most of those to a few
neighbouring ones. The search that a look-up saves is `cheapest_paths` over the snapshot between the
ends of the same bridges.
"""

from __future__ import annotations

import argparse
import json
import platform
import tempfile
import time
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
import pyarrow as pa
from rich.console import Console
from rich.table import Table

from hades.budget import Caps, Turn
from hades.night.bridges.stage import bridge
from hades.night.context import BuildContext
from hades.ports.services import Tracker
from hades.ports.store import Mode
from hades.retrieval.core.metered_view import MeteredView
from hades.retrieval.walks.best_paths import cheapest_paths
from hades.settings.tree import PathSettings
from hades.snapshot.open import open_snapshot
from hades.snapshot.publish import publish
from hades.stage_ledger import HIERARCHY, WEIGHTS, record
from hades.stores.sqlite.store import SqliteStore
from schemas.record import to_table
from schemas.topics import Cluster, ClusterParams

NOW = datetime(2026, 1, 1, tzinfo=UTC)
MEMBERS, DEGREE = 50, 6
ASKED = 100

Result = TypeVar("Result")


def main() -> None:
    """Measure, print a table, and write the figures where asked."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--entities", type=int, default=50_000)
    parser.add_argument("--json", type=Path)
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        figures = measure(Path(folder), arguments.entities)
    show(figures)
    if arguments.json:
        arguments.json.write_text(json.dumps(figures, indent=1))


def measure(home: Path, count: int) -> dict[str, float]:
    """Every time in seconds on the same graph."""
    store = SqliteStore.open(home / "graph.db", Mode.ADMIN)
    store.provision()
    edges = made_up_graph(store, count)
    warm_up(home / "small.db")
    figures: dict[str, float] = {"entities": count, "relations": edges.num_rows}
    figures["full"], report = timed(lambda: build(store, "w1"))
    figures |= {
        "pairs": report["pairs"],
        "bridges": report["bridges"],
        "edges_looked_at": report["work"],
    }
    figures["unchanged"], _ = timed(lambda: build(store, "w1"))
    publish(store, home)
    view = open_snapshot(home)
    topics = view.number([f"clusters/t{number:05}" for number in range(count // MEMBERS)])
    bridges = [path for path in view.bridges(topics, limit=10**6) if len(path.edges) > 1][:ASKED]
    pairs = [(np.array([path.from_cluster]), np.array([path.to_cluster])) for path in bridges]
    spent, _ = timed(lambda: [view.bridges(first, second, limit=3) for first, second in pairs])
    figures["look_up"] = spent / len(pairs)
    ends = [(path.nodes[0], path.nodes[-1]) for path in bridges]
    metered = MeteredView(view, Turn(Caps(docs_max=10**9, work_max=10**9, latency_ms=1e12)))
    spent, _ = timed(lambda: [cheapest_paths(metered, *pair, k=1, max_hops=5) for pair in ends])
    figures["search"] = spent / len(ends)
    store.close()
    return figures


def build(store: SqliteStore, generation: str) -> dict[str, Any]:
    """The bridges stage, as the nightly build runs it."""
    record(store, WEIGHTS, "", generation)
    record(store, HIERARCHY, "", generation, report={"moving": []})
    return bridge(BuildContext(store, Path(), "m", PathSettings(), _no_tracker), NOW)


def _no_tracker() -> Tracker:
    raise AssertionError("this stage registers nothing")


def made_up_graph(store: SqliteStore, count: int) -> pa.Table:
    """Write entities, topics and relations; the relations."""
    chance = np.random.default_rng(0)
    n_topics = count // MEMBERS
    topic = np.arange(count) // MEMBERS
    params = ClusterParams(algo="made up")
    clusters = [
        Cluster(key=f"t{number:05}", level=1, cluster_params=params) for number in range(n_topics)
    ]
    store.upsert("clusters", to_table(Cluster, clusters))
    names = [f"e{number:07}" for number in range(count)]
    placed = [f"t{number:05}" for number in topic]
    columns = {
        "_key": names,
        "name": names,
        "name_lower": names,
        "type": ["concept"] * count,
        "cluster_id": placed,
    }
    store.upsert("entities", pa.table(columns))
    tail = np.repeat(np.arange(count), DEGREE)
    leaves = chance.random(len(tail)) < 0.2
    hop = np.where(
        chance.random(len(tail)) < 0.8,
        chance.integers(1, 6, len(tail)),
        chance.integers(1, n_topics, len(tail)),
    )
    there = np.where(leaves, (topic[tail] + hop) % n_topics, topic[tail])
    head = there * MEMBERS + chance.integers(0, MEMBERS, len(tail))
    kept = head != tail
    tail, head = tail[kept], head[kept]
    ids = np.array([f"entities/{name}" for name in names], dtype=object)
    kinds = np.array(["cites", "implements", "derives_from", "refers_to"], dtype=object)
    weight = chance.beta(4, 3, len(tail))
    relations = pa.table(
        {
            "_key": [f"r{number:08}" for number in range(len(tail))],
            "_from": ids[tail],
            "_to": ids[head],
            "type": kinds[chance.integers(0, 4, len(tail))],
            "weight": weight,
            "cost": -np.log(weight),
        }
    )
    store.upsert("relations", relations)
    return relations


def warm_up(path: Path) -> None:
    """Load everything before anything is timed."""
    store = SqliteStore.open(path, Mode.ADMIN)
    store.provision()
    made_up_graph(store, 20 * MEMBERS)
    build(store, "w1")
    store.close()


def timed(work: Callable[[], Result]) -> tuple[float, Result]:
    """Seconds and what came of them."""
    began = time.perf_counter()
    result = work()
    return time.perf_counter() - began, result


def show(figures: dict[str, float]) -> None:
    """The table: what, seconds, ratio."""
    table = Table(
        title=f"{figures['entities']:,.0f} entities, {figures['relations']:,.0f} relations, "
        f"{figures['bridges']:,.0f} bridges, {platform.machine()}, Python "
        f"{platform.python_version()}"
    )
    for heading in ("what", "seconds", "ratio"):
        table.add_column(heading, justify="left" if heading == "what" else "right")
    full, search = figures["full"], figures["search"]
    for what, value, ratio in (
        ("build", full, f"{figures['edges_looked_at']:,.0f} edges looked at"),
        ("nothing changed", figures["unchanged"], f"{full / figures['unchanged']:,.0f} x faster"),
        ("path search in the store", search, ""),
        (
            "look-up in the snapshot",
            figures["look_up"],
            f"{search / figures['look_up']:,.0f} x faster than the search",
        ),
    ):
        table.add_row(what, f"{value:.5f}", ratio)
    Console().print(table)


if __name__ == "__main__":
    main()
