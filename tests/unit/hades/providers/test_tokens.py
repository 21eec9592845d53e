"""Token counts that budgets can lean on."""

from __future__ import annotations

import pickle

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hades.ports.services import ProviderError
from hades.providers import tokens
from hades.providers.tokens import MiniLmTokenizer
from hades.retrieval.answer.path_text import ByteCeiling, TokenCounter

MINILM = MiniLmTokenizer()
BYTES = ByteCeiling()
CUT = st.text("ab 1.,-…–é", max_size=60)  # as texts look that were shortened
BOTH = pytest.mark.parametrize("tokenizer", [MINILM, BYTES], ids=["minilm", "bytes"])


def test_minilm_counts_word_pieces_without_markers() -> None:
    text = "Embeddings of graphs."
    pieces = [text[start:end] for start, end in MINILM.spans(text)]
    assert pieces == ["Em", "bed", "ding", "s", "of", "graphs", "."]
    assert MINILM.count(text) == len(pieces)


def test_minilm_has_no_length_limit_and_no_padding() -> None:
    assert MINILM.count("graph " * 1000) == 1000
    assert MINILM.count("graph") == 1


def test_short_text_is_not_free() -> None:
    assert BYTES.count("a b") == 1
    assert BYTES.count("") == 0
    assert BYTES.count("abcd") == 2


def test_bytes_count_wide_characters_by_their_bytes() -> None:
    assert BYTES.count("東京") == 2
    assert BYTES.count("🙂") == 2
    assert BYTES.truncate("🙂a", 1) == ""


def test_truncation_ends_with_a_token() -> None:
    assert MINILM.truncate("graph paths are short", 2) == "graph paths"
    assert MINILM.truncate("graph", 5) == "graph"
    assert BYTES.truncate("abcdefgh", 2) == "abcdef"


@BOTH
@settings(deadline=None)
@given(text=st.text(max_size=200), limit=st.integers(0, 40))
def test_a_truncated_text_is_a_prefix_within_the_limit(
    tokenizer: TokenCounter, text: str, limit: int
) -> None:
    cut = tokenizer.truncate(text, limit)
    assert text.startswith(cut)
    assert tokenizer.count(cut) <= limit
    if tokenizer.count(text) <= limit:
        assert cut == text


@settings(deadline=None)
@given(text=st.text(max_size=200))
def test_spans_lie_in_the_text_in_order_and_are_the_count(text: str) -> None:
    spans = MINILM.spans(text)
    assert len(spans) == MINILM.count(text)
    assert all(0 <= start < end <= len(text) for start, end in spans)
    assert spans == sorted(spans)


def test_lone_surrogates_keep_their_places() -> None:
    assert MINILM.spans("a \ud800 graph")[-1] == (4, 9)
    assert BYTES.count("\ud800") == 1


def test_a_character_of_several_pieces_is_not_cut() -> None:
    assert [MINILM.truncate("그 a", limit) for limit in (1, 2, 3)] == ["", "그", "그 a"]


def test_another_tokenizer_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tokens, "TOKENIZER_SHA256", "0" * 64)
    monkeypatch.setattr(tokens, "word_pieces", tokens.word_pieces.__wrapped__)
    with pytest.raises(ProviderError, match=r"tokenizer.json .* expected 0000"):
        MiniLmTokenizer().load()


@given(
    texts=st.lists(
        st.text(max_size=60) | st.text(st.characters(codec="ascii"), max_size=60) | CUT, max_size=5
    )
)
def test_counting_many_is_counting_each(texts: list[str]) -> None:
    assert MINILM.count_many(texts) == [MINILM.count(text) for text in texts]


def test_another_process_gets_a_tokenizer_without_its_vocabulary() -> None:
    sent = pickle.dumps(MINILM)
    assert len(sent) < 200
    assert pickle.loads(sent).count("graphs") == 1


@given(text=st.text(max_size=60) | st.text(st.characters(codec="ascii"), max_size=60))
def test_words_end_where_tokens_do_and_hold_them_all(text: str) -> None:
    ends, tokens = MINILM.word_ends(text)
    assert ends == sorted(ends)
    assert tokens == sorted(tokens)
    assert (tokens[-1] if tokens else 0) == MINILM.count(text)
    assert set(ends) <= {end for _, end in MINILM.spans(text)}
