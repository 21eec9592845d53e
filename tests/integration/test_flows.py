"""Flows as Prefect runs them, on one ephemeral server; two shards on a Dask cluster give the vectors of one process."""

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
def test_provision_flow_creates_the_store_and_can_be_repeated(tmp_path, monkeypatch):
    from flows.provision import provision

    monkeypatch.setenv("HADES_HOME", str(tmp_path))
    monkeypatch.delenv("HADES_STORE", raising=False)
    assert "relations" in provision().created
    assert provision(check=True).created == ()
    assert (tmp_path / "graph.db").is_file()


@pytest.mark.usefixtures("prefect_server")
def test_a_corpus_is_ingested_published_and_embedded_again(tmp_path, monkeypatch):
    from flows.ingest import ingest
    from flows.publish import publish
    from flows.reembed import reembed
    from hades import open_hades

    pages = tmp_path / "pages"
    pages.mkdir()
    (pages / "one.md").write_text("# Ada Lovelace\n\nAda Lovelace worked with Charles Babbage in London.\n")
    (pages / "two.md").write_text("# Charles Babbage\n\nCharles Babbage designed the Analytical Engine.\n")
    monkeypatch.setenv("HADES_HOME", str(tmp_path / "home"))
    monkeypatch.setenv("HADES_EMBEDDER", "hashing")
    done = ingest(source="documents", path=str(pages))
    assert done["nodes"]["documents"]["new"] == 2
    assert done["edges"]["derived"]["entities"]["added"] >= 2
    first = publish(keep=2)
    monkeypatch.setenv("HADES_EMBEDDER", "minilm")
    second = reembed(keep=2)
    assert second["embedded"]["embedded"] == 2
    assert second["released"]["snapshot"] != first["snapshot"]
    with open_hades() as hades:
        view = hades.view()
        assert view.info.models["doc_chunks"] == (hades.embedder.model.tag,)


@pytest.mark.usefixtures("prefect_server")
def test_two_shards_are_embedded_on_a_local_dask_cluster(tmp_path, monkeypatch):
    from flows.embed import embed
    from hades import open_hades
    from hades.ingest import embeddings
    from hades.ingest.phases import Phase
    from tasks.unit import without_server

    corpus = tmp_path / "corpus.jsonl"
    rows = ({"id": str(n), "title": f"Note {n}", "text": f"Note number {n} speaks of engines."} for n in range(15))
    corpus.write_text("\n".join(json.dumps(row) for row in rows))
    monkeypatch.setenv("HADES_EMBEDDER", "hashing")
    monkeypatch.setattr(embeddings, "WINDOW", 10)
    vectors = []
    for name in ("dask", "threads"):
        monkeypatch.setenv("HADES_HOME", str(tmp_path / name))
        monkeypatch.setenv("HADES_TASK_RUNNER", name)
        with open_hades() as hades:
            hades.ingest.passages(corpus, phases=[Phase.NODES, Phase.CHUNKS])
        if name == "dask":
            assert embed() | {"took": 0} == {"embedded": 15, "shards": 2, "took": 0}
        else:
            with without_server():
                embed.fn()
        with open_hades() as hades:
            columns = ["_key", "embedding", "embedding_model"]
            vectors.append([batch.to_pydict() for batch in hades.store.scan("doc_chunks", columns=columns)])
    assert vectors[0] == vectors[1]
