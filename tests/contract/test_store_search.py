"""Full text and vectors: what matches, in which order, and what is refused."""

from __future__ import annotations

import pytest

from hades.errors import BadQuery
from hades.ports.store import GraphStore, Term
from tests.contract.examples import MODEL, entity, keys, put, table


def texts(store: GraphStore) -> None:
    put(
        store,
        "entities",
        entity("cats", name="Cats chase mice; a cat is a cat"),
        entity("dogs", name="Dogs chase cats"),
        entity("fish", name="Fish swim in the sea"),
        entity("cafe", name="Café"),
    )


def test_words_match_by_stem_and_the_best_comes_first(store: GraphStore) -> None:
    texts(store)
    assert keys(store.search("entities", "cat", limit=5)) == ["cats", "dogs"]


def test_any_word_is_enough(store: GraphStore) -> None:
    texts(store)
    assert set(keys(store.search("entities", "chasing fishes", limit=5))) == {"cats", "dogs", "fish"}


def test_case_and_accents_do_not_matter(store: GraphStore) -> None:
    texts(store)
    assert keys(store.search("entities", "CAFE", limit=5)) == ["cafe"]
    assert keys(store.search("entities", "café", limit=5)) == ["cafe"]


def test_scores_fall_and_limit_holds(store: GraphStore) -> None:
    texts(store)
    found = store.search("entities", "cat chase dog fish", limit=2)
    assert found.num_rows == 2
    scores = found.column("score").to_pylist()
    assert scores == sorted(scores, reverse=True)


def test_a_predicate_narrows_a_search(store: GraphStore) -> None:
    texts(store)
    assert keys(store.search("entities", "cat", limit=1, where=[Term("name_lower", "==", "dogs chase cats")])) == [
        "dogs"
    ]


@pytest.mark.parametrize(
    "text", ['"', "AND OR NOT", "cat*", "name:cat", "(cat", "cat) OR (1", "^cat", "-cat", "NEAR(cat)"]
)
def test_no_character_of_the_text_has_a_meaning(store: GraphStore, text: str) -> None:
    texts(store)
    assert set(keys(store.search("entities", text, limit=5))) <= {"cats", "dogs"}


def test_nothing_to_search_for_is_an_error(store: GraphStore) -> None:
    with pytest.raises(BadQuery):
        store.search("entities", "  ", limit=5)
    with pytest.raises(BadQuery):
        store.search("documents", "cat", limit=5)
    with pytest.raises(BadQuery):
        store.search("entities", "cat", limit=0)


def test_text_follows_updates_and_deletes(store: GraphStore) -> None:
    texts(store)
    store.patch("entities", table("entities", [{"_key": "cats", "name": "Felines"}]))
    store.delete("entities", keys=["dogs"])
    assert keys(store.search("entities", "cat", limit=5)) == []
    assert keys(store.search("entities", "feline", limit=5)) == ["cats"]


def vectors(store: GraphStore) -> None:
    put(
        store,
        "entities",
        entity("east", embedding=[2.0, 0.0, 0.0], embedding_model=MODEL, cluster_id="c"),
        entity("northeast", embedding=[1.0, 1.0, 0.0], embedding_model=MODEL),
        entity("north", embedding=[0.0, 1.0, 0.0], embedding_model=MODEL, cluster_id="c"),
        entity("west", embedding=[-1.0, 0.0, 0.0], embedding_model=MODEL),
        entity("other", embedding=[1.0, 0.0, 0.0], embedding_model="other@1/3"),
        entity("none"),
    )


def test_nearest_is_by_cosine_and_by_key_among_equals(store: GraphStore) -> None:
    vectors(store)
    found = store.nearest("entities", [1.0, 0.0, 0.0], model=MODEL, limit=3)
    assert keys(found) == ["east", "northeast", "north"]
    assert found.column("score").to_pylist() == pytest.approx([1.0, 0.70710678, 0.0], abs=1e-6)


def test_vectors_of_another_model_are_never_compared(store: GraphStore) -> None:
    vectors(store)
    assert keys(store.nearest("entities", [1.0, 0.0, 0.0], model="other@1/3", limit=9)) == ["other"]


def test_a_predicate_narrows_the_nearest(store: GraphStore) -> None:
    vectors(store)
    found = store.nearest("entities", [1.0, 0.1, 0.0], model=MODEL, limit=9, where=[Term("cluster_id", "==", "c")])
    assert keys(found) == ["east", "north"]


@pytest.mark.parametrize("vector", [[1.0, 0.0], [float("nan"), 0.0, 0.0], [0.0, 0.0, 0.0], []])
def test_a_vector_that_cannot_be_compared_is_an_error(store: GraphStore, vector: list[float]) -> None:
    vectors(store)
    with pytest.raises(BadQuery):
        store.nearest("entities", vector, model=MODEL, limit=3)


def test_a_collection_without_vectors_says_so(store: GraphStore) -> None:
    with pytest.raises(BadQuery, match="no vectors"):
        store.nearest("documents", [1.0], model=MODEL, limit=3)


def test_centroids_are_searched_like_embeddings(store: GraphStore) -> None:
    cluster = {
        "level": 1,
        "embedding_model": MODEL,
        "cluster_params": {"algo": "hdbscan", "min_cluster_size": 5, "min_samples": 3, "seed": 1},
    }
    put(
        store,
        "clusters",
        {"_key": "one", "centroid": [1.0, 0.0, 0.0], **cluster},
        {"_key": "two", "centroid": [0.0, 1.0, 0.0], **cluster},
    )
    assert keys(store.nearest("clusters", [0.1, 1.0, 0.0], model=MODEL, limit=1)) == ["two"]


@pytest.mark.parametrize("word", ["evening", "universities", "organization", "biologist", "adding", "interval"])
def test_a_word_that_versions_of_snowball_stem_differently_is_found(store: GraphStore, word: str) -> None:
    put(store, "entities", entity("a", name=f"The {word} of the city"), entity("b", name="Something else"))
    assert keys(store.search("entities", word, limit=3)) == ["a"]
