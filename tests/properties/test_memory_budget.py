"""Packing holds its promises for any texts, shares and budgets."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from hades.memory.recall.context import Packer
from hades.providers.tokens import MiniLmTokenizer
from tests.patience import examples

TOKENIZER = MiniLmTokenizer()
TEXTS = st.lists(
    st.tuples(st.text("abc", min_size=1, max_size=4), st.text(max_size=80)), max_size=8
)
SECTIONS = st.lists(
    st.tuples(
        st.sampled_from(["latest", "related", "details"]),
        TEXTS,
        st.integers(-50, 400),
        st.booleans(),
    ),
    max_size=6,
)


@given(st.integers(0, 300), SECTIONS)
@settings(max_examples=examples(50), deadline=None)
def test_no_filling_exceeds_the_room_or_its_share(room, sections):
    packer = Packer(TOKENIZER, room)
    for name, texts, share, must in sections:
        before = packer.left
        spent = packer.fill(name, texts, share, must=must)
        assert 0 <= spent <= max(0, min(share, before))
        assert packer.left == before - spent >= 0
    text, tokens = packer.checked()
    assert tokens == TOKENIZER.count(text) <= room


@given(TEXTS, st.integers(0, 200))
@settings(max_examples=examples(20), deadline=None)
def test_more_room_never_takes_fewer_tokens_of_one_text(texts, room):
    for pair in texts[:1]:
        spent = [
            Packer(TOKENIZER, size).fill("latest", [pair], size, must=True)
            for size in (room, room + 50)
        ]
        assert spent[0] <= spent[1]
