"""A tenant has a namespace of its own: nothing that is kept for one can be read for another, in any
place.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from hades.compat.pathrag import MemoryEnhancedPathRAG
from hades.errors import SettingsError
from hades.ports.services import DATA_HASH, RunRecord
from hades.ports.store import Mode
from hades.settings.load import for_tenant, load_settings, tenants
from hades.settings.tree import Settings
from hades.wiring import open_hades, open_store, open_tracker
from tests.arango_double.server import ArangoDouble
from tests.contract.examples import entity, put

OWN = {"alpha": "Zorvath Quillon", "beta": "Mirelle Tansk"}
OTHER = {"alpha": "Mirelle Tansk", "beta": "Zorvath Quillon"}
THINGS = {
    "alpha": "mill saw river wheel dam barn at Brennac",
    "beta": "tower lamp harbour boat pier sail at Osvik",
}


def corpus_of(tenant: str) -> dict[str, str]:
    """Fifteen documents about one person, one place and pairs of things, enough for topics to
    form.
    """
    *things, _, place = THINGS[tenant].split()
    person = OWN[tenant]
    return {
        f"{one}-{two}.md": f"{person} built the {one} of {place} beside the {two}. "
        f"The {one} and the {two} of {person} stand in {place}."
        for one in things
        for two in things
        if one < two
    }


CORPORA = {tenant: corpus_of(tenant) for tenant in OWN}


def settings_of(tenant: str, home: Path, **more: str) -> Settings:
    env = {"HADES_HOME": str(home), "HADES_EMBEDDER": "hashing", "HADES_TENANT": tenant, **more}
    return load_settings(env, home.parent)


def written(folder: Path, texts: dict[str, str]) -> Path:
    folder.mkdir(parents=True)
    for name, text in texts.items():
        (folder / name).write_text(text)
    return folder


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two tenants under one home, each with a published graph, a logged question and kept
    answers.
    """
    root = tmp_path_factory.mktemp("tenants")
    for tenant, texts in CORPORA.items():
        with open_hades(settings_of(tenant, root / "home")) as graph:
            graph.ingest.documents(written(root / tenant, texts))
            graph.publish()
            graph.retrieve(f"Who is {OWN[tenant]}?")
        with MemoryEnhancedPathRAG(settings=settings_of(tenant, root / "home")) as rag:
            assert rag.retrieve_paths(OWN[tenant])["count"] > 0
    return root / "home"


@pytest.mark.parametrize(
    "name",
    [
        "../alpha",
        "..",
        ".",
        "/etc",
        "a/b",
        "a\\b",
        "A",
        "a b",
        "a\n",
        "ä",
        "a" * 64,
        "a.b",
        "a%2e",
        "\x00",
    ],
)
def test_a_name_that_could_lead_elsewhere_is_refused(tmp_path, name):
    with pytest.raises(SettingsError, match="HADES_TENANT"):
        settings_of(name, tmp_path / "home")
    with pytest.raises(SettingsError, match="HADES_TENANT"):
        for_tenant(load_settings({}, tmp_path), name)


@pytest.mark.parametrize("name", ["a", "team-a", "0", "_", "a" * 63])
def test_a_plain_name_is_a_folder_and_a_part_of_the_database(tmp_path, name):
    settings = settings_of(name, tmp_path / "home")
    assert (settings.tenant, settings.home) == (name, tmp_path / "home" / "tenants" / name)
    assert settings.arango_database == f"arxiv_repository_{name}"


def test_a_tenant_may_stand_in_the_file(tmp_path):
    (tmp_path / "hades.yaml").write_text("tenant: team-a")
    assert load_settings({}, tmp_path).home == tmp_path / ".hades" / "tenants" / "team-a"
    (tmp_path / "hades.yaml").write_text("tenant: 7")
    with pytest.raises(SettingsError, match="HADES_TENANT is 7"):
        load_settings({}, tmp_path)


def test_a_tenant_cannot_be_set_without_moving_what_is_kept(tmp_path):
    with pytest.raises(ValueError, match="for_tenant"):
        Settings(tenant="alpha")
    with pytest.raises(SettingsError, match="already"):
        for_tenant(settings_of("alpha", tmp_path), "beta")


def test_a_name_too_long_for_a_database_is_refused_where_there_is_one(tmp_path):
    more = {"HADES_STORE": "arango", "HADES_ARANGO_URL": "http://127.0.0.1:1"}
    with pytest.raises(SettingsError, match="64"):
        settings_of("a" * 50, tmp_path, **more)
    assert len(settings_of("a" * 47, tmp_path, **more).arango_database) == 64


