"""What a question says of a file; rank files and symbols."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cache
from itertools import chain

import numpy as np
from numpy.typing import NDArray

from hades.ports.graph import Numbers
from hades.retrieval.code.index import CodeIndex, share_tail
from hades.retrieval.code.words import code_terms
from hades.retrieval.core.words import fitted_file
from hades.retrieval.features.passages import reciprocal, share_of_greatest
from hades.text.code_questions import CodeQuestion, is_identifier, read_code_question
from models.bm25 import Scores
from models.rankings import Forest

_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]+")
_DECAY = 0.7


@dataclass(frozen=True, eq=False)
class Evidence:
    """Columns by name: (files,) and (symbols,) float64 each; `units` are the words of the question
    in each unit.
    """

    files: dict[str, Scores]
    symbols: dict[str, Scores]
    units: Scores


def collect_evidence(index: CodeIndex, question: CodeQuestion) -> Evidence:
    """Every feature of every file and symbol for one question."""
    files: dict[str, Scores] = {}
    symbols: dict[str, Scores] = {}
    unit_scores = np.zeros(len(index.units))
    title = question.title
    prose = question.prose
    code = question.code
    texts = {
        "all": "\n".join([title, title, prose, code, *question.errors]),
        "title": title,
        "prose": prose,
        "code": "\n".join([code, *question.commands]),
        "inline": "\n".join(question.inline),
    }

    for part, text in texts.items():
        query = _weigh(index, text)
        files[f"words_{part}"] = index.file_postings.score(query)
        units = index.unit_postings.score(query)
        files[f"unit_{part}"] = _top_mean(
            units,
            index.unit_file,
            len(index.files),
            1,
        )

        if part in ("all", "title"):
            symbols[f"words_{part}"] = index.symbol_postings.score(query)[:-1]

        if part == "all":
            unit_scores = units
            files["unit3_all"] = _top_mean(
                units,
                index.unit_file,
                len(index.files),
                3,
            )

        if part in ("all", "title"):
            files[f"path_{part}"] = index.path_postings.score(query)

    _names(index, question, files, symbols)
    _score_dotted_names(index, question, files, symbols)
    _paths(index, question, files)
    _stems(index, question, files)
    _frames(index, question, files, symbols)
    _phrases(index, question, files, symbols)
    _past(index, question, files)
    files |= index.file_shape
    _neighbours(index, files, symbols)
    return Evidence(files, symbols, unit_scores)


def base_score(files: dict[str, Scores]) -> Scores:
    """A score by hand, to start walks from; it also ranks a single sentence."""
    parts = (
        (0.8, "words_all"),
        (0.4, "unit_all"),
        (0.8, "unit3_all"),
        (0.7, "words_title"),
        (0.5, "path_all"),
        (0.3, "path_title"),
        (0.4, "stem_title"),
        (1.0, "name_mark"),
        (0.4, "name_code"),
        (0.5, "name_prose"),
        (1.0, "dotted"),
        (2.5, "path_exact"),
        (1.0, "frame_last"),
        (0.5, "frame_any"),
        (0.6, "phrase"),
        (0.6, "past_like"),
        (0.1, "past_often"),
    )
    score = sum(weight * share_of_greatest(files[name]) for weight, name in parts)
    return np.asarray(score * weigh_files(files))


def weigh_files(files: dict[str, Scores]) -> Scores:
    """What evidence of a file counts: less in tests, in what lies aside and in texts."""
    shares = (("is_test", 0.3), ("is_aside", 0.6), ("is_text", 0.3))

    factors = []
    for name, share in shares:
        factors.append(np.where(files[name] > 0, share, 1.0))

    return np.asarray(np.prod(factors, axis=0))


def best_of_group(
    values: Scores,
    group: NDArray[np.int64],
    groups: int,
) -> Scores:
    """The largest value of each group, at least 0; members of group -1 belong to none."""
    best = np.zeros(groups)
    inside = group >= 0
    np.maximum.at(best, group[inside], values[inside])
    return best


def _weigh(index: CodeIndex, text: str) -> dict[int, float]:
    counts = Counter(code_terms(text))
    terms = index.words.terms
    return {terms[word]: count**0.5 for word, count in counts.items() if word in terms}


def _top_mean(
    values: Scores,
    group: NDArray[np.int64],
    groups: int,
    count: int,
) -> Scores:
    """The mean of the best few values of each group, with zeros for those that a group lacks."""
    total = np.zeros(groups)
    if not len(values):
        return total

    order = np.lexsort((-values, group))
    sorted_group = group[order]
    first = np.concatenate(([True], sorted_group[1:] != sorted_group[:-1]))
    run = np.flatnonzero(first)
    place = np.arange(len(order)) - np.repeat(run, np.diff(np.append(run, len(order))))
    is_top = place < count
    np.add.at(
        total,
        sorted_group[is_top],
        values[order][is_top],
    )
    return total / count


def _names(
    index: CodeIndex,
    question: CodeQuestion,
    files: dict[str, Scores],
    symbols: dict[str, Scores],
) -> None:
    """Names that the repository defines and the question spells, by where it spells them; rare
    names count more.
    """
    spans = {
        "mark": [*question.inline, *_marked(question.title), *_marked(question.prose)],
        "title": [question.title],
        "prose": [question.prose],
        "code": [question.code, *question.commands],
    }
    for place, texts in spans.items():
        file_scores = np.zeros(len(index.files))
        symbol_scores = np.zeros(len(index.symbols))
        for name, count in Counter(_names_in(texts)).items():
            hits = index.defined.get(name.lower(), ())
            if not hits or len(name) < 3:
                continue

            exact = [hit for hit in hits if index.symbols[hit].name.rsplit(".", 1)[-1] == name]
            chosen = exact or hits
            worth = 1.0 if exact else 0.4

            if place in ("title", "prose") and name.islower() and "_" not in name:
                worth *= 0.5  # an ordinary word that is a name by chance

            worth *= 1 + np.log(count)
            homes = {int(index.symbol_file[hit]) for hit in chosen}
            for home in homes:
                file_scores[home] += worth / len(homes) ** 0.7

            for hit in chosen:
                symbol_scores[hit] = max(symbol_scores[hit], worth / len(chosen) ** 0.5)

        files[f"name_{place}"] = file_scores
        symbols[f"name_{place}"] = symbol_scores

    used = np.zeros(len(index.files))
    for name in {name for name in _names_in(spans["mark"]) if len(name) > 3}:
        users = []
        for row, uses in enumerate(index.file_uses):
            if name in uses:
                users.append(row)

        if 0 < len(users) <= 20:
            used[users] += 1.0 / len(users) ** 0.7

    files["name_used"] = used


def _names_in(texts: Iterable[str]) -> list[str]:
    return list(chain.from_iterable(map(_NAME.findall, texts)))


def _marked(text: str) -> list[str]:
    return [word for word in re.findall(r"[\w.]+(?:\(\))?", text) if is_identifier(word)]


def _score_dotted_names(
    index: CodeIndex,
    question: CodeQuestion,
    files: dict[str, Scores],
    symbols: dict[str, Scores],
) -> None:
    """Dotted names such as `pkg.module.Class.method`: how many of their parts a symbol and its path
    agree with.
    """
    file_scores = np.zeros(len(index.files))
    modules = np.zeros(len(index.files))
    symbol_scores = np.zeros(len(index.symbols))

    for dotted in question.dotted:
        parts = dotted.split(".")
        for depth in range(len(parts), 1, -1):
            hits = index.defined.get(parts[depth - 1].lower(), ())
            agree = {hit: _agreement(index, hit, parts[: depth - 1]) for hit in hits}
            best = max(agree.values(), default=0)

            if best:
                chosen = [hit for hit, value in agree.items() if value == best]
                homes = {int(index.symbol_file[hit]) for hit in chosen}
                for home in homes:
                    file_scores[home] += (1 + 0.5 * best) / len(homes) ** 0.7

                for hit in chosen:
                    symbol_scores[hit] += (1 + 0.5 * best) / len(chosen) ** 0.5

                break

        for part in parts[1:]:
            rows = index.stems.get(part.lower(), ())
            if rows and len(part) > 2:
                modules[list(rows)] += 1.0 / len(rows)

    files["dotted"] = file_scores
    files["module"] = np.log1p(modules)
    symbols["dotted"] = symbol_scores


def _agreement(
    index: CodeIndex,
    hit: int,
    parts: Iterable[str],
) -> int:
    symbol = index.symbols[hit]
    around = {
        *symbol.name.lower().split(".")[:-1],
        *symbol.path.lower().rsplit(".", 1)[0].split("/"),
    }
    return sum(part.lower() in around for part in parts)


def _paths(
    index: CodeIndex,
    question: CodeQuestion,
    files: dict[str, Scores],
) -> None:
    """Paths that the question writes: the share of a file's path that agrees from its end."""
    exact = np.zeros(len(index.files))

    by_name: dict[str, list[int]] = {}
    for row, path in enumerate(index.files):
        by_name.setdefault(path.rsplit("/", 1)[-1].lower(), []).append(row)

    for written in question.paths:
        parts = written.lower().split("/")
        rows, shared = _closest_files(
            index,
            by_name.get(parts[-1], ()),
            parts,
        )
        for row in rows:
            exact[row] += (1.0 + 0.5 * min(shared - 1, 3)) / len(rows)

    files["path_exact"] = exact


