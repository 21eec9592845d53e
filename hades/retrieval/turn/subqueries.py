"""The parts of a question that could be asked alone. A language model may do better; the words themselves need none."""

from __future__ import annotations

import re

from hades.retrieval.ranking.word_overlap import content_words

# Where a question turns to another thing: its own marks, and words that join what could be asked alone.
_TURNS = re.compile(r"[;?!]\s+|,?\s+(?:and|or|but|while|whereas|versus|vs\.?|compared (?:to|with))\s+|,\s+", re.I)
_LEAST_WORDS = 2  # content words; a shorter clause finds anything


def subqueries(text: str, q: int) -> tuple[str, ...]:
    """The question and its clauses, `q` of them at most; the whole question is always the first."""
    return (text, *clauses(text))[: max(1, q)]


def clauses(text: str) -> list[str]:
    """What a question asks, part by part, in its own words; empty when it asks one thing only."""
    parts = [part.strip(" ,;?!.") for part in _TURNS.split(text)]
    kept = [part for part in dict.fromkeys(parts) if len(content_words(part)) >= _LEAST_WORDS]
    return kept if len(kept) > 1 else []
