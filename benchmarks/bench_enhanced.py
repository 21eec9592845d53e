"""What each part of MemoryEnhancedPathRAG gives: flow pruning on a graph with a hub, the cache, the window.

    python benchmarks/bench_enhanced.py [--chains 60] [--asked 30] [--json FILE]

The graph is made up: chains of a person, the firm that employs them and the bridge that the firm built; every person
and every bridge is joined to one city, the hub. A question names a person. Pruning: how many of the paths that are
returned leave the chain through the hub, and for how many questions the first path stays in the chain, without a
threshold and with rising ones. Cache: processor time of an
answer that is computed and of the same from RAM. Window: tokens of the longest prompt, and paths in it.
"""

from __future__ import annotations

import argparse
import json
import os
import tempfile
import time
from collections import Counter
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path
from statistics import mean, median
from typing import Any

import pyarrow as pa
from rich.console import Console
from rich.table import Table

from hades.compat.pathrag import MemoryEnhancedPathRAG
from hades.ports.store import Mode
from hades.settings.load import load_settings
from hades.settings.tree import Settings
from hades.snapshot.publish import publish
from hades.wiring import open_store
from schemas.ids import edge_key

HUB = "Harbour City"
CODE = "BraBraBra"  # as long as the code that all names of a chain begin with
THRESHOLDS = (0.0, 0.01, 0.1, 0.2)
WINDOWS = (400, 800, 4_096)
RECIPE = "hirag_pathrag"
PLAN = {"graph": {"hops": 3, "fanout": 4, "beam": 16, "timeout_ms": 500}, "retriever": {"k": 6}, "final_context": 8}
_SYLLABLES = ("Bra", "Dov", "Fen", "Gur", "Kel", "Mos", "Tiv", "Zam")


def main() -> None:
    """Build the graph, measure the three parts, print tables, and write the figures where asked."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--chains", type=int, default=60)
    parser.add_argument("--asked", type=int, default=30)
    parser.add_argument("--json", type=Path)
    given = parser.parse_args()
    chains = [chain(number) for number in range(given.chains)]
    with tempfile.TemporaryDirectory() as folder:
        settings = build(Path(folder), chains)
        asked = chains[: given.asked]
        body: dict[str, Any] = {
            "chains": len(chains),
            "questions": len(asked),
            "pruning": {f"threshold {one:g}": prune(settings, asked, one) for one in THRESHOLDS},
            "cache": cache(settings, asked),
            "window": {f"{one} tokens": window(settings, asked, one) for one in WINDOWS},
        }
    show(body)
    if given.json:
        given.json.write_text(json.dumps(body, indent=1) + "\n", encoding="utf-8")


def chain(number: int) -> tuple[str, str, str]:
    """A person, a firm and a bridge that no other chain names."""
    code = "".join(_SYLLABLES[number // 8**place % 8] for place in range(3))
    return f"{code}son", f"{code}mill", f"{code}ford"


def build(folder: Path, chains: Sequence[tuple[str, str, str]]) -> Settings:
    """A published graph: each chain, and an edge from its person and from its bridge to the hub."""
    settings = load_settings({**os.environ, "HADES_HOME": str(folder), "HADES_EMBEDDER": "hashing"}, folder)
    names = [HUB, *(name for one in chains for name in one)]
    pairs = [pair for one in chains for pair in (one[:2], one[1:], (one[0], HUB), (HUB, one[2]))]
    leaving = Counter(tail for tail, _ in pairs)
    entities = [
        {"_key": key(name), "name": name, "name_lower": name.lower(), "type": "concept", "deg_out": leaving[name]}
        for name in names
    ]
    ends = [(f"entities/{key(tail)}", f"entities/{key(head)}") for tail, head in pairs]
    edges = [
        {"_key": edge_key(tail, "refers_to", head), "_from": tail, "_to": head, "type": "refers_to", "weight": 0.8}
        for tail, head in ends
    ]
    with closing(open_store(settings, Mode.ADMIN)) as store:
        store.provision()
        store.upsert("entities", pa.Table.from_pylist(entities))
        store.upsert("relations", pa.Table.from_pylist(edges))
        publish(store, settings.home)
    return settings


def key(name: str) -> str:
    """A name as a key."""
    return name.lower().replace(" ", "_")


def prune(settings: Settings, asked: Sequence[tuple[str, str, str]], threshold: float) -> dict[str, float]:
    """What a threshold does to the paths that are returned."""
    strayed, first_stays, counts, before = [], [], [], []
    rules = {"pruning_threshold": threshold, "enable_caching": False}
    with MemoryEnhancedPathRAG(rules, settings=settings) as rag:
        for names in asked:
            found: Any = rag.retrieve_paths(question(names), 8, recipe=RECIPE, plan=PLAN)
            paths = [{node["name"] for node in path["nodes"]} for path in found["paths"]]
            strays = [len({name[: len(CODE)] for name in path - {HUB}}) > 1 for path in paths]
            strayed += strays
            first_stays.append(bool(paths) and paths[0] <= {*names, HUB})
            counts.append(len(paths))
            before.append(found["pruned_from"])
    return {
        "paths": round(mean(counts), 2),
        "paths_before_pruning": round(mean(before), 2),
        "share_that_leaves_the_chain": round(mean(strayed), 3) if strayed else 0.0,
        "first_path_in_the_chain": round(mean(first_stays), 3),
    }


def cache(settings: Settings, asked: Sequence[tuple[str, str, str]]) -> dict[str, float]:
    """Milliseconds of processor time of an answer, computed and from RAM."""
    taken: dict[str, list[float]] = {}
    with MemoryEnhancedPathRAG(settings=settings) as rag:
        rag.retrieve_paths("warm up the models")
        for _ in range(2):
            for names in asked:
                began = time.process_time()
                found: Any = rag.retrieve_paths(question(names), recipe=RECIPE)
                taken.setdefault(found["tier"], []).append((time.process_time() - began) * 1_000)
    computed, kept = median(taken["RAID5"]), median(taken["RAM"])
    return {"computed_ms": round(computed, 2), "from_ram_ms": round(kept, 3), "times_faster": round(computed / kept, 1)}


def window(settings: Settings, asked: Sequence[tuple[str, str, str]], tokens: int) -> dict[str, float]:
    """How much of a window the prompts take."""
    rules = {"context_window_tokens": tokens, "reserve_tokens": 100, "enable_caching": False}
    with MemoryEnhancedPathRAG(rules, settings=settings) as rag:
        found: list[Any] = [rag.retrieve_and_format(question(names), 8, recipe=RECIPE, plan=PLAN) for names in asked]
    prompts = [one for one in found if one["success"] and one["count"]]
    return {
        "longest_prompt": max(one["tokens"]["prompt"] for one in prompts),
        "room": tokens - 100,
        "paths": round(mean(one["count"] for one in prompts), 2),
    }


def question(names: tuple[str, str, str]) -> str:
    """A question that names the person of a chain."""
    return f"Which bridge is {names[0]} connected to?"


def show(body: dict[str, Any]) -> None:
    """One table a part."""
    console = Console()
    for part in ("pruning", "window"):
        rows = body[part]
        table = Table(part, *next(iter(rows.values())))
        for name, row in rows.items():
            table.add_row(name, *(f"{value:g}" for value in row.values()))
        console.print(table)
    console.print("cache", body["cache"])


if __name__ == "__main__":
    main()