def _closest_files(
    index: CodeIndex,
    rows: Iterable[int],
    parts: list[str],
) -> tuple[list[int], int]:
    """The files of `rows` whose paths agree most with these parts from their end, and in how many
    parts.
    """
    shared = {}
    for row in rows:
        shared[row] = share_tail(parts, index.files[row].lower().split("/"))

    most = max(shared.values(), default=0)
    return [row for row, count in shared.items() if count == most], most


def _stems(
    index: CodeIndex,
    question: CodeQuestion,
    files: dict[str, Scores],
) -> None:
    """Words of the question that are the name of a file, such as a rule or a command; rare names
    count more.
    """
    places = {
        "title": [question.title],
        "any": [question.prose, *question.inline, *question.commands],
    }
    for place, texts in places.items():
        scores = np.zeros(len(index.files))
        for word in sorted(set(map(str.lower, _names_in(texts)))):
            rows = index.stems.get(word, ())
            if rows and len(word) > 2:
                scores[list(rows)] += 1.0 / len(rows)

        files[f"stem_{place}"] = scores


def _frames(
    index: CodeIndex,
    question: CodeQuestion,
    files: dict[str, Scores],
    symbols: dict[str, Scores],
) -> None:
    """Frames of stack traces that lie in the repository; the innermost counts most."""
    last = np.zeros(len(index.files))
    counts = np.zeros(len(index.files))
    symbol_scores = np.zeros(len(index.symbols))

    depth = 0
    for frame in reversed(question.frames):
        parts = frame.path.lower().split("/")
        stem = parts[-1].rsplit(".", 1)[0]
        if parts[-1].startswith("__init__") and len(parts) > 1:
            stem = parts[-2]

        rows, shared = _closest_files(
            index,
            index.stems.get(stem, ()),
            parts,
        )
        if shared < min(2, len(parts)):
            continue

        for row in rows:
            last[row] = max(last[row], _DECAY**depth)
            counts[row] += 1
            for hit in index.defined.get(frame.function.lower(), ()):
                if index.symbol_file[hit] == row:
                    symbol_scores[hit] = max(symbol_scores[hit], _DECAY**depth)

        depth += 1

    files["frame_last"] = last
    files["frame_any"] = np.log1p(counts)
    symbols["frame"] = symbol_scores


