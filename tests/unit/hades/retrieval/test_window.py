"""The context window keeps its budget, evicts the right things and says things in the right
order.
"""

from __future__ import annotations

import pytest

from hades.providers.tokens import MiniLmTokenizer
from hades.retrieval.answer.path_text import CEILING
from hades.retrieval.answer.prompt import ContextWindowManager
from hades.text.sentences import first_sentence, sentences

TOKENS = MiniLmTokenizer()


def window(tokens: int) -> ContextWindowManager:
    return ContextWindowManager(tokens, 0, TOKENS)


def words(number: int, word: str = "word") -> str:
    return " ".join([word] * number)


def path(text: str, reliability: float = 0.5) -> dict[str, object]:
    return {"text": text, "reliability": reliability}


def test_defaults_leave_3584_tokens():
    assert ContextWindowManager().available_tokens == 3584


def test_a_reserve_above_the_window_is_refused():
    with pytest.raises(ValueError, match="reserve_tokens is 600"):
        ContextWindowManager(512, 600)


def test_tokens_are_those_of_the_tokenizer_and_short_text_is_not_free():
    held = window(1000)
    held.add_path(path(words(300)))
    assert held.current_token_count == 300
    held.add_path(path("a b"))
    assert held.current_token_count == 302


def test_without_a_tokenizer_three_bytes_are_a_token():
    held = ContextWindowManager(100, 0)
    held.add_path(path("abcd"))
    assert held.current_token_count == 2
    assert CEILING.count("ééé") == 2
    assert CEILING.truncate("ééé", 1) == "é"


def test_an_unknown_priority_is_medium():
    held = window(10)
    held.add_path(path("one"), "urgent")
    held.add_path(path("two"), "high_priority")
    assert [item.text for item in held.context["medium"]] == ["one"]
    assert [item.text for item in held.context["high"]] == ["two"]


def test_only_the_deficit_is_freed_lowest_level_and_least_reliable_first():
    held = window(50)
    held.add_path(path(words(10, "lo"), 0.9), "low")
    held.add_path(path(words(10, "la"), 0.2), "low")
    held.add_path(path(words(10, "me"), 0.1), "medium")
    held.add_path(path(words(10, "hi"), 0.1), "high")
    assert held.add_path(
        path(words(15, "new")), "high"
    )  # 5 tokens are missing: the less reliable low path goes
    assert [item.text[:2] for item in held.context["low"]] == ["lo"]
    assert held.add_path(path(words(20, "big")), "high")
    assert held.context["low"] == []
    assert held.context["medium"] == []
    assert [item.text[:3] for item in held.context["high"]] == ["hi ", "new", "big"]


def test_path_text_adds_what_is_known_of_each_vertex():
    held = window(100)
    vertices = [{"name": "A", "description": "the first"}, {"name": "B"}]
    held.add_path({"path": "A -> B", "vertices": vertices, "reliability": 0.5})
    assert held.context["medium"][0].text == "A -> B\n- A: the first"


def test_high_priority_stands_at_both_ends_and_the_best_last():
    held = window(100)
    for text, reliability in (("best", 0.9), ("worst", 0.1), ("good", 0.7), ("fair", 0.4)):
        held.add_path(path(text, reliability), "high")
    held.add_path(path("middle"), "medium")
    held.add_path(path("background"), "low")
    assert held.get_formatted_context().split("\n\n") == [
        "worst",
        "fair",
        "middle",
        "background",
        "good",
        "best",
    ]


def test_a_summary_keeps_high_in_full_and_first_sentences_of_medium():
    held = window(400)
    held.add_path(path("High stays. All of it."), "high")
    held.add_path(path("v3.5 is out. Nobody knows more than that about the release."), "medium")
    held.add_path(
        path("Background one, rather long, so that the count of it is shorter than what it says."),
        "low",
    )
    held.add_path(
        path("Background two, just as long, for the same reason: the full text would be larger."),
        "low",
    )
    assert held.summarize_context().split("\n\n") == [
        "High stays. All of it.",
        "v3.5 is out.",
        "Additional 2 background context items available.",
    ]


class Wordy:
    def summarize(self, text: str) -> str:
        return text + " and much more"


class Brief:
    def summarize(self, text: str) -> str:
        return text.split(maxsplit=1)[0]


def test_a_model_summarizes_unless_it_gets_longer():
    held = window(100)
    held.add_path(path("first second third"))
    assert held.summarize_context(Brief()) == "first"
    assert held.summarize_context(Wordy()) == "first second third"
    assert held.summarize_context(object()) == "first second third"


@pytest.mark.parametrize(
    ("text", "first"),
    [
        ("v3.5 is out. Get it.", "v3.5 is out."),
        (
            "Dr. Smith met J. R. Doe in the U.S. embassy. They talked.",
            "Dr. Smith met J. R. Doe in the U.S. embassy.",
        ),
        ('He said "Stop!" Then he left.', 'He said "Stop!"'),
        ("See Fig. 3 for e.g. Bayes. Then go on.", "See Fig. 3 for e.g. Bayes."),
        ("no stop at all", "no stop at all"),
        ("A title\n\nThe text begins.", "A title"),
        ("", ""),
    ],
)
def test_the_first_sentence_is_a_whole_sentence(text: str, first: str):
    assert first_sentence(text) == first


def test_sentences_are_spans_of_the_text():
    text = "One is here. Two is there!  Three?"
    assert [text[start:end] for start, end in sentences(text)] == [
        "One is here.",
        "Two is there!",
        "Three?",
    ]
