"""A function that remembers words gives what it gave, calls once for each, and forgets all when they are too many."""

from __future__ import annotations

from hades.text.words import remember_words


def test_a_word_is_looked_at_once_while_it_is_remembered() -> None:
    looked_at: list[str] = []

    @remember_words(2)
    def upper(word: str) -> str:
        looked_at.append(word)
        return word.upper()

    assert [upper(word) for word in "abab"] == list("ABAB")
    assert looked_at == ["a", "b"]
    assert [upper(word) for word in "cca"] == list("CCA")
    assert looked_at == ["a", "b", "c", "a"]
