"""Embedding on a GPU: HADES against SentenceTransformer on the same device and texts.

    python benchmarks/bench_gpu.py [--texts 8192] [--json FILE]

Texts of 32, 128 and 256 tokens, and abstracts as they are. SentenceTransformer runs at its
defaults, and in half precision at the best of three batch sizes. Without a GPU it says so and
measures nothing.
"""

from __future__ import annotations

import argparse
import gzip
import json
import os
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

os.environ.update(HF_HUB_OFFLINE="1", TRANSFORMERS_OFFLINE="1")

from hades.providers.minilm import FLOAT, MiniLmEmbedder

REPOSITORY = Path(__file__).resolve().parents[1]
LENGTHS = (32, 128, 256)
BATCHES = (128, 512, 1024)
WORDS = ("graph", "store", "night", "passage", "answer", "bridge", "topic", "weight")


def main() -> int:
    """Measure, print one JSON document and write it where asked."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--texts", type=int, default=8192)
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    ours = MiniLmEmbedder(Path(tempfile.gettempdir()) / "hades-benchmark-models", device="cuda")
    weights = FLOAT.path()
    if ours.open_gpu() is None or weights is None:
        print(f"no GPU, or {FLOAT.package} is not installed: nothing was measured")
        return 0
    from sentence_transformers import SentenceTransformer

    theirs = SentenceTransformer(str(weights.parent), device="cuda")
    results = {
        name: compare(ours, theirs, texts) for name, texts in text_sets(options.texts).items()
    }
    print(json.dumps(results, indent=1))
    if options.json:
        options.json.write_text(json.dumps(results, indent=1), "utf-8")
    return 0


def compare(ours: MiniLmEmbedder, theirs: Any, texts: Sequence[str]) -> dict[str, float]:
    """Texts a second of both, and how many times as fast HADES is."""
    own_rate = rate(lambda: ours.embed_signs(texts), len(texts))
    theirs.float()
    default_rate = rate(lambda: theirs.encode(texts, show_progress_bar=False), len(texts))
    theirs.half()
    half_rates = []
    for size in BATCHES:
        encode = lambda: theirs.encode(texts, batch_size=size, show_progress_bar=False)  # noqa: B023, E731
        half_rates.append(rate(encode, len(texts)))
    return {
        "hades_texts_per_second": round(own_rate),
        "ratio_to_defaults": round(own_rate / default_rate, 1),
        "ratio_to_best_in_half_precision": round(own_rate / max(half_rates), 1),
    }


def rate(work: Callable[[], Any], texts: int) -> float:
    """Texts a second, after one turn that is not counted."""
    work()
    started = time.perf_counter()
    work()
    return texts / (time.perf_counter() - started)


def text_sets(count: int) -> dict[str, list[str]]:
    """Texts of one length each, and abstracts where the data is there."""
    sets = {}
    for length in LENGTHS:
        words = [WORDS[place % len(WORDS)] for place in range(length - 2)]
        sets[f"{length} tokens"] = [" ".join(words)] * count
    data = Path(os.environ.get("HADES_DATA") or REPOSITORY.parent / "shared" / "data")
    papers = data / "arxiv" / "papers.jsonl.gz"
    if papers.exists():
        with gzip.open(papers, "rt", encoding="utf-8") as lines:
            sets["abstracts"] = [json.loads(line)["abstract"] or "none" for line in lines][:count]
    return sets


if __name__ == "__main__":
    sys.exit(main())
