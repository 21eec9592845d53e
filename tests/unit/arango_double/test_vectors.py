"""Vector indexes: when they exist, what they accept, and the only query shape they answer."""

from typing import Any

import pytest

from tests.arango_double.errors import ServerError
from tests.unit.arango_double.engine import Engine

INDEX = {"type": "vector", "fields": ["e"], "params": {"metric": "cosine", "dimension": 2, "nLists": 1}}
SEARCH = "FOR d IN c SORT APPROX_NEAR_COSINE(d.e, @q) DESC LIMIT 2 RETURN d._key"


def filled(version: str = "3.12.8", vector_index: bool = True) -> Engine:
    engine = Engine(version, vector_index)
    vectors = {"x": [1, 0], "y": [0, 1], "z": [0.9, 0.1]}
    engine.collection("c", *({"_key": key, "e": vector, "t": key} for key, vector in vectors.items()))
    return engine


def index_error(engine: Engine, **changes: Any) -> int:
    try:
        engine.database.add_index("c", {**INDEX, **changes})
    except ServerError as error:
        return error.number
    return 0


def test_without_the_server_flag_the_functions_do_not_exist() -> None:
    engine = filled(vector_index=False)
    assert engine.error(SEARCH, {"q": [1, 0]}) == 1540
    assert index_error(engine) == 10
    assert filled("3.12.3").error(SEARCH, {"q": [1, 0]}) == 1540
    assert filled("4.0.0", vector_index=False).error(SEARCH, {"q": [1, 0]}) == 1554


def test_neighbours_come_nearest_first() -> None:
    engine = filled()
    engine.database.add_index("c", INDEX)
    assert engine.run(SEARCH, {"q": [1, 0]}) == ["x", "z"]
    query = "FOR d IN c LET s = APPROX_NEAR_COSINE(@q, d.e, {nProbe: 20}) SORT s DESC LIMIT 1 RETURN [d._key, s]"
    assert engine.run(query, {"q": [0, 2]}) == [["y", 1]]


@pytest.mark.parametrize(
    "query",
    [
        "FOR d IN c RETURN APPROX_NEAR_COSINE(d.e, @q)",
        "FOR d IN c SORT APPROX_NEAR_COSINE(d.e, @q) DESC RETURN d",
        "FOR d IN c SORT APPROX_NEAR_COSINE(d.e, @q) LIMIT 2 RETURN d",
        "FOR d IN c SORT APPROX_NEAR_COSINE(d.e, @q) DESC, d._key LIMIT 2 RETURN d",
        "FOR d IN c FILTER APPROX_NEAR_COSINE(d.e, @q) > 0.5 LIMIT 2 RETURN d",
        "FOR d IN c FILTER d.t != 'x' FILTER d.t != 'y' SORT APPROX_NEAR_COSINE(d.e, @q) DESC LIMIT 2 RETURN d",
        "FOR d IN c SORT APPROX_NEAR_L2(d.e, @q) LIMIT 2 RETURN d",
        "FOR d IN c SORT APPROX_NEAR_COSINE(d.other, @q) DESC LIMIT 2 RETURN d",
    ],
)
def test_any_other_shape_or_index_is_1554(query: str) -> None:
    engine = filled()
    engine.database.add_index("c", INDEX)
    assert engine.error(query, {"q": [1, 0]}) == 1554


def test_one_filter_before_the_search_needs_3_12_6() -> None:
    query = "FOR d IN c FILTER d.t != 'x' SORT APPROX_NEAR_COSINE(d.e, @q) DESC LIMIT 1 RETURN d._key"
    engine = filled("3.12.6")
    engine.database.add_index("c", INDEX)
    assert engine.run(query, {"q": [1, 0]}) == ["z"]
    older = filled("3.12.5")
    older.database.add_index("c", INDEX)
    assert older.error(query, {"q": [1, 0]}) == 1554


def test_a_query_vector_of_the_wrong_size_is_an_error() -> None:
    engine = filled()
    engine.database.add_index("c", INDEX)
    assert engine.error(SEARCH, {"q": [1]}) == 10


def test_definitions_follow_the_version() -> None:
    def params(**changes: Any) -> dict[str, Any]:
        return {**INDEX["params"], **changes}  # type: ignore[dict-item]

    assert index_error(filled(), params=params(metric="dot")) == 10
    assert index_error(filled("3.12.5"), params=params(metric="innerProduct")) == 10
    assert index_error(filled("3.12.6"), params=params(metric="innerProduct")) == 0
    assert index_error(filled(), params=params(nLists=4)) == 10
    assert index_error(filled("3.12.9"), params={"metric": "cosine", "dimension": 2}) == 10
    assert index_error(filled("3.12.10"), params={"metric": "cosine", "dimension": 2}) == 0
    assert index_error(filled("3.12.5"), sparse=True) == 10
    assert index_error(filled(), params=params(dimension=3)) == 10


def test_documents_must_exist_before_the_index_until_3_12_9() -> None:
    for version, number in (("3.12.8", 10), ("3.12.9", 0)):
        engine = Engine(version, vector_index=True)
        engine.collection("c")
        assert index_error(engine) == number


def test_a_dense_index_refuses_documents_without_the_vector() -> None:
    engine = filled()
    engine.database.add_index("c", INDEX)
    assert engine.error("INSERT {t: 'none'} INTO c") == 10
    assert engine.error("INSERT {e: [1, 2, 3]} INTO c") == 10
    sparse = filled()
    sparse.database.add_index("c", {**INDEX, "sparse": True})
    assert sparse.error("INSERT {t: 'none'} INTO c") == 0
