"""Both views answer the same: the published snapshot and the live one over AQL."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path

import numpy as np
import pytest

from hades.errors import BadQuery
from hades.ports.graph import (
    KINDS,
    DocumentFilter,
    Expansion,
    Kind,
    NodeFacts,
    Numbers,
    Passage,
    SourceFacts,
)
from hades.ports.store import Direction
from hades.snapshot.publish import publish
from hades.snapshot.view import GraphView
from schemas.ids import Mask, sha256_text
from tests.arango_double.server import ArangoDouble
from tests.contract.examples import MODEL, day
from tests.contract.view_fixtures import CODE, RIVERS, arango_store, fill, view
from tests.homes import empty_store

__all__ = ["view"]  # the fixture

HUB = "entities/hub"


def numbers(view: GraphView, *ids: str) -> Numbers:
    found = view.number(ids)
    assert (found >= 0).all()
    return found


def edge_keys(view: GraphView, found: Expansion) -> list[str]:
    return [facts.id.partition("/")[2] for facts in view.edges(found.edge)]


def expand(
    view: GraphView, *ids: str, direction: Direction = Direction.OUT, **options: object
) -> Expansion:
    return view.expand(numbers(view, *ids), direction=direction, **options)  # type: ignore[arg-type]


def test_ids_and_numbers_are_each_others_inverse(view: GraphView) -> None:
    ids = ["clusters/water", HUB, "doc_chunks/c1", "files/f1", "funcs/g1", HUB]
    assert view.ids(numbers(view, *ids)) == ids


def test_kinds_are_places_in_the_list_of_kinds(view: GraphView) -> None:
    asked = numbers(view, "files/f1", HUB, "doc_chunks/c1", "clusters/water", "funcs/g1", HUB)
    assert [KINDS[code] for code in view.kinds(asked)] == [
        Kind.FILE,
        Kind.ENTITY,
        Kind.CHUNK,
        Kind.CLUSTER,
        Kind.FUNC,
        Kind.ENTITY,
    ]


def test_unknown_ids_have_the_number_minus_one(view: GraphView) -> None:
    assert view.number(["entities/nobody", HUB, "nonsense", "documents/rivers", ""]).tolist()[
        ::2
    ] == [-1, -1, -1]
    assert view.number(["documents/rivers"]).tolist() == [-1]


def test_a_number_the_view_never_gave_is_refused(view: GraphView) -> None:
    for wrong in (-1, 10**6):
        with pytest.raises(BadQuery, match=str(wrong)):
            view.ids(np.array([wrong]))
        with pytest.raises(BadQuery, match=str(wrong)):
            view.expand(np.array([wrong]), direction=Direction.OUT)


def test_info_counts_what_is_there(view: GraphView) -> None:
    assert view.info.nodes == {
        "entities": 9,
        "doc_chunks": 2,
        "clusters": 5,
        "funcs": 1,
        "files": 1,
    }
    assert view.info.edges["relations"] == 8
    assert sum(view.info.edges.values()) == 15
    assert set(view.info.models["entities"]) == {MODEL, "other@1/2"}
    assert view.info.models["funcs"] == ()
    assert view.info.degraded_from is None
    assert view.info.parts == {"hierarchy": "", "weights": "w7", "bridges": "", "ranker": ""}


def test_edges_come_heaviest_first_then_by_collection_and_key(view: GraphView) -> None:
    found = expand(view, HUB)
    # r2 and p1 have no weight, which counts 1.0; r3 weighs 0.
    assert edge_keys(view, found) == ["r2", "p1", "r4", "r1", "r5", "r3"]
    assert found.weight.tolist() == [1.0, 1.0, 0.75, 0.5, 0.5, 0.0]
    assert found.weight.dtype == np.float32
    assert [view.type_names[code] for code in found.type] == [
        "derives_from",
        "PART_OF",
        "coref",
        "refers_to",
        "similar_to",
        "refers_to",
    ]
    assert view.ids(found.target)[:3] == ["entities/north", "clusters/water", HUB]
    assert found.outbound.all()


def test_answers_stand_in_the_order_of_the_question(view: GraphView) -> None:
    found = expand(view, "files/f1", HUB, "entities/lonely", "files/f1", fanout=2)
    assert found.row.tolist() == [0, 1, 1, 3]
    assert edge_keys(view, found) == ["t1", "r2", "p1", "t1"]


def test_inbound_edges_are_seen_from_their_head(view: GraphView) -> None:
    found = expand(view, HUB, "entities/sea", direction=Direction.IN)
    assert found.row.tolist() == [0, 0, 1, 1]
    assert edge_keys(view, found) == ["r4", "m1", "r1", "r5"]
    assert view.ids(found.target) == [HUB, "doc_chunks/c1", HUB, HUB]
    assert not found.outbound.any()


def test_any_direction_joins_both_and_shows_a_loop_once(view: GraphView) -> None:
    found = expand(view, HUB, "funcs/g1", direction=Direction.ANY)
    assert edge_keys(view, found)[:7] == ["r2", "p1", "r4", "r1", "r5", "m1", "r3"]
    assert found.outbound[:7].tolist() == [True, True, True, True, True, False, True]
    assert edge_keys(view, found)[7:] == ["t1", "i1", "d1"]
    assert found.outbound[7:].tolist() == [False, True, False]


def test_any_direction_is_cut_to_the_fanout(view: GraphView) -> None:
    assert edge_keys(view, expand(view, HUB, direction=Direction.ANY, fanout=6))[-1] == "m1"


def test_types_are_chosen_by_name(view: GraphView) -> None:
    found = expand(view, HUB, types=["refers_to", "similar_to"], fanout=2)
    assert edge_keys(view, found) == ["r1", "r5"]
    assert len(expand(view, HUB, types=[])) == 0
    with pytest.raises(BadQuery, match="flows_to"):
        expand(view, HUB, types=["flows_to"])


@pytest.mark.parametrize(
    ("mask", "seen"),
    [
        (Mask(), True),
        (Mask(as_of=day(1)), False),
        (Mask(as_of=day(2)), True),
        (Mask(as_of=day(5) - timedelta(microseconds=1)), True),
        (Mask(as_of=day(5)), False),
        (Mask(known_at=day(2)), False),
        (Mask(known_at=day(3)), True),
        (Mask(known_at=day(9)), False),
        (Mask(as_of=day(4), known_at=day(4)), True),
        (Mask(as_of=day(4), known_at=day(9)), False),
    ],
)
def test_both_time_axes_are_masks_over_edges(view: GraphView, mask: Mask, seen: bool) -> None:
    out = edge_keys(view, expand(view, HUB, mask=mask))
    assert ("r1" in out) is seen
    assert [key for key in out if key != "r1"] == ["r2", "p1", "r4", "r5", "r3"]
    into = edge_keys(view, expand(view, "entities/sea", direction=Direction.IN, mask=mask))
    assert into == (["r1", "r5"] if seen else ["r5"])


def test_work_is_counted_and_can_be_bounded(view: GraphView) -> None:
    whole = expand(view, HUB, "files/f1")
    assert (whole.work, whole.capped) == (7, False)
    part = expand(view, HUB, "files/f1", max_work=4)
    assert (part.work, part.capped) == (4, True)
    assert edge_keys(view, part) == ["r2", "p1", "r4", "r1"]
    none = expand(view, HUB, max_work=0)
    assert (len(none), none.capped) == (0, True)


def test_nothing_asked_is_nothing_found(view: GraphView) -> None:
    nothing = np.empty(0, np.int64)
    assert len(view.expand(nothing, direction=Direction.ANY)) == 0
    assert view.degree(nothing, direction=Direction.ANY).tolist() == []
    assert (
        view.ids(nothing),
        view.nodes(nothing),
        view.edges(nothing),
        view.passages(nothing),
    ) == ([], [], [], [])


def test_degree_counts_ends(view: GraphView) -> None:
    asked = numbers(view, HUB, "entities/lonely", "funcs/g1")
    assert view.degree(asked, direction=Direction.OUT).tolist() == [6, 0, 1]
    assert view.degree(asked, direction=Direction.IN).tolist() == [2, 0, 3]
    assert view.degree(asked, direction=Direction.ANY).tolist() == [8, 0, 4]
    assert view.degree(asked, direction=Direction.ANY, types=["coref", "mentions"]).tolist() == [
        3,
        0,
        0,
    ]


def test_nodes_of_every_kind_have_facts(view: GraphView) -> None:
    found = view.nodes(
        numbers(
            view, HUB, "entities/north", "doc_chunks/c2", "clusters/water", "funcs/g1", "files/f1"
        )
    )
    assert found == [
        NodeFacts(HUB, Kind.ENTITY, "River Rhine", "concept", deg_out=5),
        NodeFacts("entities/north", Kind.ENTITY, "North", "concept", domain="geo", frequency=3),
        NodeFacts("doc_chunks/c2", Kind.CHUNK, "", "prose", document="corpus-17", span=(39, 63)),
        NodeFacts("clusters/water", Kind.CLUSTER, "Water", "L1", summary="rivers and seas"),
        NodeFacts(
            "funcs/g1",
            Kind.FUNC,
            "flow.flow",
            "function",
            "lets rivers run",
            document="src/flow.py",
            span=(0, 12),
        ),
        NodeFacts("files/f1", Kind.FILE, "src/flow.py", "file", document="src/flow.py"),
    ]


def test_nodes_belong_to_the_domains_of_their_texts(view: GraphView) -> None:
    asked = numbers(
        view, HUB, "entities/north", "doc_chunks/c2", "clusters/water", "funcs/g1", "files/f1"
    )
    assert view.selects(asked, DocumentFilter("Geo")).tolist() == [
        True,
        True,
        False,
        True,
        False,
        False,
    ]
    assert view.selects(asked, DocumentFilter("nature")).tolist() == [
        True,
        False,
        True,
        True,
        False,
        False,
    ]
    assert view.selects(asked, DocumentFilter("python")).tolist() == [
        False,
        False,
        False,
        True,
        True,
        True,
    ]
    assert view.selects(asked, DocumentFilter("music")).tolist() == [
        False,
        False,
        False,
        True,
        False,
        False,
    ]
    assert set(view.domains()) in ({"geo", "nature", "Python"}, set())


@pytest.mark.parametrize(
    ("only", "inside"),
    [
        (DocumentFilter(paths=("src/*",)), [False, False, False, True, True, True]),
        (DocumentFilter(paths=("corpus-1?",)), [True, False, True, True, False, False]),
        (DocumentFilter(paths=("corpus",)), [False, False, False, True, False, False]),
        (DocumentFilter(types=("python",)), [False, False, False, True, True, True]),
        (DocumentFilter(types=("md",)), [False, False, False, True, False, False]),
        (DocumentFilter(sources=("python", "nature")), [True, False, True, True, True, True]),
        (DocumentFilter(tags=("Water",)), [True, False, True, True, False, False]),
        (
            DocumentFilter(authors=("ada",), paths=("src/",)),
            [False, False, False, True, False, False],
        ),
        (
            DocumentFilter(since=datetime(2026, 1, 1, tzinfo=UTC)),
            [True, False, True, True, False, False],
        ),
        (
            DocumentFilter(until=datetime(2026, 1, 1, tzinfo=UTC)),
            [False, False, False, True, False, False],
        ),
        (DocumentFilter("geo", paths=("corpus-17",)), [True, False, False, True, False, False]),
        (DocumentFilter(without=("documents/rivers",)), [False, True, False, True, True, True]),
        (DocumentFilter(without=("documents/code",)), [True, True, True, True, False, False]),
    ],
)
def test_nodes_are_selected_by_what_their_documents_are(
    view: GraphView, only: DocumentFilter, inside: list[bool]
) -> None:
    asked = numbers(
        view, HUB, "entities/north", "doc_chunks/c2", "clusters/water", "funcs/g1", "files/f1"
    )
    assert view.selects(asked, only).tolist() == inside
    assert view.count_outside(only) in (None, 2 - inside[2] - inside[4])


def test_a_masked_passage_takes_what_only_it_names_with_it(view: GraphView) -> None:
    asked = numbers(view, HUB, "doc_chunks/c1", "doc_chunks/c2")
    assert view.selects(asked, DocumentFilter(without=("doc_chunks/c1",))).tolist() == [
        False,
        False,
        True,
    ]


def test_edges_have_facts_with_the_text_they_were_read_from(view: GraphView) -> None:
    found = expand(view, HUB, types=["refers_to"], fanout=1)
    (facts,) = view.edges(found.edge)
    assert (facts.id, facts.source, facts.target, facts.type) == (
        "relations/r1",
        HUB,
        "entities/sea",
        "refers_to",
    )
    assert (facts.weight, facts.label) == (0.5, "flows")
    assert (facts.document, facts.document_id) == ("corpus-17", "documents/rivers")
    assert facts.span == (14, 37)
    assert facts.snippet == RIVERS[14:37] == "river Rhine flows north"
    assert (facts.valid_from, facts.valid_until) == (day(2), day(5))
    assert (facts.recorded_at, facts.retracted_at) == (day(3), day(9))


def test_an_edge_without_weight_or_source_says_so(view: GraphView) -> None:
    (facts,) = view.edges(expand(view, "files/f1").edge)
    assert (facts.id, facts.weight, facts.document, facts.span, facts.snippet) == (
        "contains/t1",
        None,
        "",
        None,
        "",
    )
    assert (facts.document_id, facts.valid_from) == ("", None)


def test_passages_are_exact_spans_of_their_documents(view: GraphView) -> None:
    first, second, func, file = view.passages(
        numbers(view, "doc_chunks/c1", "doc_chunks/c2", "funcs/g1", "files/f1")
    )
    assert first == Passage(
        "doc_chunks/c1",
        RIVERS[0:38],
        "corpus-17",
        "documents/rivers",
        (0, 38),
        "Rivers",
        ("Europe", "Rhine"),
        "prose",
        7,
        day(3),
    )
    assert (second.text, second.title, second.headings) == (
        "The Rhine meets the sea.",
        "Rivers",
        (),
    )
    assert (first.path, first.symbol, first.lines) == ("", "", None)
    assert (second.path, second.symbol, second.lines) == ("src/delta.py", "Delta.open", (4, 9))
    assert (func.text, func.document, func.span, func.title) == (
        "def flow(x):",
        "src/flow.py",
        (0, 12),
        "flow.flow",
    )
    assert (file.text, file.span) == (CODE, (0, len(CODE)))
    for passage in (first, second, func, file):
        (whole,) = view.sources([passage.document_id])
        assert whole is not None
        assert whole.text[slice(*passage.span)] == passage.text


def test_what_has_no_text_has_no_passage(view: GraphView) -> None:
    with pytest.raises(BadQuery, match="entities/hub"):
        view.passages(numbers(view, HUB))
    assert view.sources(["documents/none", "entities/hub", "hub", ""]) == [None, None, None, None]


def test_documents_come_whole_and_with_the_hash_they_were_stored_under(view: GraphView) -> None:
    code = SourceFacts("documents/code", "src/flow.py", "", CODE, sha256_text(CODE))
    rivers = SourceFacts("documents/rivers", "corpus-17", "Rivers", RIVERS, sha256_text(RIVERS))
    assert view.sources(["documents/rivers", "documents/code", "documents/rivers"]) == [
        rivers,
        code,
        rivers,
    ]


def test_vectors_are_of_one_model_and_say_where_there_is_none(view: GraphView) -> None:
    asked = numbers(
        view, HUB, "entities/north", "doc_chunks/c2", "clusters/water", "files/f1", "entities/city"
    )
    values, there = view.vectors(asked, model=MODEL)
    assert there.tolist() == [True, False, True, True, False, False]
    assert values.tolist()[0] == [1.0, 0.0, 0.0]
    assert values[3].tolist() == [0.0, 0.0, 1.0]
    assert not values[~there].any()
    values, there = view.vectors(asked, model="nobody@1/3")
    assert not there.any()


def test_cosines_are_of_one_model_and_0_where_there_is_no_vector(view: GraphView) -> None:
    asked = numbers(view, HUB, "entities/north", "entities/sea", "clusters/water", "files/f1", HUB)
    found = view.cosines(np.array([3.0, 4.0, 0.0], np.float32), asked, model=MODEL)
    assert found.tolist() == pytest.approx([0.6, 0.0, 0.8, 0.0, 0.0, 0.6])
    assert not view.cosines(np.array([3.0, 4.0, 0.0], np.float32), asked, model="nobody@1/3").any()
    assert len(view.cosines(np.array([3.0, 4.0, 0.0], np.float32), asked[:0], model=MODEL)) == 0


def test_cosines_are_the_scores_of_the_nearest(view: GraphView) -> None:
    vector = np.array([0.2, 0.9, 0.4], np.float32)
    hits = view.nearest(vector, kind=Kind.ENTITY, model=MODEL, limit=9)
    assert view.cosines(vector, hits.numbers, model=MODEL).tolist() == hits.scores.tolist()


def test_nearest_is_by_cosine_within_one_model(view: GraphView) -> None:
    hits = view.nearest(
        np.array([3.0, 4.0, 0.0], np.float32), kind=Kind.ENTITY, model=MODEL, limit=5
    )
    assert view.ids(hits.numbers) == ["entities/sea", HUB, "entities/lonely"]
    assert hits.scores.tolist() == pytest.approx([0.8, 0.6, 0.0])
    assert (
        len(
            view.nearest(
                np.array([1.0, 0, 0], np.float32), kind=Kind.ENTITY, model="no@1/3", limit=5
            )
        )
        == 0
    )


def test_nearest_keeps_a_level_and_a_set(view: GraphView) -> None:
    asked = np.array([0.0, 0.0, 1.0], np.float32)
    both = view.nearest(asked, kind=Kind.CLUSTER, model=MODEL, limit=5)
    assert view.ids(both.numbers) == ["clusters/water", "clusters/nature"]
    assert view.ids(
        view.nearest(asked, kind=Kind.CLUSTER, model=MODEL, limit=5, level=2).numbers
    ) == ["clusters/nature"]
    within = numbers(view, HUB, "doc_chunks/c1", "entities/city", HUB)
    hits = view.nearest(
        np.array([1.0, 1, 0], np.float32), kind=Kind.ENTITY, model=MODEL, limit=9, within=within
    )
    assert view.ids(hits.numbers) == [HUB]
    nobody = np.empty(0, np.int64)
    assert len(view.nearest(asked, kind=Kind.ENTITY, model=MODEL, limit=9, within=nobody)) == 0


@pytest.mark.parametrize("vector", [[1.0, 0.0], [np.nan, 0.0, 0.0], [0.0, 0.0, 0.0], []])
def test_a_vector_that_cannot_be_compared_is_refused(view: GraphView, vector: list[float]) -> None:
    with pytest.raises(BadQuery):
        view.nearest(np.array(vector, np.float32), kind=Kind.ENTITY, model=MODEL, limit=3)
    with pytest.raises(BadQuery):
        view.cosines(np.array(vector, np.float32), numbers(view, HUB), model=MODEL)


def test_files_have_no_vectors_and_limits_are_positive(view: GraphView) -> None:
    one = np.array([1.0, 0.0, 0.0], np.float32)
    with pytest.raises(BadQuery):
        view.nearest(one, kind=Kind.FILE, model=MODEL, limit=3)
    with pytest.raises(BadQuery):
        view.nearest(one, kind=Kind.ENTITY, model=MODEL, limit=0)
    with pytest.raises(BadQuery):
        view.lexical("sea", kind=Kind.ENTITY, limit=0)


def test_words_find_nodes_by_stem_and_without_accents(view: GraphView) -> None:
    assert set(view.ids(view.lexical("RIVER!", kind=Kind.CHUNK, limit=5).numbers)) == {
        "doc_chunks/c1"
    }
    assert view.ids(view.lexical("meeting resume", kind=Kind.CHUNK, limit=1).numbers)[0].startswith(
        "doc_chunks/"
    )
    assert view.ids(view.lexical("seas salty", kind=Kind.ENTITY, limit=5).numbers) == [
        "entities/sea"
    ]
    assert view.ids(view.lexical("koln", kind=Kind.ENTITY, limit=5).numbers) == ["entities/city"]
    assert view.ids(view.lexical("running", kind=Kind.FUNC, limit=5).numbers) == ["funcs/g1"]
    assert view.ids(view.lexical("natural nature", kind=Kind.CLUSTER, limit=5).numbers) == [
        "clusters/nature"
    ]


def test_more_matching_words_rank_higher(view: GraphView) -> None:
    hits = view.lexical("rhine river north", kind=Kind.CHUNK, limit=5)
    assert view.ids(hits.numbers) == ["doc_chunks/c1", "doc_chunks/c2"]
    assert hits.scores[0] > hits.scores[1] > 0
    assert len(view.lexical("rhine", kind=Kind.CHUNK, limit=1)) == 1


@pytest.mark.parametrize("text", ["", "  ", "!?", "zebra"])
def test_words_that_are_nowhere_find_nothing(view: GraphView, text: str) -> None:
    assert len(view.lexical(text, kind=Kind.CHUNK, limit=5)) == 0
    assert len(view.lexical(text, kind=Kind.FILE, limit=5)) == 0
    assert len(view.match_names(text)) == 0


def test_names_are_found_in_a_question_longest_first(view: GraphView) -> None:
    text = "Does the river RHINE reach the North Sea, or only the north?"
    found = view.match_names(text)
    assert view.ids(found.numbers) == [HUB, "entities/sea", "entities/north"]
    spelled = [text[start:end] for start, end in zip(found.starts, found.ends, strict=True)]
    assert spelled == ["river RHINE", "North Sea", "north"]


def test_a_shorter_name_stands_where_no_longer_one_covers_it(view: GraphView) -> None:
    found = view.match_names("Rhine and River Rhine, Köln")
    assert view.ids(found.numbers) == ["entities/lonely", HUB, "entities/city"]


@pytest.mark.parametrize(
    ("text", "spelled"),
    [
        ("is koln old?", "koln"),
        ("is KO\u0308LN old?", "KO\u0308LN"),
        ("is cologne old?", "cologne"),
        ("is Colónia  AGRIPPINA old?", "Colónia  AGRIPPINA"),
        ("is the city of Koln old?", "city of Koln"),
        ("is Koln a.rh. old?", "Koln a.rh"),
        ("is 쾰른 old?", "쾰른"),
    ],
)
def test_every_name_of_an_entity_counts_and_accents_do_not(
    view: GraphView, text: str, spelled: str
) -> None:
    found = view.match_names(text)
    assert view.ids(found.numbers) == ["entities/city"]
    assert text[found.starts[0] : found.ends[0]] == spelled


def test_an_entity_named_twice_is_found_in_both_places(view: GraphView) -> None:
    text = "Cologne, once (Colonia-Agrippina), is Köln"
    found = view.match_names(text)
    assert view.ids(found.numbers) == ["entities/city"] * 3
    spelled = [text[start:end] for start, end in zip(found.starts, found.ends, strict=True)]
    assert spelled == ["Cologne", "Colonia-Agrippina", "Köln"]


def test_part_of_a_name_is_no_name(view: GraphView) -> None:
    assert len(view.match_names("the city of agrippina, colonia")) == 0


def test_entities_know_their_topic(view: GraphView) -> None:
    asked = numbers(
        view,
        "entities/b1",
        HUB,
        "entities/sea",
        "doc_chunks/c1",
        "clusters/water",
        "entities/b3",
        HUB,
    )
    coast, water = numbers(view, "clusters/coast", "clusters/water").tolist()
    assert view.clusters_of(asked).tolist() == [coast, water, -1, -1, -1, -1, water]
    assert view.clusters_of(np.empty(0, np.int64)).tolist() == []


def bridges(
    view: GraphView, starts: str, ends: str | None = None, limit: int = 9
) -> list[tuple[str, ...]]:
    """Nodes of the bridges between topics, by key."""
    first, second = (
        None
        if topics is None
        else numbers(view, *(f"clusters/{topic}" for topic in topics.split()))
        for topics in (starts, ends)
    )
    assert first is not None
    found = view.bridges(first, second, limit=limit)
    return [
        tuple(name.partition("/")[2] for name in view.ids(np.array(path.nodes))) for path in found
    ]


def test_bridges_come_heaviest_first_then_by_key_and_start_where_asked(view: GraphView) -> None:
    assert bridges(view, "coast") == [("b1", "b0"), ("b1", "b2")]
    assert bridges(view, "valley") == [("b0", "b1"), ("b0", "b1", "b2")]
    assert bridges(view, "towns", "valley") == [("b2", "b1", "b0")]
    assert bridges(view, "valley", "towns coast") == [("b0", "b1"), ("b0", "b1", "b2")]
    assert bridges(view, "coast towns", "coast towns") == [("b1", "b2")]
    assert bridges(view, "valley towns", limit=1) == [("b0", "b1")]
    assert bridges(view, "water") == bridges(view, "nature coast", "water") == []


def test_stale_bridges_are_not_there(view: GraphView) -> None:
    assert [path.weight for path in view.bridges(numbers(view, "clusters/towns"), limit=9)] == [
        0.3,
        0.2,
    ]


def test_a_bridge_says_which_edges_it_walks_and_which_way(view: GraphView) -> None:
    towns, valley = numbers(view, "clusters/towns", "clusters/valley").tolist()
    (there,) = view.bridges(np.array([towns]), np.array([valley]), limit=9)
    assert (there.from_cluster, there.to_cluster) == (towns, valley)
    assert [facts.id for facts in view.edges(np.array(there.edges))] == [
        "relations/k2",
        "relations/k1",
    ]
    assert there.outbound == (False, True)
    assert (there.weight, there.cost, there.pinned) == (0.3, 0.6, False)
    (back,) = view.bridges(np.array([valley]), np.array([towns]), limit=9)
    assert (back.from_cluster, back.to_cluster, back.edges) == (valley, towns, there.edges[::-1])
    assert back.outbound == (False, True)
    assert back.nodes == there.nodes[::-1]
    assert back.reversed() == there


def test_bridges_want_topics_of_the_view_and_a_limit(view: GraphView) -> None:
    assert (
        view.bridges(numbers(view, HUB), limit=3)
        == view.bridges(np.empty(0, np.int64), limit=3)
        == []
    )
    assert [path.pinned for path in view.bridges(numbers(view, "clusters/towns"), limit=2)] == [
        False,
        True,
    ]
    with pytest.raises(BadQuery):
        view.bridges(numbers(view, "clusters/towns"), limit=0)
    with pytest.raises(BadQuery):
        view.bridges(np.array([10**6]), limit=1)


def test_the_same_rows_in_either_store_publish_the_same_bytes(
    tmp_path: Path, double: ArangoDouble
) -> None:
    embedded, server = empty_store(tmp_path / "graph.db"), arango_store(double)
    hashes = []
    for number, store in enumerate((embedded, server)):
        fill(store)
        hashes.append(publish(store, tmp_path / str(number)).manifest_hash)
        store.close()
    assert hashes[0] == hashes[1]
