"""Citations and bridges on four papers: what is asked for is not in the graph, and what is left can
still be found.
"""

import pytest

from benchmarks.evaluation.arxiv import ArxivFiles, citation_cases
from benchmarks.evaluation.bridges import PAIR_KNOWN, evaluate_bridges
from benchmarks.evaluation.citations import evaluate_citations, require_withheld
from benchmarks.evaluation.ladder import rungs
from benchmarks.evaluation.rankers import BASELINES, PLACED
from hades.evaluation.cases import BadCases
from tests.unit.benchmarks.corpora import (
    CITATIONS,
    CONTEXTS,
    LINKS,
    PAPERS,
    hashing_bench,
    write_rows,
)


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    folder = tmp_path_factory.mktemp("arxiv")
    return ArxivFiles(
        write_rows(folder / "papers.jsonl", PAPERS),
        write_rows(folder / "citations.jsonl", CITATIONS),
        write_rows(folder / "contexts.jsonl", CONTEXTS),
        write_rows(folder / "links.jsonl", LINKS),
    )


@pytest.fixture(scope="module")
def home(tmp_path_factory):
    return tmp_path_factory.mktemp("home")


@pytest.fixture(scope="module")
def bridged(home, files):
    with hashing_bench(home) as bench:
        return evaluate_bridges(bench, files, rungs=rungs("pathrag,vector", ""), hops=4, paths=6)


def _citations(store):
    names = {
        f"entities/{row['_key']}": row["name"]
        for batch in store.scan("entities", columns=["_key", "name"])
        for row in batch.to_pylist()
    }
    return {
        (names[row["_from"]], names[row["_to"]])
        for batch in store.scan("relations", columns=["_from", "_to", "type"])
        for row in batch.to_pylist()
        if row["type"] == "cites"
    }


def test_tested_citations_are_not_in_the_graph_and_the_others_are(tmp_path, files):
    with hashing_bench(tmp_path) as bench:
        bench.ingest.arxiv(files.papers, files.citations, files.code_links)
        assert ("Parsing With Trees", "Tree Banks At Scale") in _citations(
            bench.build_context.store
        )
        with pytest.raises(BadCases, match="paper 1 still cites 2"):
            require_withheld(bench.build_context.store, {("1", "2")})
        found = evaluate_citations(bench, files, rungs=rungs("hipporag", ""), ks=(1, 2), sample=10)
        assert _citations(bench.build_context.store) == {("Speech Lattices", "Tree Banks At Scale")}
    assert found.document["dataset"]["withheld"] == 2
    assert (
        found.document["build"]["embedded"] == 0
    )  # a home that knows the texts embeds none of them again
    assert set(found.document["recipes"]) == {*BASELINES, *PLACED, "hipporag"}


def test_the_citing_paper_is_in_no_ranking(tmp_path, files):
    with hashing_bench(tmp_path) as bench:
        found = evaluate_citations(
            bench, files, rungs=rungs("hipporag,vector", ""), ks=(1, 5), sample=10
        )
    for scores in found.scores.values():
        assert [
            "1" not in scores.rankings[0].documents,
            "3" not in scores.rankings[1].documents,
        ] == [True, True]
    assert found.document["recipes"]["bm25"]["recall"]["5"] == 1.0  # three papers are left of four


def test_a_sentence_that_cites_several_wants_all_of_them(tmp_path):
    rows = [*CONTEXTS, {"src": "1", "dst": "4", "context": CONTEXTS[0]["context"]}]
    path, titles = (
        write_rows(tmp_path / "contexts.jsonl", rows),
        {paper["id"]: paper["title"] for paper in PAPERS},
    )
    cases = citation_cases(path, titles, 10, seed=1)
    assert [(sorted(case.gold), set(case.excluded)) for case in cases] == [
        (["2", "4"], {"1"}),
        (["1"], {"3"}),
    ]
    asked = citation_cases(path, titles, 10, seed=1, with_title=True)
    assert asked[1].question == "Neural Chart Decoding: " + CONTEXTS[1]["context"]


def test_every_pair_is_joined_by_its_own_edge(bridged):
    present = bridged[0]["recipes"][PAIR_KNOWN]["present"]
    assert (present["discovery"], present["mean_hops"], present["purity"]) == (1.0, 1.0, 1.0)
    assert bridged[0]["dataset"]["pairs"] == 3
    assert bridged[0]["dataset"]["unresolved"] == 0


def test_without_its_edge_only_a_repository_that_another_paper_names_is_found(bridged):
    withheld = bridged[0]["recipes"][PAIR_KNOWN]["withheld"]
    assert bridged[0]["dataset"]["still_joined"] == 2  # the two papers of ames/trees
    assert withheld["discovery"] == pytest.approx(2 / 3, abs=1e-4)
    assert withheld["still_joined"] == 1.0
    assert withheld["expected"] == 1.0  # by way of the other paper that names it
    assert withheld["mean_hops"] >= 2.0


def test_flat_search_finds_no_bridge(bridged):
    assert bridged[0]["recipes"]["vector"]["present"]["discovery"] == 0.0


def test_ground_truth_names_the_expected_bridges(bridged):
    assert {"paper": "1", "repo": "ames/trees", "expected_bridges": ["3"]} in bridged[1]
    assert {"paper": "2", "repo": "bohr/banks", "expected_bridges": []} in bridged[1]
