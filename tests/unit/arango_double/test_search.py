"""Views, analyzers and SEARCH: what matches, in what order, and what is refused."""

import time
from typing import Any

import pytest

from tests.arango_double.analyzers import make_analyzer
from tests.arango_double.errors import ServerError
from tests.arango_double.stemmer import stem
from tests.arango_double.views import make_view
from tests.unit.arango_double.engine import Engine

DOCS = [
    {"_key": "a", "name": "Graph databases", "text": "Databases store graphs", "n": 1},
    {"_key": "b", "name": "Walking", "text": "The graph of a walker walking through graphs and graphs", "n": 2},
    {"_key": "c", "name": "Café", "text": "No relation at all", "n": 3, "tags": ["red", "blue"]},
]
TRIGRAM = {"min": 3, "max": 3, "preserveOriginal": False, "streamType": "utf8"}


@pytest.fixture
def library(engine: Engine) -> Engine:
    engine.collection("docs", *DOCS)
    analyzer = make_analyzer("trigram", "ngram", TRIGRAM, ["frequency", "norm", "position"])
    engine.database.analyzers["trigram"] = analyzer
    fields = {
        "text": {"analyzers": ["text_en"]},
        "name": {"analyzers": ["text_en", "trigram", "identity"]},
        "n": {},
        "tags": {},
    }
    make_view(engine.database, {"name": "v", "type": "arangosearch", "links": {"docs": {"fields": fields}}}, 0.0)
    return engine


def found(engine: Engine, condition: str, **binds: Any) -> list[str]:
    return engine.run(f"FOR d IN v SEARCH {condition} SORT d._key RETURN d._key", binds)


@pytest.mark.parametrize(
    ("condition", "keys"),
    [
        ("ANALYZER(d.text == 'graph', 'text_en')", ["a", "b"]),
        ("ANALYZER(d.text == 'graphs', 'text_en')", []),
        ("d.text == 'graph'", []),
        ("d.name == 'Walking'", ["b"]),
        ("ANALYZER(TOKENS('Stored graph', 'text_en') ALL IN d.text, 'text_en')", ["a"]),
        ("ANALYZER(TOKENS('stored walks', 'text_en') ANY IN d.text, 'text_en')", ["a", "b"]),
        ("ANALYZER(d.text IN TOKENS('relations', 'text_en'), 'text_en')", ["c"]),
        ("ANALYZER(TOKENS('walks relations', 'text_en') NONE IN d.text, 'text_en')", ["a"]),
        ("ANALYZER(PHRASE(d.text, 'store graph'), 'text_en')", ["a"]),
        ("PHRASE(d.text, 'walker', 1, 'graph', 'text_en')", []),
        ("PHRASE(d.text, 'walker', 2, 'graph', 'text_en')", ["b"]),
        ("PHRASE(d.text, 'graph store', 'text_en')", []),
        ("ANALYZER(STARTS_WITH(d.text, 'data'), 'text_en')", ["a"]),
        ("STARTS_WITH(d.name, 'Wal')", ["b"]),
        ("ANALYZER(d.name == 'cafe', 'text_en')", ["c"]),
        ("d.n == 2", ["b"]),
        ("d.n >= 2 AND d.n < 3", ["b"]),
        ("d.n IN 1..2", ["a", "b"]),
        ("d.n IN [1, 3]", ["a", "c"]),
        ("d.n != 2", ["a", "c"]),
        ("d.tags == 'red'", ["c"]),
        ("NOT ANALYZER(d.text == 'graph', 'text_en')", ["c"]),
        ("d.n == 1 OR d.name == 'Walking'", ["a", "b"]),
        ("NGRAM_MATCH(d.name, 'Graph databse', 0.6, 'trigram')", ["a"]),
        ("NGRAM_MATCH(d.name, 'Walkin', 'trigram')", ["b"]),
        ("ANALYZER(LEVENSHTEIN_MATCH(d.text, 'grapf', 1), 'text_en')", ["a", "b"]),
        ("ANALYZER(MIN_MATCH(d.text == 'graph', d.text == 'walk', d.text == 'relat', 2), 'text_en')", ["b"]),
        ("true", ["a", "b", "c"]),
        ("EXISTS(d.text)", []),
    ],
)
def test_conditions(library: Engine, condition: str, keys: list[str]) -> None:
    assert found(library, condition) == keys


def test_bm25_prefers_rare_terms_short_texts_and_boosts(library: Engine) -> None:
    query = """
        FOR d IN v SEARCH ANALYZER(TOKENS(@t, 'text_en') ANY IN d.text, 'text_en')
          SORT BM25(d) DESC, d._key RETURN d._key
    """
    assert library.run(query, {"t": "stored graphs"}) == ["a", "b"]
    assert library.run(query, {"t": "walking graphs"}) == ["b", "a"]
    boosted = """
        FOR d IN v SEARCH ANALYZER(BOOST(d.name == 'walk', @b) OR d.text == 'databas', 'text_en')
          SORT BM25(d) DESC RETURN d._key
    """
    assert library.run(boosted, {"b": 9}) == ["b", "a"]
    assert library.run(boosted, {"b": 0.1}) == ["a", "b"]
    assert library.run("FOR d IN v SEARCH d.n == 1 RETURN BM25(d)") == [0]
    scores = library.run("FOR d IN v SEARCH ANALYZER(d.text == 'graph', 'text_en') RETURN TFIDF(d) > 0")
    assert scores == [True, True]