def _phrases(
    index: CodeIndex,
    question: CodeQuestion,
    files: dict[str, Scores],
    symbols: dict[str, Scores],
) -> None:
    """Error messages and quotations that stand in string literals."""
    quoted = (*question.errors, *question.quotes, question.title)
    units = index.phrases[1].score(index.phrase_terms(quoted))
    files["phrase"] = _top_mean(
        units,
        index.unit_file,
        len(index.files),
        1,
    )
    everything = f"{question.title}\n{question.prose}\n{question.code}"
    all_units = index.phrases[1].score(index.phrase_terms([everything]))
    files["phrase_all"] = _top_mean(
        all_units,
        index.unit_file,
        len(index.files),
        1,
    )
    symbols["phrase"] = best_of_group(
        units,
        index.unit_symbol,
        len(index.symbols),
    )


def _past(
    index: CodeIndex,
    question: CodeQuestion,
    files: dict[str, Scores],
) -> None:
    report = f"{question.title}\n{question.title}\n{question.prose}"
    for name, text in (("past_like", report), ("past_like_title", question.title)):
        counts = Counter(code_terms(text))
        files[name] = index.history.similar(
            {word: count**0.5 for word, count in counts.items()},
            index.file_row,
        )

    files["past_often"] = index.past_changes.frequency
    files["past_recent"] = index.past_changes.recency


