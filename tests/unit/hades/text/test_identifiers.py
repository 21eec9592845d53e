"""Identifiers are found whole and by their parts; ordinary words stay as they are."""

from __future__ import annotations

import pytest

from hades.text.words import identifier_words, split_identifier, with_search_words


@pytest.mark.parametrize(
    ("name", "parts"),
    [
        ("maxRetries", ["max", "retries"]),
        ("max_retries", ["max", "retries"]),
        ("_private", []),
        ("__init__", []),
        ("HTTPAdapter", ["http", "adapter"]),
        ("parseURL2Json", ["parse", "url", "json"]),
        ("sha256", ["sha", "256"]),
        ("Rule_L036", ["rule", "036"]),
        ("größeMessen", ["größe", "messen"]),
        ("retries", []),
        ("USA", []),
        ("McDonald", []),
        ("1990s", []),
    ],
)
def test_compound_names_have_parts(name: str, parts: list[str]) -> None:
    assert split_identifier(name) == parts


def test_dotted_names_are_also_one_word_without_their_receiver() -> None:
    assert identifier_words("calls os.path.join twice: os.path.join") == ["os_path_join", "os", "path", "join"]
    assert identifier_words("self.session.get()") == ["session_get", "session", "get"]
    assert identifier_words("self.x") == []


def test_prose_gains_nothing() -> None:
    text = "Ada Lovelace (1815-1852) met McDonald e.g. in the U.S. in 3.5 days. It's a well-known story."
    assert identifier_words(text) == []
    assert with_search_words("who met Ada Lovelace?") == "who met Ada Lovelace?"
