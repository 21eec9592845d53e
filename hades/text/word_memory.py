"""Functions of a word that remember what they gave: the texts of a turn hold thousands of words, most met before."""

from __future__ import annotations

from collections.abc import Callable


class _Results(dict[str, str]):
    """What a function gave for each word, computed at the first look-up; all are forgotten when they are too many."""

    def __init__(self, function: Callable[[str], str], most: int) -> None:
        super().__init__()
        self._function, self._most = function, most

    def __missing__(self, word: str) -> str:
        if len(self) >= self._most:
            self.clear()
        result = self[word] = self._function(word)
        return result


def remember_words(most: int) -> Callable[[Callable[[str], str]], Callable[[str], str]]:
    """A decorator of a function of one word; a result that is known costs a look-up and no call in Python.

    `functools.lru_cache` also keeps the order of use, which takes twice as long.
    """
    return lambda function: _Results(function, most).__getitem__
