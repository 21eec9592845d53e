"""Feature hashing: same bytes everywhere, one text's vector whatever else is embedded."""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hades.providers.hashing import HashingEmbedder
from tests.patience import HANG_SECONDS

TEXTS = [
    "Graph retrieval with short, cited paths",
    "the the the of",
    "snake_case and CamelCase identifiers",
    "東京は日本の首都です",
    "Größe ÉCLAIR naïve",
    "!!! ???",
    "a" * 300,
    "\ud800 lone",
]
# A change here is a change of every stored vector: raise hashing.VERSION with it.
GOLDEN = "726d4478855032361f13d429323d445217e9812517f40fbfc5e18e53f3a1d972"


def test_bytes_are_those_of_every_other_machine() -> None:
    assert (
        hashlib.sha256(HashingEmbedder().embed(TEXTS).astype("<f4").tobytes()).hexdigest() == GOLDEN
    )


def test_bytes_do_not_depend_on_the_hash_seed() -> None:
    code = (
        "import sys; from hades.providers.hashing import HashingEmbedder; "
        "sys.stdout.write(HashingEmbedder(32).embed(['alpha beta', 'gamma']).tobytes().hex())"
    )
    done = subprocess.run(
        [sys.executable, "-c", code],
        env={**os.environ, "PYTHONHASHSEED": "1"},
        capture_output=True,
        text=True,
        check=True,
        timeout=HANG_SECONDS,
    )
    assert done.stdout == HashingEmbedder(32).embed(["alpha beta", "gamma"]).tobytes().hex()


@settings(deadline=None)
@given(st.lists(st.text(min_size=1).filter(lambda text: text.strip()), max_size=8))
def test_every_text_has_a_unit_vector_of_its_own(texts: list[str]) -> None:
    embedder = HashingEmbedder(64)
    vectors = embedder.embed(texts)
    assert vectors.shape == (len(texts), 64)
    assert np.allclose(np.linalg.norm(vectors, axis=1), 1, atol=1e-6)
    for text, vector in zip(texts, vectors, strict=True):
        assert HashingEmbedder(64).embed([text])[0].tobytes() == vector.tobytes()


def test_shared_words_and_word_parts_bring_texts_closer() -> None:
    query, same, inflected, other = HashingEmbedder().embed(
        [
            "embedding retrieval",
            "retrieval of an embedding",
            "embeddings retrieve",
            "ant colony optimisation",
        ]
    )
    assert query @ same > query @ inflected > query @ other + 0.2


def test_case_does_not_matter_and_function_words_weigh_little() -> None:
    plain, shouted, wordy = HashingEmbedder().embed(
        ["graph path", "GRAPH Path", "the graph and the path"]
    )
    assert plain.tobytes() == shouted.tobytes()
    assert plain @ wordy > 0.95


def test_a_blank_text_is_refused_by_row() -> None:
    with pytest.raises(ValueError, match="row 0 of 2 is blank"):
        HashingEmbedder().embed([" ", "a"])
