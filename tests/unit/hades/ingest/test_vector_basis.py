"""What the vector of an entity is made of: the chunks of the documents that it titles, in any order."""

from __future__ import annotations

import pyarrow as pa

from hades.ingest.entities.vectors import _find_basis

KEYS = pa.array(["lothair", "moselle", "rhine"], pa.string())
TITLES = pa.table(
    {
        "document": ["documents/a", "documents/b", "documents/c"],
        "entity": ["entities/lothair", "entities/lothair", "entities/rhine"],
    }
)
CHUNKS = [
    {"_key": "a1", "document": "documents/a", "sha256": "11", "embedding_model": "m"},
    {"_key": "b1", "document": "documents/b", "sha256": "22", "embedding_model": "m"},
    {"_key": "c1", "document": "documents/c", "sha256": "33", "embedding_model": "other"},
    {"_key": "z1", "document": "documents/z", "sha256": "44", "embedding_model": "m"},
]


def basis(chunks: list[dict[str, str]]) -> list[str]:
    names = ("_key", "document", "sha256", "embedding_model")
    table = pa.table({name: pa.array([one[name] for one in chunks], pa.string()) for name in names})
    found: list[str] = _find_basis(KEYS, TITLES, table, "m").to_pylist()
    return found


def test_only_chunks_of_its_own_documents_with_a_vector_of_the_model_count() -> None:
    lothair, moselle, rhine = basis(CHUNKS)
    assert len(lothair) == 32
    assert moselle == rhine == ""
    assert basis(CHUNKS[::-1]) == [lothair, "", ""]
    assert basis(CHUNKS[:3]) == [lothair, "", ""]
    assert basis([]) == ["", "", ""]


def test_another_text_another_chunk_or_a_missing_one_is_another_basis() -> None:
    told = {
        basis(chunks)[0]
        for chunks in (
            CHUNKS,
            CHUNKS[1:],
            [{**CHUNKS[0], "sha256": "12"}, *CHUNKS[1:]],
            [{**CHUNKS[0], "_key": "a2"}, *CHUNKS[1:]],
            [{**CHUNKS[0], "sha256": "22"}, {**CHUNKS[1], "sha256": "11"}, *CHUNKS[2:]],
        )
    }
    assert len(told) == 5
