"""Fit the ranker of files on issues with known fixes, by cross-validation over repositories.

    python -m benchmarks.fit_code_ranker --repos DIR --cases cases.jsonl.gz [--features FILE]

Each issue is read twice: whole, and its title alone, as people type questions. A repository is
never judged by trees that saw it: the figures printed and stored are those of the held-out folds.
The trees that are written to `models/fitted/code_files.json` are fitted on all repositories.
`--features` keeps what was measured, so that a second run only fits.
"""

from __future__ import annotations

import argparse
import json
import pickle
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from boosted_trees import FitRules, fit_forest
from numpy.typing import NDArray

from benchmarks.evaluation.code import (
    CodeCase,
    CodeRanking,
    CodeRepository,
    find_repository,
    read_code_cases,
    summarise_code,
)
from hades.evaluation.cases import digest
from hades.providers.tokens import MiniLmTokenizer
from hades.retrieval.code.search import (
    POOL_FILES,
    Evidence,
    base_score,
    collect_evidence,
    file_columns,
    score_files,
    score_symbols,
)
from hades.text.code_questions import read_code_question
from models.rankings import Forest

FOLDER = Path(__file__).parents[1] / "models" / "fitted"
DEPTH = 50
VERSION = 2
COMMAND = "python -m benchmarks.fit_code_ranker --repos DIR --cases swe_dev/cases.jsonl.gz"
FILE_RULES = FitRules(trees=60, depth=2, rate=0.1, least_rows=40)


@dataclass(frozen=True, eq=False)
class QuestionEvidence:
    """One question with what was measured for it."""

    case: CodeCase
    is_whole: bool
    files: tuple[str, ...]
    symbols: tuple[str, ...]
    symbol_file: NDArray[np.int64]
    evidence: Evidence


@dataclass(frozen=True, eq=False)
class Rows:
    """The candidates of one question: their names, columns, and which are right."""

    columns: tuple[str, ...]
    names: list[str]
    values: NDArray[np.float64]
    right: NDArray[np.bool_]


def main() -> None:
    """Measure, fit, judge, write."""
    options = _options()
    asked = _measured(options)
    held_out = judge_held_out(asked)
    metric: dict[str, Any] = {}
    for is_whole, title in ((False, "titles"), (True, "whole_issues")):
        places = [place for place, one in enumerate(asked) if one.is_whole == is_whole]
        metric[title] = _figures(asked, held_out, places)
        print(title, json.dumps(metric[title]))
        for repo in sorted({one.case.repo for one in asked}):
            print(
                "  ",
                repo,
                _figures(
                    asked, held_out, [place for place in places if asked[place].case.repo == repo]
                ),
            )
    _write(_fit([file_rows(one) for one in asked], FILE_RULES), options.cases, metric)


def judge_held_out(asked: Sequence[QuestionEvidence]) -> list[CodeRanking]:
    """Every question as trees rank it that never saw its repository."""
    found: dict[int, CodeRanking] = {}
    for repo in sorted({one.case.repo for one in asked}):
        forest = _fit([file_rows(one) for one in asked if one.case.repo != repo], FILE_RULES)
        found |= {
            place: rank(one, forest) for place, one in enumerate(asked) if one.case.repo == repo
        }
        print("held out", repo, flush=True)
    return [found[place] for place in range(len(asked))]


def measure(place: Path, cases: Sequence[CodeCase]) -> Iterator[QuestionEvidence]:
    """What is measured for each question, in the order of the commits."""
    for repo in sorted({case.repo for case in cases}):
        repository = CodeRepository(find_repository(place, repo), MiniLmTokenizer())
        own = [case for case in cases if case.repo == repo]
        for case in sorted(own, key=lambda one: (repository.commit_time(one.commit), one.id)):
            index, _ = repository.at(case.commit)
            symbols = tuple(f"{symbol.path}:{symbol.name}" for symbol in index.symbols)
            for is_whole in (True, False):
                text = case.question if is_whole else case.question.strip().partition("\n")[0]
                found = collect_evidence(index, read_code_question(text))
                yield QuestionEvidence(
                    case, is_whole, tuple(index.files), symbols, index.symbol_file, _smaller(found)
                )
        print("measured", repo, len(own), flush=True)


def file_rows(one: QuestionEvidence) -> Rows:
    """The files that the trees choose among."""
    base = base_score(one.evidence.files)
    pool = np.argsort(-base, kind="stable")[:POOL_FILES]
    columns, values = file_columns(one.evidence)
    names = [one.files[place] for place in pool]
    return Rows(columns, names, values[pool], np.array([name in one.case.gold for name in names]))


def rank(one: QuestionEvidence, forest: Forest) -> CodeRanking:
    """What the trees give for a question; symbols follow the order of their files."""
    file_scores = score_files(one.evidence, forest)
    symbol_scores = score_symbols(one.symbol_file, one.evidence, file_scores)
    first = np.argsort(-file_scores, kind="stable")[:DEPTH]
    named = np.argsort(-symbol_scores, kind="stable")[:DEPTH]
    return CodeRanking(
        tuple(one.files[row] for row in first), tuple(one.symbols[row] for row in named), 0.0
    )


def _figures(
    asked: Sequence[QuestionEvidence], found: Sequence[CodeRanking], places: Sequence[int]
) -> dict[str, Any]:
    figures = summarise_code(
        [asked[place].case for place in places], [found[place] for place in places]
    )
    return {name: figures[name] for name in ("one_file", "file_acc", "file_recall", "symbol_acc")}


def _measured(options: argparse.Namespace) -> list[QuestionEvidence]:
    kept: Path | None = options.features
    if kept is not None and kept.exists():
        loaded: list[QuestionEvidence] = pickle.loads(kept.read_bytes())
        return loaded
    asked = list(measure(options.repos, read_code_cases(options.cases)))
    if kept is not None:
        kept.write_bytes(pickle.dumps(asked))
    return asked


def _smaller(evidence: Evidence) -> Evidence:
    return replace(evidence, units=np.empty(0))


def _fit(rows: Sequence[Rows], rules: FitRules) -> Forest:
    group = np.repeat(np.arange(len(rows)), [len(one.names) for one in rows])
    values, right = (
        np.concatenate([one.values for one in rows]),
        np.concatenate([one.right for one in rows]),
    )
    return fit_forest(rows[0].columns, values, right, group, rules)


def _write(forest: Forest, cases: Path, metric: dict[str, Any]) -> None:
    stored = {
        "version": VERSION,
        "data_sha256": digest([cases]),
        "metric": {"held_out_repositories": metric},
        "command": COMMAND,
        "rules": asdict(FILE_RULES),
        "trees": {
            "columns": list(forest.columns),
            "column": forest.column.tolist(),
            "threshold": np.round(forest.threshold, 6).tolist(),
            "value": np.round(forest.value, 6).tolist(),
        },
    }
    (FOLDER / "code_files.json").write_text(
        json.dumps(stored, separators=(",", ":")) + "\n", encoding="utf-8"
    )


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--repos", type=Path, required=True, help="folder of the repositories that the cases name"
    )
    parser.add_argument(
        "--cases",
        type=Path,
        required=True,
        help="rows of id, repo, commit, question, gold, gold_symbols",
    )
    parser.add_argument(
        "--features", type=Path, help="keep what is measured here, and read it from here next time"
    )
    return parser.parse_args()


if __name__ == "__main__":
    main()
