"""What the one ranking costs for 100 candidates: describing them, and the whole.

    python benchmarks/bench_fusion.py HOME QUESTIONS [--asked 20] [--candidates 100] [--json FILE]

HOME is what `hades eval multihop --home` kept, QUESTIONS a file of rows with `question`. Each
question is searched once; then its candidates are described and ranked five times and the fastest
counts. Processor time of this thread, so that a busy machine does not change the figures much.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Callable
from pathlib import Path
from statistics import median
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from hades.budget import Caps, Turn
from hades.evaluation.cases import read_lines
from hades.providers.tokens import MiniLmTokenizer
from hades.retrieval.core.metered_view import MeteredView
from hades.retrieval.core.types import AUTO, Question, recipe_named
from hades.retrieval.pipeline import Tools, embedded
from hades.retrieval.ranking.default_ranking import (
    evidence_worth,
    pick_candidates,
    ranking_columns,
)
from hades.retrieval.search.default_search import Evidence, search_evidence
from hades.settings.load import load_settings
from hades.snapshot.open import open_snapshot
from hades.wiring import open_embedder
from schemas.plan import Plan, Profile

CAPS = Caps(docs_max=4_000, work_max=100_000_000, latency_ms=600_000)
PLAN = Plan(profile=Profile.EVALUATION)


def main() -> None:
    """Search, time, print."""
    options = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    options.add_argument("home", type=Path)
    options.add_argument("questions", type=Path)
    options.add_argument("--asked", type=int, default=20)
    options.add_argument("--candidates", type=int, default=100)
    options.add_argument("--json", type=Path)
    given = options.parse_args()
    rows = list(read_lines(given.questions))[: given.asked]
    found = search(given.home, [str(row["question"]) for row in rows], given.candidates)
    timed = [times_of(*one) for one in found]
    figures = {
        "questions": len(found),
        "candidates": median(len(evidence.nodes) for _, evidence in found),
        **{f"{name}_ms": round(median(one[name] for one in timed), 3) for name in timed[0]},
    }
    for name, value in figures.items():
        print(f"{name:<16} {value:>10}")
    if given.json:
        given.json.write_text(json.dumps(figures, indent=1) + "\n", "utf-8")


def search(home: Path, questions: list[str], candidates: int) -> list[tuple[Question, Evidence]]:
    """Each question with its evidence."""
    tools = Tools(MiniLmTokenizer(), open_embedder(load_settings({"HADES_HOME": str(home)}, home)))
    view, found = open_snapshot(home), []
    for text in questions:
        metered = MeteredView(view, Turn(CAPS))
        parts = embedded(metered.turn, metered.info, text, tools, recipe_named(AUTO), PLAN)
        found.append((parts[0], search_evidence(metered, parts, candidates, pick_candidates)))
    return found


def times_of(question: Question, evidence: Evidence) -> dict[str, float]:
    """Milliseconds of what needs no look at sentences, and of the whole ranking as it serves."""
    return {
        "describe": fastest(lambda: ranking_columns(question, evidence)),
        "whole": fastest(lambda: evidence_worth(question, evidence)),
    }


def fastest(call: Callable[[], Any]) -> float:
    """Milliseconds of the fastest of five calls."""
    seen = []
    for _ in range(5):
        began = time.thread_time()
        call()
        seen.append((time.thread_time() - began) * 1000)
    return min(seen)


if __name__ == "__main__":
    main()