def _neighbours(
    index: CodeIndex,
    files: dict[str, Scores],
    symbols: dict[str, Scores],
) -> None:
    """What hits lend along imports and names, and what their classes and files lend to symbols."""
    leading = base_score(files)
    if len(leading):
        least = np.sort(leading)[-min(10, len(leading))]
        leading = np.where(leading >= least, leading, 0.0)

    files["uses_hits"] = index.use_graph.spread(leading, to_users=True)
    files["used_by_hits"] = index.use_graph.spread(leading, to_users=False)
    files["past_together"] = index.past_changes.together(leading / (leading.sum() or 1.0))
    named_symbols = symbols["name_mark"] + symbols["dotted"] + 0.3 * symbols["name_code"]

    if len(named_symbols):
        symbols["in_named_class"] = np.where(
            index.outer >= 0,
            named_symbols[index.outer],
            0.0,
        )
    else:
        symbols["in_named_class"] = named_symbols


_AS_THEY_ARE = frozenset(
    ("is_test", "is_aside", "is_text", "is_package", "size", "past_often", "past_recent")
)
_FILE_RANKS = (
    *("base", "words_all", "unit_all", "words_title", "past_like", "name_mark"),
    *("path_all", "used_by_hits", "uses_hits", "unit3_all"),
)


def file_columns(evidence: Evidence) -> tuple[tuple[str, ...], Scores]:
    """Names and (files, columns) values, which mean the same in every repository."""
    columns: dict[str, Scores] = {}
    for name, values in {
        **evidence.files,
        "base": base_score(evidence.files),
    }.items():
        columns[name] = values if name in _AS_THEY_ARE else share_of_greatest(values)
        if name in _FILE_RANKS:
            columns[f"{name}_rank"] = reciprocal_rank(values)

    return tuple(columns), np.stack(list(columns.values()), 1)


def reciprocal_rank(values: Scores) -> Scores:
    """1 for the best, 1/2 for the next; a value of zero counts as last."""
    return np.where(
        values > 0,
        reciprocal(values),
        1.0 / (1.0 + len(values)),
    )


POOL_FILES = 40  # files that the trees look at; the rest keep the order of the score by hand
# the trees saw code only; a page or a table of settings stands behind code of equal evidence
TEXT_PENALTY = 2.0
# What a cosine counts for files and for symbols of a single sentence, set by hand. 500 web
# questions: mean reciprocal rank .34 without, .54 with. 223 titles of reports: right file first
# .642 and .675, symbol in the first ten .51, .46.
NEAR_NAMED, NEAR_PLAIN = (1.0, 2.0), (8.0, 32.0)
_BELOW = -1e6