def test_everything_is_written_below_the_tenants_own_folder(home):
    assert [path.name for path in home.iterdir()] == ["tenants"]
    assert tenants(home) == ["alpha", "beta"]
    for tenant in CORPORA:
        kept = {path.name for path in (home / "tenants" / tenant).iterdir()}
        assert {"graph.db", "snapshots", "cache"} <= kept


@pytest.mark.parametrize("tenant", list(CORPORA))
def test_store_snapshot_log_and_cache_know_nothing_of_the_other(home, tenant):
    settings = settings_of(tenant, home)
    with open_hades(settings) as graph:
        rows = [
            row
            for name in graph.store.counts()
            for batch in graph.store.scan(name)
            for row in batch.to_pylist()
        ]
        assert OWN[tenant] in str(rows)
        assert OTHER[tenant] not in str(rows)
        assert OTHER[tenant] not in graph.answers.retrieve(OTHER[tenant]).model_dump_json().replace(
            f'"query":"{OTHER[tenant]}"', ""
        )
    for folder in ("snapshots", "cache"):
        kept = b"".join(
            path.read_bytes() for path in (settings.home / folder).rglob("*") if path.is_file()
        )
        assert OWN[tenant].encode() in kept
        assert OTHER[tenant].encode() not in kept


def test_the_same_corpus_of_two_tenants_shares_no_answer(tmp_path):
    for tenant in ("one", "two"):
        settings = settings_of(tenant, tmp_path / "home")
        with open_hades(settings) as graph:
            graph.ingest.documents(written(tmp_path / tenant / "docs", CORPORA["alpha"]))
            graph.publish()
        shared = {
            "nvme_cache_path": str(tmp_path / "shared"),
            "reliable_store_path": str(tmp_path / "kept"),
        }
        rag = MemoryEnhancedPathRAG(shared, settings=settings)
        assert rag.retrieve_paths(OWN["alpha"])["tier"] == "RAID5"
        rag.close()
    assert sorted(path.name for path in (tmp_path / "shared").iterdir()) == ["tenants"]
    assert sorted(path.name for path in (tmp_path / "shared" / "tenants").iterdir()) == [
        "one",
        "two",
    ]


def test_cache_folders_of_the_settings_are_divided_too(tmp_path):
    (tmp_path / "hades.yaml").write_text(
        "cache: {nvme_cache_path: fast, reliable_store_path: /var/kept}"
    )
    cache = settings_of("alpha", tmp_path / "home", HADES_TRUST_FOLDER="1").cache
    assert cache.nvme_cache_path == tmp_path / "fast" / "tenants" / "alpha"
    assert cache.reliable_store_path == Path("/var/kept/tenants/alpha")


def test_on_a_server_each_tenant_has_a_database(tmp_path):
    with ArangoDouble(root_password="x") as double:
        more = {
            "HADES_STORE": "arango",
            "HADES_ARANGO_URL": double.url,
            "HADES_ARANGO_DATABASE": "kg",
            "HADES_ARANGO_USER": "root",
            "HADES_ARANGO_PASSWORD": "x",
        }
        stores = {
            name: open_store(settings_of(name, tmp_path, **more), Mode.ADMIN) for name in CORPORA
        }
        for store in stores.values():
            store.provision()
        put(stores["alpha"], "entities", entity("zorvath", name="Zorvath Quillon"))
        assert {name: store.count("entities") for name, store in stores.items()} == {
            "alpha": 1,
            "beta": 0,
        }
        assert stores["beta"].describe()["database"] == "kg_beta"


@pytest.mark.slow
def test_a_shared_registry_is_divided_by_name(tmp_path):
    uri = f"sqlite:///{tmp_path / 'shared.db'}"
    trackers = {
        name: open_tracker(settings_of(name, tmp_path / "home", HADES_MLFLOW_URI=uri))
        for name in CORPORA
    }
    weights = tmp_path / "weights.txt"
    weights.write_text("w")
    for settings_name in CORPORA:
        (tmp_path / "home" / "tenants" / settings_name).mkdir(parents=True)
    mine = trackers["alpha"]
    run = mine.log_run("hades", RunRecord("night", artifacts=[weights], tags={DATA_HASH: "1"}))
    version = mine.register("hades-weights", run, "weights.txt")
    mine.set_alias("hades-weights", "champion", version)
    assert [one.name for one in mine.versions("hades-weights")] == ["hades-weights"]
    assert mine.alias("hades-weights", "champion") == version
    assert mine.fetch("hades-weights", version).read_text() == "w"
    assert trackers["beta"].versions("hades-weights") == []
    assert trackers["beta"].alias("hades-weights", "champion") is None
