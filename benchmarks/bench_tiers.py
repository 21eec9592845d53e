"""Answers through the tiers beside answers computed each time, and the memory that three loads
take.

    python benchmarks/bench_tiers.py [--home FOLDER] [--questions FILE] [--asked 60] [--json FILE]

Asks the published graph of a home, by default HADES_HOME. Questions come from a file of rows with
`question`, by default they are names of the graph's own nodes. All figures come from one run on one
machine; read the ratios.

Speed: every question is computed, then asked again of each tier. A mixed load then asks 600 times,
the question of rank r with a chance of 1 / r, as people do. Memory: in a process of its own for
each of three loads (1,000, 5,000 and 20,000 answers of about 4 KiB under a budget of 16 MiB), the
resident size it gained over the bytes its RAM tier holds; beside a dictionary of the parsed
answers.
"""

from __future__ import annotations

import argparse
import gzip
import json
import multiprocessing
import os
import random
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np
import psutil

from hades.cache import tiers
from hades.cache.stores import MIB, LRUCache, MemoryTier
from hades.compat.pathrag import MemoryEnhancedPathRAG
from hades.settings.load import load_settings
from hades.settings.tree import Settings
from hades.wiring import open_answers, open_view

LOADS = (1_000, 5_000, 20_000)
BUDGET_MB = 16
MIXED = 600


