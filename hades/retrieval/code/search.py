"""One search of code, whoever asks: a question in, files, symbols and units out, best first, near-duplicates merged."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from hades.retrieval.code.index import CodeIndex
from hades.retrieval.code.postings import Scores
from hades.retrieval.code.ranker import CodeScores, score_code
from hades.text.code_question import read_code_question

_SAYS_SOMETHING = ("words_all", "path_exact", "path_all", "frame_any", "name_mark", "dotted", "past_like")
_NEAR_SHARE = 0.9  # of the distinct words of two units together, which both must hold to be near-duplicates
_NEAR_WORDS = 12  # shorter units must be equal: one word more or less is a tenth of them
_IMPORT_LINE = re.compile(r"(?:import|from|use|require|include|using|#include)\b|[\w.* ]+,?$|[)}\]]|if TYPE_CHECKING")
_UNITS_OF_A_SYMBOL = 1  # of a long function the best part is shown


@dataclass(frozen=True)
class RankedName:
    """A file or symbol with its score in [0, 1]; a symbol is named `path:Qualified.name`."""

    id: str
    score: float


@dataclass(frozen=True)
class CodeHits:
    """What a question finds in an index; `units` are rows of the index with their scores."""

    files: tuple[RankedName, ...]
    symbols: tuple[RankedName, ...]
    units: tuple[tuple[int, float], ...]


def search_code(index: CodeIndex, text: str, limit: int, cosines: Scores | None = None) -> CodeHits:
    """The best files, symbols and units for a question of any length, at most `limit` of each."""
    if not index.units:
        return CodeHits((), (), ())
    scores = score_code(index, read_code_question(text), cosines)
    if not any(scores.evidence.files[name].any() for name in _SAYS_SOMETHING):
        return CodeHits((), (), ())
    order = np.argsort(-scores.files, kind="stable")[:limit].tolist()
    named = np.argsort(-scores.symbols, kind="stable")[:limit].tolist()
    return CodeHits(
        tuple(RankedName(index.files[row], _place_score(place)) for place, row in enumerate(order)),
        tuple(RankedName(_symbol_id(index, row), _place_score(place)) for place, row in enumerate(named)),
        tuple(_units(index, scores, limit)),
    )


def _symbol_id(index: CodeIndex, row: int) -> str:
    symbol = index.symbols[row]
    return f"{symbol.path}:{symbol.name}"


def _place_score(place: int) -> float:
    """Scores of trees mean nothing across questions, so a place gives the score that people see."""
    return round(1.0 / (1.0 + 0.1 * place), 4)


def _units(index: CodeIndex, scores: CodeScores, limit: int) -> Iterator[tuple[int, float]]:
    """Units in the order of their symbols; a file whose best unit has no symbol gives that one at the file's place."""
    words = scores.evidence.units
    files = np.argsort(-scores.files, kind="stable").tolist()
    best_of_file = _best_rows(index, words)
    queue: list[tuple[float, int]] = []
    for place, row in enumerate(np.argsort(-scores.symbols, kind="stable")[:limit].tolist()):
        rows = sorted(index.symbols[row].rows, key=lambda one: -words[one])[:_UNITS_OF_A_SYMBOL]
        queue += [(float(place), one) for one in rows]
    for place, file in enumerate(files[:limit]):
        top = best_of_file.get(file)
        if top is not None and index.unit_symbol[top] < 0 and not _is_import_block(index.units[top].text):
            queue.append((place + 0.5, top))
    shown: list[_UnitText] = []
    for _, row in sorted(queue):
        if len(shown) == limit:
            break
        unit = _UnitText(frozenset(index.read[row].term.tolist()), index.units[row].text.split())
        if not any(_is_near(unit, other) for other in shown):
            yield row, _place_score(len(shown))
            shown.append(unit)


@dataclass(frozen=True, eq=False)
class _UnitText:
    """What two units are compared by: their distinct words, and their text without white space."""

    words: frozenset[int]
    text: list[str]


def _is_import_block(text: str) -> bool:
    """Whether most lines of a region import names: it holds the words of a question and answers none."""
    lines = [line for line in map(str.strip, text.split("\n")) if line]
    return 2 * sum(_IMPORT_LINE.match(line) is not None for line in lines) > len(lines)


def _is_near(one: _UnitText, other: _UnitText) -> bool:
    """Whether two units say nearly the same: equal but for white space, or long and of nearly the same words."""
    size, second = len(one.words), len(other.words)
    if not _NEAR_WORDS < size * _NEAR_SHARE <= second <= size / _NEAR_SHARE:
        return one.text == other.text
    both = len(one.words & other.words)
    return both >= _NEAR_SHARE * (size + second - both)


def _best_rows(index: CodeIndex, words: Scores) -> dict[int, int]:
    best: dict[int, int] = {}
    for row in np.argsort(words, kind="stable").tolist():
        best[int(index.unit_file[row])] = row
    return best
