"""Whether the sources that a sentence cites say what it says: by its words, and strictly by its numbers and names."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from hades.retrieval.answer.answer_sources import NO_ANSWER
from hades.retrieval.ranking.sentence_match import root
from hades.retrieval.ranking.word_overlap import content_words, words
from hades.text.sentences import sentences
from schemas.answer import AnswerSentence, AnswerSource

# A paraphrase keeps about this share of its content words; below it a sentence speaks of something else.
MIN_SHARE = 0.6
_CITATION = re.compile(r"[ \t]*[\[【]\s*(?:source\s*)?(\d{1,4}(?:\s*[,;]\s*\d{1,4})*)\s*[\]】]", re.IGNORECASE)
_NUMBER = re.compile(r"\d+(?:[.,]\d+)*")
_NAME = re.compile(r"(?<![.!?]\s)(?<!^)\b[^\W\d_a-z][\w'-]+")
_CONTROL = re.compile(r"\x1b\[[0-9;]*[A-Za-z]|[\x00-\x08\x0b-\x1f\x7f-\x9f\u200b-\u200f\u202a-\u202e\u2066-\u2069]")
_CLOSED = re.compile(r"[.!?][\"')\]]*(?:[ \t]*\[[\d,; ]+\])*\s+")


def clean_reply(text: str) -> str:
    """A reply without control and direction marks: it is printed in terminals and pages."""
    return _CONTROL.sub("", text)


def split_reply(text: str) -> Iterator[tuple[str, tuple[int, ...]]]:
    """Sentences without their marks, each with the numbers that it cites; marks behind the full stop belong to it."""
    joined = _move_marks(clean_reply(text))
    for start, end in sentences(joined):
        piece = joined[start:end]
        cited = [int(number) for found in _CITATION.finditer(piece) for number in _NUMBER.findall(found.group(1))]
        bare = " ".join(_CITATION.sub("", piece).split())
        if any(character.isalnum() for character in bare):
            yield bare, tuple(dict.fromkeys(cited))


def close_length(text: str) -> int:
    """How much of a growing reply is whole sentences with their marks."""
    return max((found.end() for found in _CLOSED.finditer(text)), default=0)


def check_sentence(text: str, cited: Sequence[int], sources: Sequence[AnswerSource], question: str) -> AnswerSentence:
    """The sentence with citations that resolve. Where it cites nothing, the source that states it is added."""
    by_number = {source.number: source for source in sources}
    known = tuple(number for number in cited if number in by_number)
    if text.strip().rstrip(".") == NO_ANSWER.rstrip("."):
        return AnswerSentence(text=text)
    if not known:
        best = max(sources, key=lambda source: _share(text, [source], question), default=None)
        if best is None or _problem(text, [best], question):
            told = (
                f"it cites {', '.join(map(str, cited))}, which is no source of this turn"
                if cited
                else "it cites no source"
            )
            return AnswerSentence(text=text, is_supported=False, problem=told)
        return AnswerSentence(text=text, citations=(best.number,))
    problem = _problem(text, [by_number[number] for number in known], question)
    return AnswerSentence(text=text, citations=known, is_supported=not problem, problem=problem)


def _problem(text: str, sources: Sequence[AnswerSource], question: str) -> str:
    """Why the sources do not support the sentence; empty where they do."""
    held = " ".join(f"{source.title} {source.text}" for source in sources)
    missing = [number for number in _NUMBER.findall(text) if number not in _NUMBER.findall(f"{held} {question}")]
    if missing:
        return f"the cited source does not hold {', '.join(dict.fromkeys(missing))}"
    spoken = set(map(root, words(f"{held} {question}")))
    strangers = [name for name in _NAME.findall(text) if not spoken.issuperset(map(root, words(name)))]
    if strangers:
        return f"the cited source does not name {', '.join(dict.fromkeys(strangers))}"
    share = _share(text, sources, question)
    if share < MIN_SHARE:
        return f"{share:.0%} of its words stand in the cited source"
    return ""


def _share(text: str, sources: Sequence[AnswerSource], question: str) -> float:
    """The share of the sentence's content words that the sources hold; words of the question count for nothing."""
    asked = set(map(root, content_words(question)))
    wanted = [word for word in dict.fromkeys(map(root, content_words(text))) if word not in asked]
    if not wanted:
        wanted = list(dict.fromkeys(map(root, content_words(text))))
    held = {root(word) for source in sources for word in words(f"{source.title} {source.text}")}
    return sum(word in held for word in wanted) / len(wanted) if wanted else 0.0


def _move_marks(text: str) -> str:
    """`said. [1]` -> `said [1].`, so that the mark stays with its sentence."""
    return re.sub(r"([.!?])((?:[ \t]*[\[【][\d,; ]+[\]】])+)", r"\2\1", text)
