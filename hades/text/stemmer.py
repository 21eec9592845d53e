"""The English stem of a word by Snowball 2 ("Porter2"), the algorithm and version of ArangoDB's text analyzers."""

from __future__ import annotations

import threading

import Stemmer

_local = threading.local()  # a Snowball stemmer is not safe across threads


def stem(word: str) -> str:
    """The stem of one word in lower case."""
    stemmer = getattr(_local, "stemmer", None)
    if stemmer is None:
        stemmer = _local.stemmer = Stemmer.Stemmer("english", 0)  # no cache of its own: callers keep their words
    found: str = stemmer.stemWord(word)
    return found
