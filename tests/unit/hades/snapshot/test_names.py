"""Names in a question: word for word, longest span, aliases and accents included."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hades.snapshot.facts import outermost
from hades.snapshot.open import open_snapshot
from hades.snapshot.publish import publish
from hades.snapshot.view import GraphView
from tests.contract.examples import entity, put
from tests.homes import empty_store


@pytest.fixture(scope="module")
def view(tmp_path_factory: pytest.TempPathFactory) -> GraphView:
    home = tmp_path_factory.mktemp("home")
    store = empty_store(home / "graph.db")
    put(
        store,
        "entities",
        entity("python", name="Python"),
        entity("machine_learning", name="machine learning", aliases=["ML", "statistical learning"]),
        entity("learning", name="learning"),
        entity("jaguar_car", name="Jaguar"),
        entity("jaguar_cat", name="jaguar"),
        entity("cafe", name="Café de Flore", canonical_name="Le Flore"),
        entity("cpp", name="C++ Builder"),
        entity("signs", name="***"),
    )
    publish(store, home)
    store.close()
    return open_snapshot(home)


def test_several_texts_at_once_give_what_each_gives_alone(view: GraphView) -> None:
    texts = ["a JAGUAR", "", "learning machine", "a JAGUAR", "c++ builder and python", "nobody"]
    for text, found in zip(texts, view.match_each(texts), strict=True):
        alone = view.match_names(text)
        assert found.numbers.tolist() == alone.numbers.tolist()
        assert found.starts.tolist() == alone.starts.tolist()
        assert found.ends.tolist() == alone.ends.tolist()


def test_a_whole_text_is_a_name_or_not(view: GraphView) -> None:
    texts = ["Jaguar", "the jaguar", "C++ Builder!", "le  Flore", "***", "", "ML", "word " * 40]
    found = [view.ids(numbers) for numbers in view.match_whole(texts)]
    names = [["jaguar_car", "jaguar_cat"], [], ["cpp"], ["cafe"], [], [], ["machine_learning"], []]
    assert found == [[f"entities/{key}" for key in own] for own in names]


SPANS = st.lists(
    st.tuples(st.integers(0, 9), st.integers(1, 5), st.integers(0, 3)), max_size=12, unique=True
)


@given(SPANS)
def test_a_match_stays_that_lies_inside_no_longer_one(spans: list[tuple[int, int, int]]) -> None:
    matches = [(start, start + length, number) for start, length, number in spans]
    expected = sorted(
        (start, number, end)
        for start, end, number in matches
        if not any(a <= start and end <= b and (a, b) != (start, end) for a, b, _ in matches)
    )
    found = outermost(matches)
    assert (
        list(zip(found.starts.tolist(), found.numbers.tolist(), found.ends.tolist(), strict=True))
        == expected
    )
