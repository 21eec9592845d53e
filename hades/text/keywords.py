"""Which words a text is about; small and fixed, so that the same texts give the same words everywhere."""

from __future__ import annotations

import re
from datetime import datetime

from hades.text.sentences import sentences

_WORD = re.compile(r"[^\W_]+")
_EMPTY = """
    a an and are as at be been but by for from had has have in is it its no not now of on or so than that the their
    then there these they this to was we were which will with
"""
_WITHOUT_MEANING = frozenset(_EMPTY.split())


def words_of(text: str) -> frozenset[str]:
    """The words that carry meaning, in small letters."""
    return frozenset(
        word for word in (found.casefold() for found in _WORD.findall(text)) if word not in _WITHOUT_MEANING
    )


def topic_words(topic: str) -> frozenset[str]:
    """The words of a topic's own name: what stands after its last slash."""
    return words_of(topic.rpartition("/")[2]) or words_of(topic)


def names_topic(text: str, topic: str) -> bool:
    """Whether a text speaks of a topic: it holds every word of its name."""
    wanted = topic_words(topic)
    return bool(wanted) and wanted <= words_of(text)


def sentences_of(text: str) -> list[str]:
    """The sentences of a text, without blanks around them."""
    return [sentence for line in text.splitlines() for start, end in sentences(line) if (sentence := line[start:end])]


def day(moment: datetime | None) -> str:
    """A moment as people write it: the day, with the time where it is not midnight."""
    if moment is None:
        return "always"
    is_midnight = (moment.hour, moment.minute, moment.second) == (0, 0, 0)
    return f"{moment:%Y-%m-%d}" if is_midnight else f"{moment:%Y-%m-%d %H:%M}"
