"""Ablations hide what they say and nothing else."""

import numpy as np
import pytest

from benchmarks.evaluation.ladder import no_bridges, no_hierarchy, no_synonyms, passages_as_ends
from benchmarks.evaluation.workbench import build
from hades.ports.graph import KINDS, Kind
from hades.ports.store import Direction
from hades.snapshot.open import open_snapshot
from tests.unit.benchmarks.corpora import PASSAGES, hashing_bench, write_rows


@pytest.fixture(scope="module")
def view(tmp_path_factory):
    folder = tmp_path_factory.mktemp("without")
    corpus = write_rows(folder / "corpus.jsonl", PASSAGES)
    with hashing_bench(folder / "home") as bench:
        build(bench, lambda ingest: ingest.passages(corpus))
    opened = open_snapshot(folder / "home")
    yield opened
    opened.close()


def _all(view):
    return np.arange(sum(view.info.nodes.values()), dtype=np.int64)


def test_without_synonyms_no_such_edge_is_left(view):
    hidden = no_synonyms(view).expand(_all(view), direction=Direction.ANY)
    assert not {"similar_to", "coref"} & {view.type_names[code] for code in hidden.type.tolist()}
    others = view.expand(_all(view), direction=Direction.ANY, types=["mentions", "refers_to"])
    assert set(others.edge.tolist()) <= set(hidden.edge.tolist())


def test_passages_that_are_ends_can_be_reached_but_not_left(view):
    hidden, nodes = passages_as_ends(view), _all(view)
    is_chunk = view.kinds(nodes) == KINDS.index(Kind.CHUNK)
    assert hidden.degree(nodes[is_chunk], direction=Direction.ANY).sum() == 0
    reached = hidden.expand(nodes[~is_chunk], direction=Direction.ANY).target
    assert set(nodes[is_chunk].tolist()) <= set(reached.tolist())


def test_without_hierarchy_the_graph_looks_as_before_it_was_built(view):
    hidden = no_hierarchy(view)
    assert hidden.info.parts["hierarchy"] == ""
    assert hidden.info.models[Kind.CLUSTER] == ()
    assert hidden.clusters_of(_all(view)).tolist() == [-1] * len(_all(view))
    assert hidden.info.snapshot == view.info.snapshot
    assert (
        hidden.bridges(_all(view), limit=5) == no_bridges(view).bridges(_all(view), limit=5) == []
    )