def main() -> None:
    """Measure, print a table, and write the figures where asked."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--home", type=Path)
    parser.add_argument("--questions", type=Path)
    parser.add_argument("--asked", type=int, default=60)
    parser.add_argument("--json", type=Path)
    arguments = parser.parse_args()
    settings = load_settings(
        os.environ | ({"HADES_HOME": str(arguments.home)} if arguments.home else {})
    )
    questions = questions_of(settings, arguments.questions, arguments.asked)
    figures = {**measured_speed(settings, questions), **measured_memory()}
    for name, value in figures.items():
        print(f"{name:<44} {value:>14,.4g}")
    if arguments.json:
        arguments.json.write_text(json.dumps(figures, indent=1))


def questions_of(settings: Settings, path: Path | None, count: int) -> list[str]:
    """Questions of a file, or names of nodes spread over the graph."""
    if path is None:
        view = open_view(settings)
        total = sum(view.info.nodes.values())
        nodes = view.nodes(np.linspace(0, total - 1, min(total, 3 * count), dtype=np.int64))
        return list(dict.fromkeys(node.name for node in nodes if node.name))[:count]
    with gzip.open(path, "rt") if path.suffix == ".gz" else path.open() as file:
        rows = [json.loads(line) for line in file]
    return [row["question"] for row in rows][:count]


def measured_speed(settings: Settings, questions: list[str]) -> dict[str, float]:
    """Milliseconds an answer, by tier, and what a mixed load gains."""
    with tempfile.TemporaryDirectory() as folder, open_answers(settings) as answers:
        places = {"nvme_cache_path": f"{folder}/nvme", "reliable_store_path": f"{folder}/reliable"}
        plain = MemoryEnhancedPathRAG({"enable_caching": False}, settings=settings, answers=answers)
        for question in questions[:3]:
            plain.retrieve_paths(question)  # opens the view and loads the model
        figures = {"questions": float(len(questions)), "computed_ms": each_ms(plain, questions)}
        rag = MemoryEnhancedPathRAG(places, settings=settings, answers=answers)
        figures["computed_and_kept_ms"] = each_ms(rag, questions)
        manager = rag.memory_manager
        assert manager is not None
        for tier, importance in (
            (MemoryTier.RAM, 1.0),
            (MemoryTier.NVME_RAID0, 0.5),
            (MemoryTier.RAID1, 0.0),
        ):
            with entries_in(rag, importance, questions):
                figures[f"{tier.name.lower()}_ms"] = each_ms(rag, questions)
            figures[f"{tier.name.lower()}_times_faster"] = (
                figures["computed_ms"] / figures[f"{tier.name.lower()}_ms"]
            )
        figures |= mixed_load(settings, places, answers, plain, questions)
    return figures


def mixed_load(
    settings: Settings, places: dict[str, str], answers: Any, plain: Any, questions: list[str]
) -> dict[str, float]:
    """Seconds for the same questions in the same order, with and without memory; the hit rate of
    the tiers.
    """
    chance = random.Random(0)
    asked = chance.choices(questions, [1 / rank for rank in range(1, len(questions) + 1)], k=MIXED)
    rag = MemoryEnhancedPathRAG(
        {name: f"{path}-mixed" for name, path in places.items()}, settings=settings, answers=answers
    )
    with_memory, without = seconds(rag, asked), seconds(plain, asked)
    report = rag.report()
    assert report is not None
    return {
        "mixed_asked": float(MIXED),
        "mixed_hit_rate": report.hit_rate,
        "mixed_times_faster": without / with_memory,
        "mixed_ram_bytes": float(report.tiers[0].bytes),
    }


@contextmanager
def entries_in(
    rag: MemoryEnhancedPathRAG, importance: float, questions: list[str]
) -> Iterator[None]:
    """Every answer in the tier of this importance alone, and no promotion out of it."""
    manager = rag.memory_manager
    assert manager is not None
    manager.config = manager.config.model_copy(update={"promotion_threshold": 10**9})
    manager.place.forget_everything()
    original = tiers.importance
    tiers.importance = lambda *given, **named: importance
    try:
        for question in questions:
            rag.retrieve_paths(question)
        yield
    finally:
        tiers.importance = original


def each_ms(rag: MemoryEnhancedPathRAG, questions: list[str]) -> float:
    """The median over the questions."""
    taken = []
    for question in questions:
        began = time.perf_counter()
        assert rag.retrieve_paths(question)["success"]
        taken.append((time.perf_counter() - began) * 1000)
    return median(taken)


def seconds(rag: MemoryEnhancedPathRAG, questions: list[str]) -> float:
    """All of them, one after the other."""
    began = time.perf_counter()
    for question in questions:
        rag.retrieve_paths(question)
    return time.perf_counter() - began


def measured_memory() -> dict[str, float]:
    """What each load takes, each in a fresh process."""
    figures: dict[str, float] = {"memory_budget_mb": BUDGET_MB}
    for load in LOADS:
        held, gained = in_a_process(fill_tier, load)
        figures[f"memory_{load}_held_mb"], figures[f"memory_{load}_resident_mb"] = held, gained
        _, parsed = in_a_process(fill_dictionary, load)
        figures[f"memory_{load}_dictionary_mb"] = parsed
        figures[f"memory_{load}_resident_over_held"] = gained / held
    return figures


def in_a_process(work: Callable[[int], tuple[float, float]], load: int) -> tuple[float, float]:
    """What the work returns, from a process that has done nothing else."""
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        return pool.apply(work, (load,))


def fill_tier(load: int) -> tuple[float, float]:
    """MiB that the tier in memory holds and the process gained."""
    before, cache = resident(), LRUCache(BUDGET_MB)
    for number in range(load):
        cache.put(f"path:{number}", answer(number))
        assert cache.current_bytes <= cache.max_bytes
    return cache.current_bytes / MIB, resident() - before


def fill_dictionary(load: int) -> tuple[float, float]:
    """The same for a dictionary of parsed answers, which has no budget."""
    before = resident()
    held = {number: json.loads(json.dumps(answer(number))) for number in range(load)}
    return float(len(held)), resident() - before


def answer(number: int) -> dict[str, Any]:
    """About 4 KiB, shaped like an answer with five paths."""
    node = {
        "id": f"entities/{number:032x}",
        "name": f"name of {number}",
        "type": "concept",
        "document": f"d{number}",
    }
    edge = {
        "id": f"{number:040x}",
        "from": node["id"],
        "to": node["id"],
        "type": "refers_to",
        "weight": 0.5,
    }
    path = {
        "score": 0.5,
        "reliability": 0.25,
        "text": f"a path through {number} " * 8,
        "nodes": [dict(node), dict(node)],
    }
    return {
        "query": f"question {number}",
        "paths": [{**path, "rank": n, "edges": [dict(edge)]} for n in range(5)],
    }


def resident() -> float:
    """MiB of this process."""
    return float(psutil.Process().memory_info().rss) / MIB


if __name__ == "__main__":
    main()
