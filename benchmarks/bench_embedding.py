"""Embedding throughput: the int8 MiniLM of HADES against SentenceTransformer.encode at its
defaults.

    python benchmarks/bench_embedding.py [--abstracts 64] [--titles 256] [--repeats 3]

Both take turns on the same texts in one run, and the best turn of each counts: of all figures the
ratio is what a busy machine distorts least.
"""

from __future__ import annotations

import argparse
import gzip
import json
import os
import random
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

os.environ.update(HF_HUB_OFFLINE="1", TRANSFORMERS_OFFLINE="1")

from hades.providers.hashing import HashingEmbedder
from hades.providers.minilm import FLOAT, MiniLmEmbedder
from hades.providers.tokens import MiniLmTokenizer

REPOSITORY = Path(__file__).resolve().parents[1]
HASHED_TEXTS = 5000


def main() -> int:
    """Measure, print a table and one JSON document."""
    options = _options()
    data = Path(os.environ.get("HADES_DATA") or REPOSITORY.parent / "shared" / "data")
    papers = data / "arxiv" / "papers.jsonl.gz"
    if not papers.exists():
        print(
            f"no benchmark data: {papers.name} is not under HADES_DATA/arxiv; nothing was measured"
        )
        return 0
    abstracts, titles = _texts(papers)
    from sentence_transformers import SentenceTransformer

    weights = FLOAT.path()
    if weights is None:
        print(f"{FLOAT.package} is not installed; nothing was measured")
        return 0
    theirs = SentenceTransformer(str(weights.parent), device="cpu")
    ours = MiniLmEmbedder(Path(tempfile.gettempdir()) / "hades-benchmark-models")
    results = {
        "abstracts": _compare(ours, theirs, abstracts[: options.abstracts], options.repeats),
        "titles": _compare(ours, theirs, titles[: options.titles], options.repeats),
        "hashing": _hashing(abstracts[:HASHED_TEXTS]),
    }
    _print_table(results)
    print(json.dumps(results))
    if options.json:
        options.json.write_text(json.dumps(results, indent=1), "utf-8")
    return 0


def _compare(
    ours: MiniLmEmbedder, theirs: Any, texts: Sequence[str], repeats: int
) -> dict[str, Any]:
    """Texts a second of both, their ratio, and how close the vectors are."""
    tokenizer = MiniLmTokenizer()
    ours.embed(texts[:4])
    theirs.encode(texts[:4], show_progress_bar=False)
    our_seconds, their_seconds = [], []
    for _ in range(repeats):
        seconds, expected = _timed(lambda: theirs.encode(texts, show_progress_bar=False))
        their_seconds.append(seconds)
        seconds, vectors = _timed(lambda: ours.embed(texts))
        our_seconds.append(seconds)
    cosine = (vectors * expected).sum(axis=1)
    some = range(0, len(texts), max(1, len(texts) // 16))
    alone = np.concatenate([ours.embed([texts[row]]) for row in some])
    return {
        "texts": len(texts),
        "mean_tokens": round(float(np.mean([tokenizer.count(text) for text in texts])), 1),
        "hades_texts_per_second": round(len(texts) / min(our_seconds), 1),
        "sentence_transformers_texts_per_second": round(len(texts) / min(their_seconds), 1),
        "ratio": round(min(their_seconds) / min(our_seconds), 2),
        "cosine_min": round(float(cosine.min()), 4),
        "cosine_mean": round(float(cosine.mean()), 4),
        "same_bytes_alone_and_in_company": alone.tobytes() == vectors[list(some)].tobytes(),
    }


def _hashing(texts: Sequence[str]) -> dict[str, Any]:
    """Texts a processor second of the hashing embedder, which meets every word for the first
    time.
    """
    started = time.process_time()
    HashingEmbedder().embed(texts)
    seconds = time.process_time() - started
    return {"texts": len(texts), "hades_texts_per_second": round(len(texts) / seconds)}


def _timed(work: Callable[[], Any]) -> tuple[float, Any]:
    started = time.perf_counter()
    result = work()
    return time.perf_counter() - started, result


def _texts(papers: Path) -> tuple[list[str], list[str]]:
    """Abstracts (about 180 tokens) and titles (about 12), in an order that is always the same."""
    with gzip.open(papers, "rt", encoding="utf-8") as lines:
        rows = [json.loads(line) for line in lines]
    rows = [row for row in rows if row["abstract"].strip() and row["title"].strip()]
    random.Random(7).shuffle(rows)
    return [row["abstract"] for row in rows], [row["title"] for row in rows]


def _print_table(results: dict[str, Any]) -> None:
    print("texts            n  tokens   hades/s    s-t/s  ratio  cos min    mean")
    for name in ("abstracts", "titles"):
        row = results[name]
        print(
            f"{name:<12}{row['texts']:>6}{row['mean_tokens']:>8}{row['hades_texts_per_second']:>10}"
            f"{row['sentence_transformers_texts_per_second']:>9}{row['ratio']:>7}"
            f"{row['cosine_min']:>9}{row['cosine_mean']:>8}"
        )
    row = results["hashing"]
    print(f"{'hashing':<12}{row['texts']:>6}{'':>8}{row['hades_texts_per_second']:>10}")


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="Embedding throughput, as a ratio.")
    parser.add_argument("--abstracts", type=int, default=64)
    parser.add_argument("--titles", type=int, default=256)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--json", type=Path)
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
