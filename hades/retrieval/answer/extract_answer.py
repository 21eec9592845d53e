"""An answer without a language model: the sentences of the found passages that fit the question best, quoted."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from hades.ports.text import Embedder
from hades.retrieval.ranking.sentence_match import root
from hades.retrieval.ranking.word_overlap import content_words, words
from hades.text.markup import keep_prose, row_words, strip_markup, table_rows
from hades.text.sentences import sentences
from schemas.answer import AnswerSentence, AnswerSource

Floats = NDArray[np.float64]

MAX_SENTENCES = 3
_READ = 60  # sentences that are embedded; each costs about 8 ms on one core
_LONGEST, _SHORTEST = 400, 12  # characters of a sentence that can stand alone
_SAME = 0.7  # share of words above which two sentences say the same
_PLACE = 0.15  # what the rank of its source is worth beside the fit of a sentence
_RELATIVE = 0.85  # a further sentence fits at least this well, compared with the best
_ROW = 0.9  # a row of a table beside a sentence that fits as well: the sentence reads better
_NEAR = 0.4  # cosine from which a sentence may answer without a word of the question
_CODE = re.compile(
    r"\s*(?:@\w|(?:async )?def |class |import |from \w[\w.]* import |(?:public|private|static|func|fn|function) )"
)
_DOCSTRING = re.compile(r"(\"\"\"|\'\'\')(.*?)\1", re.DOTALL)


@dataclass(frozen=True)
class _Candidate:
    number: int
    text: str
    quote: str  # the same words as they stand in the source
    roots: frozenset[str]
    worth: float  # 1 for a sentence, less for a row of a table
    place: int  # in reading order


def extract_sentences(
    question: str, sources: Sequence[AnswerSource], embedder: Embedder | None
) -> tuple[AnswerSentence, ...]:
    """At most three quotations in reading order; each cites its source. Empty when nothing can be quoted."""
    candidates = _candidates(sources)
    if not candidates:
        return ()
    scores = _scores(question, candidates, embedder)
    chosen: list[int] = []
    for index in np.argsort(-scores, kind="stable").tolist():
        enough = _RELATIVE * scores[chosen[0]] if chosen else 0.0
        if len(chosen) == MAX_SENTENCES or scores[index] < enough:
            break
        if all(_overlap(candidates[index], candidates[other]) < _SAME for other in chosen):
            chosen.append(index)
    picked = sorted((candidates[index] for index in chosen), key=lambda one: one.place)
    return tuple(AnswerSentence(text=one.text, citations=(one.number,), quote=one.quote) for one in picked)


def _candidates(sources: Sequence[AnswerSource]) -> list[_Candidate]:
    found: list[_Candidate] = []
    for source in sources:
        if source.kind != "passage":
            continue
        for quote, text in _statements(source):
            worth = _ROW if quote.startswith("|") else 1.0
            if _SHORTEST <= len(text) <= _LONGEST and any(character.isalpha() for character in text):
                roots = frozenset(map(root, words(f"{source.title} {text}")))
                found.append(_Candidate(source.number, text, quote, roots, worth, len(found)))
        if len(found) >= _READ:
            break
    return found[:_READ]


def _statements(source: AnswerSource) -> list[tuple[str, str]]:
    """Sentences and rows of tables, each as it stands in the source and in plain words."""
    about, prose = _readable(source)
    quotes = [" ".join(prose[start:end].split()) for start, end in sentences(prose)]
    rows = [] if about else [(row, row_words(row)) for row in table_rows(source.text)]
    return [(quote, about + strip_markup(quote)) for quote in quotes] + rows


def _readable(source: AnswerSource) -> tuple[str, str]:
    """The sentences of a source and what they are about: of code its docstrings, of text neither heading nor table."""
    if not _CODE.match(source.text):
        return "", keep_prose(_drop_headings(source))
    docstrings = "\n\n".join(found.group(2) for found in _DOCSTRING.finditer(source.text))
    name = source.where.rpartition(", ")[2]
    return (f"{name}: " if name else ""), docstrings


def _drop_headings(source: AnswerSource) -> str:
    """Text of a word processor has no mark on its headings; they stand in the title and in `where`."""
    named = {source.title, *source.where.split(", ")} - {""}
    return "\n".join("\n" if " ".join(line.split()) in named else line for line in source.text.split("\n"))


def _scores(question: str, candidates: Sequence[_Candidate], embedder: Embedder | None) -> Floats:
    asked = list(dict.fromkeys(map(root, content_words(question)))) or list(map(root, words(question)))
    rarity = {
        word: float(np.log((len(candidates) + 1) / (0.5 + sum(word in one.roots for one in candidates))))
        for word in asked
    }
    total = sum(rarity.values()) or 1.0
    lexical = np.array([sum(rarity[word] for word in asked if word in one.roots) / total for one in candidates])
    place = np.array([_PLACE / one.number for one in candidates])
    worth = np.array([one.worth for one in candidates])
    if embedder is None:
        return np.where(lexical > 0.0, worth * (lexical + place), -1.0)
    vectors = embedder.embed([question, *(one.text for one in candidates)])
    near = (vectors[1:] @ vectors[0]).astype(np.float64)
    fit = worth * (0.5 * lexical + 0.5 * near + place)
    return np.where((lexical > 0.0) | (near >= _NEAR), fit, -1.0)


def _overlap(one: _Candidate, other: _Candidate) -> float:
    return len(one.roots & other.roots) / max(1, min(len(one.roots), len(other.roots)))