@dataclass(frozen=True, eq=False)
class CodeScores:
    """A score for each file and each symbol of an index; only their order means something."""

    files: Scores
    symbols: Scores
    evidence: Evidence


def score_code(
    index: CodeIndex,
    question: CodeQuestion,
    cosines: Scores | None = None,
) -> CodeScores:
    """Score every file and symbol for a question; `cosines` of the question with each unit, where
    there are vectors.

    The trees were fitted on reports of several lines; a single sentence is ranked by hand, and by
    how near it is.
    """
    evidence = collect_evidence(index, question)
    is_report = bool(question.prose.strip() or question.code.strip())
    files = evidence.files
    symbols = evidence.symbols

    if is_report:
        file_scores = score_files(evidence, fitted_trees())
    else:
        file_scores = base_score(files)

    if is_report or cosines is None:
        symbol_scores = score_symbols(
            index.symbol_file,
            evidence,
            file_scores,
        )
        return CodeScores(file_scores, symbol_scores, evidence)

    # Whether it spells names, paths or frames of the code; else its words may all be other ones.
    spelled = (symbols["name_mark"], symbols["dotted"], files["path_exact"], files["frame_any"])
    is_spelled = any(column.any() for column in spelled)
    file_weight, symbol_weight = NEAR_NAMED if is_spelled else NEAR_PLAIN
    shares = weigh_files(files)
    file_cosines = best_of_group(
        cosines,
        index.unit_file,
        len(index.files),
    )
    file_scores = file_scores + file_weight * shares * file_cosines
    symbol_scores = score_symbols(
        index.symbol_file,
        evidence,
        file_scores,
    )
    symbol_cosines = best_of_group(
        cosines,
        index.unit_symbol,
        len(index.symbols),
    )
    symbol_scores = symbol_scores + symbol_weight * shares[index.symbol_file] * symbol_cosines
    return CodeScores(file_scores, symbol_scores, evidence)


def score_files(evidence: Evidence, forest: Forest) -> Scores:
    """By the trees for the best by hand, and by hand for the others, which stay behind them."""
    base = base_score(evidence.files)
    names, rows = file_columns(evidence)
    first = _best_first(base)[:POOL_FILES]
    columns = [names.index(name) for name in forest.columns]
    scores = _BELOW + base
    scores[first] = forest.score(rows[first][:, columns])
    return np.asarray(scores - TEXT_PENALTY * evidence.files["is_text"])


def score_symbols(
    symbol_file: Numbers,
    evidence: Evidence,
    file_scores: Scores,
) -> Scores:
    """Symbols by hand: what the question says of them, and how their file ranks."""
    columns = evidence.symbols
    parts = (
        (1.0, "words_all"),
        (0.7, "words_title"),
        (1.0, "name_mark"),
        (0.7, "name_title"),
        (0.4, "name_code"),
        (0.3, "name_prose"),
        (1.0, "dotted"),
        (1.0, "frame"),
        (0.5, "phrase"),
        (0.3, "in_named_class"),
    )
    score = sum(
        (weight * share_of_greatest(columns[name]) for weight, name in parts),
        np.zeros(len(symbol_file)),
    )
    score = score + 2.0 * reciprocal(file_scores)[symbol_file]
    return np.asarray(score * np.where(evidence.files["is_test"][symbol_file] > 0, 0.3, 1.0))


@cache
def fitted_trees() -> Forest:
    """The trees of `models/fitted/code_files.json`."""
    return Forest.from_json(fitted_file("code_files")["trees"])