def test_scores_survive_grouping_in_a_subquery(library: Engine) -> None:
    query = """
        FOR d IN v SEARCH ANALYZER(d.text == 'graph', 'text_en')
          RETURN FIRST(FOR x IN [1, 1] COLLECT y = x RETURN BM25(d) > 0)
    """
    assert library.run(query) == [True, True]


def test_attributes_may_be_bound(library: Engine) -> None:
    condition = "ANALYZER(TOKENS(@t, @a) ANY IN d.@field OR d[@other] == 'walk', @a)"
    assert found(library, condition, t="stored", a="text_en", field="text", other="name") == ["a", "b"]


def test_a_view_without_search_gives_everything(library: Engine) -> None:
    assert len(library.run("FOR d IN v RETURN d")) == 3


def test_views_see_commits_and_removals(library: Engine) -> None:
    library.run("INSERT {_key: 'z', text: 'graph'} INTO docs")
    library.run("REMOVE 'a' IN docs")
    library.run("UPDATE 'b' WITH {text: 'nothing'} IN docs")
    assert found(library, "ANALYZER(d.text == 'graph', 'text_en')") == ["z"]


def test_a_stale_view_catches_up_only_when_asked(library: Engine) -> None:
    library.database.views["v"].commit_seconds = 60.0
    assert found(library, "d.n == 9") == []
    library.run("INSERT {n: 9} INTO docs")
    assert found(library, "d.n == 9") == []
    assert len(library.run("FOR d IN v SEARCH d.n == 9 OPTIONS {waitForSync: true} RETURN d")) == 1


@pytest.mark.parametrize(
    ("query", "number"),
    [
        ("FOR d IN docs SEARCH d.n == 1 RETURN d", 1501),
        ("FOR d IN v SEARCH ANALYZER(d.text == 'x', 'nope') RETURN d", 10),
        ("FOR d IN v SEARCH d.n + 1 == 2 RETURN d", 10),
        ("FOR d IN docs RETURN BM25(d)", 9),
        ("RETURN PHRASE('a', 'b')", 9),
        ("FOR d IN docs FILTER BOOST(d.n == 1, 2) RETURN d", 9),
        ("FOR d IN v SEARCH d.n == 1 OPTIONS {collections: ['other']} RETURN d", 10),
        ("INSERT {} INTO v", 1203),
        ("RETURN v", 1568),
    ],
)
def test_misuse_is_an_error(library: Engine, query: str, number: int) -> None:
    assert library.error(query) == number


@pytest.mark.parametrize(
    ("body", "number"),
    [
        ({"name": "w", "type": "arangosearch", "links": {"missing": {}}}, 1203),
        ({"name": "w", "type": "arangosearch", "links": {"docs": {"fields": {"x": {"analyzers": ["nope"]}}}}}, 10),
        ({"name": "w", "type": "arangosearch", "linkz": {}}, 10),
        ({"name": "w", "type": "other"}, 10),
        ({"name": "docs", "type": "arangosearch"}, 1207),
        ({"name": "w", "type": "search-alias", "indexes": [{"collection": "docs", "index": "none"}]}, 1212),
    ],
)
def test_bad_views_are_refused(library: Engine, body: dict[str, Any], number: int) -> None:
    with pytest.raises(ServerError) as caught:
        make_view(library.database, body, 0.0)
    assert caught.value.number == number


def test_a_search_alias_view_searches_inverted_indexes(library: Engine) -> None:
    definition = {"type": "inverted", "name": "inv", "fields": [{"name": "text", "analyzer": "text_en"}]}
    library.database.add_index("docs", definition)
    alias = {"name": "w", "type": "search-alias", "indexes": [{"collection": "docs", "index": "inv"}]}
    make_view(library.database, alias, 0.0)
    query = "FOR d IN w SEARCH ANALYZER(d.text == 'relat', 'text_en') RETURN d._key"
    assert library.run(query) == ["c"]


def test_text_en_lowers_strips_accents_and_stems(library: Engine) -> None:
    assert library.one("TOKENS('The Cafés of foo_bar, 3.14 aren’t RUNNING!', 'text_en')") == [
        "the", "cafe", "of", "foo_bar", "3.14", "aren't", "run",
    ]  # fmt: skip
    assert library.one("TOKENS('abcd', 'trigram')") == ["abc", "bcd"]


@pytest.mark.parametrize(
    ("word", "expected"),
    [("hopping", "hop"), ("hoping", "hope"), ("relational", "relat"), ("generously", "generous"), ("skies", "sky")],
)
def test_the_stemmer_is_porters_second(word: str, expected: str) -> None:
    assert stem(word) == expected


@pytest.mark.parametrize(
    ("kind", "properties", "features"),
    [("magic", {}, []), ("ngram", {"min": 3}, []), ("identity", {"x": 1}, []), ("identity", {}, ["position"])],
)
def test_bad_analyzers_are_refused(kind: str, properties: dict[str, Any], features: list[str]) -> None:
    with pytest.raises(ServerError) as caught:
        make_analyzer("bad", kind, properties, features)
    assert caught.value.number == 10


def test_searching_many_documents_is_quick(engine: Engine) -> None:
    engine.collection("docs", *({"text": f"word{i % 50} common text number {i}"} for i in range(2000)))
    link = {"fields": {"text": {"analyzers": ["text_en"]}}}
    make_view(engine.database, {"name": "v", "type": "arangosearch", "links": {"docs": link}}, 0.0)
    started = time.process_time()
    for _ in range(3):
        assert len(found(engine, "ANALYZER(d.text == 'word7', 'text_en')")) == 40
    assert time.process_time() - started < 10  # a search that reads every document for each takes minutes
