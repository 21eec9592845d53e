"""Identifiers by their parts, texts by the words of their language, and the sentences of
documentation.
"""

from __future__ import annotations

import pytest

from hades.retrieval.core.words import words
from hades.text.languages import detect_language, language_words, split_unspaced
from hades.text.sentences import documentation_sentences
from hades.text.words import identifier_words, split_identifier, terms, with_search_words


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
    assert identifier_words("calls os.path.join twice: os.path.join") == [
        "os_path_join",
        "os",
        "path",
        "join",
    ]
    assert identifier_words("self.session.get()") == ["session_get", "session", "get"]
    assert identifier_words("self.x") == []


def test_prose_gains_nothing() -> None:
    text = (
        "Ada Lovelace (1815-1852) met McDonald e.g. in the U.S. in 3.5 days. It's a well-known "
        "story."
    )
    assert identifier_words(text) == []
    assert with_search_words("who met Ada Lovelace?") == "who met Ada Lovelace?"


@pytest.mark.parametrize(
    ("language", "text"),
    [
        ("en", "Who wrote the first program for the engine?"),
        ("en", "httpx timeout per request"),
        ("en", "Charles de la Croix was a general of the French army."),
        ("de", "Welche Mannschaften spielten im Finale?"),
        ("fr", "Quelle est la capitale de la France ?"),
        ("es", "¿Cuántos balones interceptó Josh Norman?"),
        ("it", "Quando è stato costruito il ponte della città?"),
        ("pt", "Quando foi construída a ponte da cidade?"),
        ("nl", "Wanneer werd de brug van het dorp gebouwd?"),
        ("ru", "Какие команды играли в финале?"),
        ("zh", "DECnet是什么"),
        ("ja", "東京タワーはいつ建てられましたか"),
        ("ko", "서울의 인구는 얼마입니까"),
        (
            "en",
            "The Green Slime (ガンマー第3号) is by Kinji Fukasaku and was produced in Japan.",
        ),
    ],
)
def test_script_and_common_words_tell_the_language(language: str, text: str) -> None:
    assert detect_language(text) == language


@pytest.mark.parametrize(
    ("language", "stored", "asked"),
    [
        ("de", "Die alten Häuser standen in der Stadt.", "Wo stand das alte Haus in der Stadt?"),
        ("ru", "Сборная выиграла последние игры.", "Кто выиграл последнюю игру и где она была?"),
        ("fr", "Les chevaux couraient dans les champs.", "Quel cheval est dans le champ ?"),
    ],
)
def test_a_question_meets_other_forms_of_its_words(language: str, stored: str, asked: str) -> None:
    found = set(terms(" ".join(language_words(stored, language))))
    assert len(found & set(terms(with_search_words(asked)))) >= 2


def test_text_without_blanks_is_cut_into_pairs() -> None:
    assert split_unspaced(["NFL球队", "是"]) == ["NFL", "球队", "是"]
    assert words("中华人民 2008年") == ["中华", "华人", "人民", "2008", "年"]
    assert {"人口", "北京"} <= set(with_search_words("北京人口").split())


def test_english_gains_no_words() -> None:
    assert language_words("The naïve café owner", "en") == []
    assert with_search_words("What did the café sell?") == "What did the café sell?"


@pytest.mark.parametrize(
    ("code", "expected"),
    [
        (
            'def f():\n    """Opens the wide river. Then it waits\n    for a boat.\n\n    More of '
            'it here too."""\n',
            2,
        ),
        ('def f():\n    """Returns it.\n\n    :param x: one thing of many.\n    """\n', 0),
        ("def f():\n    return 'This is not a docstring at all.'\n", 0),
        ("'''Reads all of the rivers.'''\nx = 1\n", 1),
        ("", 0),
    ],
)
def test_whole_sentences_of_the_first_paragraph(code: str, expected: int) -> None:
    spans = documentation_sentences(code)
    assert len(spans) == expected
    assert all(code[start:end][0].isupper() and code[end - 1] == "." for start, end in spans)