_SAYS_SOMETHING = (
    "words_all",
    "path_exact",
    "path_all",
    "frame_any",
    "name_mark",
    "dotted",
    "past_like",
)
_NEAR_SHARE = (
    0.9  # of the distinct words of two units together, which both must hold to be near-duplicates
)
_NEAR_WORDS = 12  # shorter units must be equal: one word more or less is a tenth of them
_IMPORT_LINE = re.compile(
    r"(?:import|from|use|require|include|using|#include)\b|[\w.* ]+,?$|[)}\]]|if TYPE_CHECKING"
)


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


def search_code(
    index: CodeIndex,
    text: str,
    limit: int,
    cosines: Scores | None = None,
) -> CodeHits:
    """The best files, symbols and units for a question, at most `limit` of each, near-duplicates
    merged.
    """
    if not index.units:
        return CodeHits((), (), ())

    scores = score_code(index, read_code_question(text), cosines)
    if not any(scores.evidence.files[name].any() for name in _SAYS_SOMETHING):
        return CodeHits((), (), ())

    files = [index.files[row] for row in _best_first(scores.files)[:limit]]
    symbols = [index.symbols[row] for row in _best_first(scores.symbols)[:limit]]
    names = [f"{symbol.path}:{symbol.name}" for symbol in symbols]
    return CodeHits(
        _by_place(files),
        _by_place(names),
        tuple(_units(index, scores, limit)),
    )


def _best_first(scores: Scores) -> list[int]:
    rows: list[int] = np.argsort(-scores, kind="stable").tolist()
    return rows


def _by_place(names: Iterable[str]) -> tuple[RankedName, ...]:
    return tuple(RankedName(name, _place_score(place)) for place, name in enumerate(names))


def _place_score(place: int) -> float:
    """Scores of trees mean nothing across questions, so a place gives the score that people see."""
    return round(1.0 / (1.0 + 0.1 * place), 4)


def _units(
    index: CodeIndex,
    scores: CodeScores,
    limit: int,
) -> Iterator[tuple[int, float]]:
    """The best unit of each symbol, in the order of the symbols; a file whose best unit has no
    symbol gives that one at the file's place.
    """
    words = scores.evidence.units
    order = np.argsort(words, kind="stable")
    best_of_file = dict(zip(index.unit_file[order].tolist(), order.tolist(), strict=True))

    queue: list[tuple[float, int]] = []
    for place, symbol_row in enumerate(_best_first(scores.symbols)[:limit]):
        rows = index.symbols[symbol_row].rows
        queue.append((float(place), max(rows, key=lambda row: words[row])))

    for place, file in enumerate(_best_first(scores.files)[:limit]):
        row = best_of_file[file]
        if index.unit_symbol[row] < 0 and not _is_import_block(index.units[row].text):
            queue.append((place + 0.5, row))

    shown: list[_UnitText] = []
    for _, row in sorted(queue):
        if len(shown) == limit:
            break

        terms = frozenset(index.unit_words[row].term.tolist())
        unit = _UnitText(terms, index.units[row].text.split())
        if not any(_is_near(unit, shown_unit) for shown_unit in shown):
            yield row, _place_score(len(shown))
            shown.append(unit)


@dataclass(frozen=True, eq=False)
class _UnitText:
    """What two units are compared by: their distinct words, and their text without white space."""

    words: frozenset[int]
    text: list[str]


def _is_import_block(text: str) -> bool:
    """Whether most lines of a region import names: it holds the words of a question and answers
    none.
    """
    lines = []
    for line in map(str.strip, text.split("\n")):
        if line:
            lines.append(line)

    return 2 * sum(_IMPORT_LINE.match(line) is not None for line in lines) > len(lines)


def _is_near(first: _UnitText, second: _UnitText) -> bool:
    """Whether two units say nearly the same: equal but for white space, or long and of nearly the
    same words.
    """
    first_size = len(first.words)
    second_size = len(second.words)

    if not _NEAR_WORDS < first_size * _NEAR_SHARE <= second_size <= first_size / _NEAR_SHARE:
        return first.text == second.text

    both = len(first.words & second.words)
    return both >= _NEAR_SHARE * (first_size + second_size - both)
