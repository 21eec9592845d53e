"""The ranker of code as it is used: the fitted trees where they can be read, weights by hand where they cannot."""

from __future__ import annotations

import json
import logging
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Any

import numpy as np

from hades.errors import HadesError
from hades.ports.graph import Numbers
from hades.retrieval.code.columns import file_columns
from hades.retrieval.code.evidence import (
    Evidence,
    base_score,
    best_of_group,
    collect_evidence,
    unit_scale,
    weigh_files,
)
from hades.retrieval.code.index import CodeIndex
from hades.retrieval.code.postings import Scores
from hades.text.code_question import CodeQuestion
from models.code_ranker.trees import Forest

logger = logging.getLogger(__name__)

FORMAT = 1
POOL_FILES = 40  # files that the trees look at; the rest keep the order of the score by hand
TEXT_PENALTY = 2.0  # the trees saw code only; a page or a table of settings stands behind code of equal evidence
# What a cosine counts for files and for symbols of a single sentence, set by hand. 500 web questions: mean reciprocal
# rank .34 without, .54 with. 223 titles of reports: right file first .642 and .675, symbol in the first ten .51, .46.
NEAR_NAMED, NEAR_PLAIN = (1.0, 2.0), (8.0, 32.0)
_BELOW = -1e6


class DamagedRanker(HadesError):
    """A file of fitted numbers that does not fit this version."""


@dataclass(frozen=True, eq=False)
class CodeScores:
    """A score for each file and each symbol of an index; only their order means something."""

    files: Scores
    symbols: Scores
    evidence: Evidence


def score_code(index: CodeIndex, question: CodeQuestion, cosines: Scores | None = None) -> CodeScores:
    """Score every file and symbol for a question; `cosines` of the question with each unit, where there are vectors.

    The trees were fitted on reports of several lines; a single sentence is ranked by hand, and by how near it is.
    """
    evidence = collect_evidence(index, question)
    if question.prose.strip() or question.code.strip():
        file_scores = score_files(evidence, fit("files"))
        return CodeScores(file_scores, score_symbols(index.symbol_file, evidence, file_scores), evidence)
    file_scores = base_score(evidence.files)
    if cosines is None:
        return CodeScores(file_scores, score_symbols(index.symbol_file, evidence, file_scores), evidence)
    weights = NEAR_NAMED if _spells_names(evidence) else NEAR_PLAIN
    counts = weigh_files(evidence.files)
    file_scores = file_scores + weights[0] * counts * best_of_group(cosines, index.unit_file, len(index.files))
    symbol_scores = score_symbols(index.symbol_file, evidence, file_scores)
    near = best_of_group(cosines, index.unit_symbol, len(index.symbols))
    return CodeScores(file_scores, symbol_scores + weights[1] * counts[index.symbol_file] * near, evidence)


def _spells_names(evidence: Evidence) -> bool:
    """Whether a question spells names, paths or frames of the code; else its words may all be other ones."""
    found = (evidence.symbols["name_mark"], evidence.symbols["dotted"], evidence.files["path_exact"])
    return any(column.any() for column in (*found, evidence.files["frame_any"]))


def score_files(evidence: Evidence, forest: Forest | None) -> Scores:
    """By the trees for the best by hand, and by hand for the others, which stay behind them."""
    base = base_score(evidence.files)
    if forest is None:
        return base
    names, rows = file_columns(evidence)
    scores = _rescore(base, rows[:, _places(forest, names)], forest, POOL_FILES)
    return np.asarray(scores - TEXT_PENALTY * evidence.files["is_text"])


def score_symbols(symbol_file: Numbers, evidence: Evidence, file_scores: Scores) -> Scores:
    """Symbols by hand: what the question says of them, and how their file ranks."""
    place = np.empty(len(file_scores))
    place[np.argsort(-file_scores, kind="stable")] = np.arange(len(file_scores))
    own = evidence.symbols
    parts = (
        (1.0, "words_all"), (0.7, "words_title"), (1.0, "name_mark"), (0.7, "name_title"), (0.4, "name_code"),
        (0.3, "name_prose"), (1.0, "dotted"), (1.0, "frame"), (0.5, "phrase"), (0.3, "in_named_class"),
    )  # fmt: skip
    score = sum((weight * unit_scale(own[name]) for weight, name in parts), np.zeros(len(symbol_file)))
    score = score + 2.0 / (1.0 + place[symbol_file])
    return np.asarray(score * np.where(evidence.files["is_test"][symbol_file] > 0, 0.3, 1.0))


@cache
def fit(name: str) -> Forest | None:
    """The trees of `models/code_ranker/<name>.json`; None, with a warning, where there are none that can be used."""
    place = files("models.code_ranker").joinpath(f"{name}.json")
    if not place.is_file():
        logger.debug("no fitted ranker of code for %s; weights by hand rank", name)
        return None
    return read_fitted(json.loads(place.read_text("utf-8")), str(place))


def read_fitted(stored: dict[str, Any], place: str) -> Forest:
    """Check a file of fitted numbers and give its trees."""
    if stored.get("format") != FORMAT:
        raise DamagedRanker(f"{place} has format {stored.get('format')!r}; expected {FORMAT}; fit it again")
    for key in ("version", "data_sha256", "metric", "command", "trees"):
        if key not in stored:
            raise DamagedRanker(f"{place} has no {key!r}; fit it again with benchmarks/fit_code_ranker.py")
    try:
        return Forest.from_json(stored["trees"])
    except (KeyError, ValueError) as error:
        raise DamagedRanker(f"{place} holds no usable trees: {error}; fit it again") from error


def _places(forest: Forest, names: tuple[str, ...]) -> list[int]:
    missing = [name for name in forest.columns if name not in names]
    if missing:
        raise DamagedRanker(f"the fitted ranker of code reads {missing[0]!r}, which is not measured; fit it again")
    return [names.index(name) for name in forest.columns]


def _rescore(base: Scores, rows: Scores, forest: Forest, pool: int) -> Scores:
    scores = _BELOW + base
    first = np.argsort(-base, kind="stable")[:pool]
    scores[first] = forest.score(rows[first])
    return scores
