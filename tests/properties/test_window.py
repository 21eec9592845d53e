"""Budgets hold after any sequence of steps, whatever the texts."""

from __future__ import annotations

from dataclasses import dataclass

from hypothesis import given, settings
from hypothesis import strategies as st

from hades.ports.graph import EdgeFacts, Kind, NodeFacts
from hades.providers.tokens import MiniLmTokenizer
from hades.retrieval.answer.path_text import (
    CEILING,
    ByteCeiling,
    TokenCounter,
    path_text,
    shares,
    shorten,
)
from hades.retrieval.answer.prompt import (
    LEVELS,
    ContextWindowManager,
    format_paths_for_prompt,
    pack,
)
from hades.text.sentences import sentences
from tests.patience import examples

MINILM = MiniLmTokenizer()
COUNTERS: list[TokenCounter] = [MINILM, ByteCeiling(), CEILING]
counters = st.sampled_from(COUNTERS)
texts = st.text(st.characters(codec="utf-8"), max_size=80) | st.lists(
    st.sampled_from(["graph", "path", "-->", '"', "reliability", "naïve", "v3.5", "\n"]),
    max_size=60,
).map(" ".join)
units = st.floats(0, 1)
counting = settings(max_examples=examples(33), deadline=None)  # counting tokens is what takes time
steps = st.lists(st.tuples(texts, units, st.sampled_from([*LEVELS, "other"])), max_size=30)


@counting
@given(counters, st.integers(0, 120), steps)
def test_the_window_never_exceeds_its_budget_and_a_refusal_changes_nothing(counter, budget, steps):
    window = ContextWindowManager(budget, 0, counter)
    for text, reliability, priority in steps:
        before = {level: list(items) for level, items in window.context.items()}
        level = priority if priority in LEVELS else "medium"
        higher = LEVELS[: LEVELS.index(level)]
        if not window.add_path({"text": text, "reliability": reliability}, priority):
            assert window.context == before
        assert all(window.context[name] == before[name] for name in higher)
        full = window.get_formatted_context()
        assert counter.count(full) <= window.current_token_count <= budget
        summary = window.summarize_context()
        assert len(summary) <= len(full)
        assert counter.count(summary) <= budget


@dataclass(frozen=True)
class Path:
    text: str
    reliability: float
    nodes: tuple[NodeFacts, ...]


@dataclass(frozen=True)
class Passage:
    id: str
    title: str
    text: str


@dataclass(frozen=True)
class Topic:
    level: int
    summary: str


@st.composite
def walks(draw):
    hops = draw(st.integers(0, 5))
    names = draw(st.lists(texts, min_size=hops + 1, max_size=hops + 1))
    nodes = tuple(
        NodeFacts(f"entities/n{place}", Kind.ENTITY, name, "concept")
        for place, name in enumerate(names)
    )
    edges = tuple(
        EdgeFacts(
            f"relations/r{place}", "", "", "refers_to", snippet=draw(texts), label=draw(texts)
        )
        for place in range(hops)
    )
    return nodes, edges, tuple(draw(st.booleans()) for _ in range(hops))


@counting
@given(counters, walks())
def test_a_path_in_words_keeps_its_tokens_and_its_arrows(counter, walk):
    nodes, edges, outbound = walk
    text = path_text(counter, nodes, edges, outbound)
    assert counter.count(text) <= 120
    assert "\n" not in text
    assert text.count("]-->") == sum(outbound)
    assert text.count("<--[") == len(outbound) - sum(outbound)


@counting
@given(
    counters,
    st.integers(0, 900),
    st.integers(0, 8),
    st.lists(st.tuples(walks(), units), max_size=8),
    st.lists(st.tuples(texts, texts), max_size=6),
    st.lists(st.tuples(st.integers(1, 2), texts), max_size=4),
)
def test_the_prompt_never_exceeds_its_budget(
    counter, budget, final_context, walks, passages, topics
):
    paths = [Path(path_text(counter, *walk), reliability, walk[0]) for walk, reliability in walks]
    found = [
        Passage(f"doc_chunks/c{place}", title, text) for place, (title, text) in enumerate(passages)
    ]
    packed = pack(
        counter,
        paths,
        found,
        [Topic(*topic) for topic in topics],
        prompt_tokens=budget,
        final_context=final_context,
    )
    assert counter.count(packed.prompt) == packed.tokens["prompt"] <= budget
    assert packed.tokens["hierarchy"] <= 300
    assert len(packed.paths) + len(packed.passages) <= final_context
    _, _, shown = packed.prompt.rpartition("Relational paths (PathRAG):\n")
    lines = shown.split("\n")[:-2] if packed.paths or packed.passages else []
    numbers = [int(line.partition(")")[0]) for line in lines]  # ranks: the best path stands last
    assert all(counter.count(line) <= 120 for line in lines)
    assert len(numbers) == len(set(numbers)) == len(packed.paths) + len(packed.passages)
    if packed.paths:
        assert paths[numbers[-1] - 1] == packed.paths[0]


@counting
@given(counters, st.integers(40, 300), st.lists(st.tuples(texts, units), max_size=12))
def test_formatted_paths_keep_the_windows_budget(counter, budget, paths):
    given_paths = [{"path": text, "reliability": reliability} for text, reliability in paths]
    prompt = format_paths_for_prompt(
        given_paths, "why?", max_tokens=budget, reserve_tokens=0, tokenizer=counter
    )
    assert counter.count(prompt) <= budget


@given(st.lists(st.integers(0, 50), max_size=8), st.integers(0, 200))
def test_shares_are_level_and_use_the_room(wanted, room):
    given_out = shares(wanted, room)
    assert sum(given_out) <= room
    assert all(given <= want for given, want in zip(given_out, wanted, strict=True))
    short = [given for given, want in zip(given_out, wanted, strict=True) if given < want]
    assert not short or room - sum(given_out) < len(wanted)


@counting
@given(counters, texts, st.integers(0, 30))
def test_a_shortened_text_fits(counter, text, tokens):
    assert counter.count(shorten(counter, text, tokens)) <= tokens


@given(texts)
def test_sentences_lose_no_word(text):
    joined = "".join(text[start:end] for start, end in sentences(text))
    assert "".join(joined.split()) == "".join(text.split())
