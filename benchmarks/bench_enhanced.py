"""What each part of MemoryEnhancedPathRAG gives: flow pruning on a graph with a hub, the cache, the window.

    python benchmarks/bench_enhanced.py [--chains 60] [--asked 30] [--json FILE]

The corpus is made up: each page tells of one person, the firm that employs them and the bridge that the firm built, and
every page names the same city, which so becomes a hub. A question names a person; the path that answers it ends at the
bridge of the same page. Pruning: how many of the paths that are returned leave the page through the hub, and for how
many questions the first path stays on the page, without a threshold and with rising ones. Cache: processor time of an
answer that is computed and of the same from RAM. Window: tokens of the longest prompt, and paths in it.
"""

from __future__ import annotations

import argparse
import json
import os
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from statistics import mean, median
from typing import Any

from rich.console import Console
from rich.table import Table

from hades import MemoryEnhancedPathRAG, open_hades
from hades.settings import Settings, load_settings

HUB = "Harbour City"
THRESHOLDS = (0.0, 0.01, 0.05, 0.1)
WINDOWS = (400, 800, 4_096)
RECIPE = "hirag_pathrag"
PLAN = {"graph": {"hops": 3, "fanout": 4, "beam": 16, "timeout_ms": 500}, "retriever": {"k": 6}, "final_context": 8}
_FIRST = ("Arlo", "Bena", "Corin", "Dalia", "Edvin", "Fenna", "Goran", "Hesta")
_LAST = ("Venn", "Quist", "Marr", "Olden", "Prax", "Sorel", "Tamm", "Ulver")
_WORDS = ("Amber", "Birch", "Copper", "Dorset", "Elm", "Falcon", "Granite", "Hazel")


def main() -> None:
    """Build the graph, measure the three parts, print tables, and write the figures where asked."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--chains", type=int, default=60)
    parser.add_argument("--asked", type=int, default=30)
    parser.add_argument("--json", type=Path)
    given = parser.parse_args()
    pages = [chain(number) for number in range(given.chains)]
    with tempfile.TemporaryDirectory() as folder:
        settings = build(Path(folder), pages)
        asked = pages[: given.asked]
        body: dict[str, Any] = {
            "pages": len(pages),
            "questions": len(asked),
            "pruning": {f"threshold {one:g}": prune(settings, asked, one) for one in THRESHOLDS},
            "cache": cache(settings, asked),
            "window": {f"{one} tokens": window(settings, asked, one) for one in WINDOWS},
        }
    show(body)
    if given.json:
        given.json.write_text(json.dumps(body, indent=1) + "\n", encoding="utf-8")


def chain(number: int) -> tuple[str, str, str]:
    """A person, a firm and a bridge that no other page names."""
    one, two = number % len(_FIRST), number // len(_FIRST) % len(_LAST)
    return f"{_FIRST[one]} {_LAST[two]}", f"{_WORDS[two]} {_FIRST[one]} Works", f"{_LAST[two]} {_WORDS[one]} Bridge"


def build(folder: Path, pages: Sequence[tuple[str, str, str]]) -> Settings:
    """A published graph of the pages."""
    (folder / "pages").mkdir()
    for number, (person, firm, bridge) in enumerate(pages):
        text = f"{person} works at {firm} in {HUB}. {firm} built the {bridge}. The {bridge} stands in {HUB}.\n"
        (folder / "pages" / f"{number:03d}.md").write_text(f"# Page {number}\n\n{text}", encoding="utf-8")
    env = {**os.environ, "HADES_HOME": str(folder / "home"), "HADES_EMBEDDER": "hashing"}
    settings = load_settings(env, folder)
    with open_hades(settings) as hades:
        hades.ingest.documents(folder / "pages")
        hades.publish()
    return settings


def prune(settings: Settings, asked: Sequence[tuple[str, str, str]], threshold: float) -> dict[str, float]:
    """What a threshold does to the paths that are returned."""
    off_page, first_on_page, counts, before = [], [], [], []
    rules = {"pruning_threshold": threshold, "enable_caching": False}
    with MemoryEnhancedPathRAG(rules, settings=settings) as rag:
        for names in asked:
            found: Any = rag.retrieve_paths(question(names), 8, recipe=RECIPE, plan=PLAN)
            paths = [{node["name"] for node in path["nodes"]} for path in found["paths"]]
            strays = [not path <= {*names, HUB} for path in paths]
            off_page += strays
            first_on_page.append(bool(paths) and not strays[0])
            counts.append(len(paths))
            before.append(found["pruned_from"])
    return {
        "paths": round(mean(counts), 2),
        "paths_before_pruning": round(mean(before), 2),
        "share_that_leaves_the_page": round(mean(off_page), 3) if off_page else 0.0,
        "first_path_on_the_page": round(mean(first_on_page), 3),
    }


def cache(settings: Settings, asked: Sequence[tuple[str, str, str]]) -> dict[str, float]:
    """Milliseconds of processor time of an answer, computed and from RAM."""
    taken: dict[str, list[float]] = {}
    with MemoryEnhancedPathRAG(settings=settings) as rag:
        rag.retrieve_paths("warm up the models")
        for _ in range(2):
            for names in asked:
                began = time.process_time()
                found: Any = rag.retrieve_paths(question(names))
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
    """A question that names the person of a page."""
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
