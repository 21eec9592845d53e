"""Shards on a Dask cluster: the same vectors as one after the other."""

import json

import pytest

from tests.patience import HANG_SECONDS

pytestmark = [pytest.mark.integration, pytest.mark.slow]


@pytest.fixture(scope="module")
def prefect_server():
    from prefect.testing.utilities import prefect_test_harness

    with prefect_test_harness(server_startup_timeout=HANG_SECONDS):
        yield


@pytest.mark.usefixtures("prefect_server")
def test_two_shards_are_embedded_on_a_local_dask_cluster(tmp_path, monkeypatch):
    from flows.embed import embed
    from hades import open_hades
    from hades.ingest.phases import Phase
    from tasks.unit import without_server

    corpus = tmp_path / "corpus.jsonl"
    rows = ({"id": str(n), "title": f"Note {n}", "text": f"Note number {n} speaks of engines."} for n in range(2_500))
    corpus.write_text("\n".join(json.dumps(row) for row in rows))
    monkeypatch.setenv("HADES_EMBEDDER", "hashing")
    vectors = []
    for name in ("dask", "threads"):
        monkeypatch.setenv("HADES_HOME", str(tmp_path / name))
        monkeypatch.setenv("HADES_TASK_RUNNER", name)
        with open_hades() as hades:
            hades.ingest.passages(corpus, phases=[Phase.NODES, Phase.CHUNKS])
        if name == "dask":
            assert embed() | {"took": 0} == {"embedded": 2_500, "shards": 2, "took": 0}
        else:
            with without_server():
                embed.fn()
        with open_hades() as hades:
            columns = ["_key", "embedding", "embedding_model"]
            vectors.append([batch.to_pydict() for batch in hades.store.scan("doc_chunks", columns=columns)])
    assert vectors[0] == vectors[1]
