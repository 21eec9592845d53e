"""How often an answer by quotation (`hades answer` without a language model) holds the answer of a
labelled question.

    python benchmarks/eval_quotations.py NAME=HOME [NAME=HOME ...] [--sample 300] [--json FILE]

NAME is a folder of HADES_DATA with questions.jsonl.gz, HOME a published home of its corpus.
Questions that are answered with yes or no, and those whose answer stands in none of the sources of
the turn, are left out: what is measured is the choice of sentences. Nothing is written into the
homes.
"""

from __future__ import annotations

import argparse
import gzip
import json
import os
import random
import re
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from hades.retrieval.answer.quote_answer import quote_blocks
from hades.retrieval.answer.write_answer import AnswerLimits, number_sources
from hades.settings.load import load_settings
from hades.wiring import open_answers


def main() -> None:
    """Ask, quote, print."""
    options = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    options.add_argument("sets", nargs="+", metavar="NAME=HOME")
    options.add_argument("--sample", type=int, default=300)
    options.add_argument("--json", type=Path)
    asked = options.parse_args()
    data = Path(os.environ.get("HADES_DATA", ROOT.parent / "shared" / "data"))
    pairs = [one.partition("=") for one in asked.sets]
    figures = {
        name: measure(data / name / "questions.jsonl.gz", Path(home), asked.sample)
        for name, _, home in pairs
    }
    for name, row in figures.items():
        print(
            f"{name:14} {row['holds_answer']:.3f} of {row['questions']:.0f}, "
            f"{row['characters']:.0f} characters quoted"
        )
    if asked.json:
        asked.json.write_text(json.dumps(figures, indent=1))


def measure(questions: Path, home: Path, sample: int) -> dict[str, float]:
    """The share of questions whose quotation holds the answer, and how much is quoted."""
    with gzip.open(questions, "rt") as lines:
        rows = [json.loads(line) for line in lines]
    random.Random(4).shuffle(rows)
    held, lengths = [], []
    with open_answers(load_settings({**os.environ, "HADES_HOME": str(home)})) as answers:
        for row in rows[:sample]:
            answer, question = plain(row["answer"]), row["question"]
            sources = number_sources(answers.retrieve(question), AnswerLimits().sources)
            if answer in ("yes", "no") or not any(answer in plain(one.text) for one in sources):
                continue
            quoted = quote_blocks(question, sources, answers.tools.embedder)
            held.append(any(answer in plain(one.text) for one in quoted))
            lengths.append(sum(len(one.text) for one in quoted))
    count = max(1, len(held))
    return {
        "questions": len(held),
        "holds_answer": sum(held) / count,
        "characters": sum(lengths) / count,
    }


def plain(text: str) -> str:
    """Letters, digits and spaces in lower case."""
    return re.sub(r"[^a-z0-9 ]", "", text.lower())


if __name__ == "__main__":
    main()
