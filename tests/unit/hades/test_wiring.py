"""Settings in, ports out."""

import pytest

from hades.errors import SettingsError
from hades.ports.store import Mode
from hades.settings.load import load_settings
from hades.snapshot.publish import publish
from hades.surfaces.access.contexts import CallContext
from hades.wiring import open_embedder, open_store, open_view
from tests.arango_double.server import ArangoDouble


def test_default_is_the_embedded_store_in_the_home(tmp_path):
    store = open_store(load_settings({}, tmp_path), Mode.ADMIN)
    store.provision()
    store.close()
    assert (tmp_path / ".hades/graph.db").is_file()


def test_socket_of_the_mode_wins_over_the_address(tmp_path):
    env = {
        "HADES_STORE": "arango",
        "HADES_ARANGO_URL": "http://127.0.0.1:1",
        "ARANGO_RW_UDS": "/run/rw.sock",
    }
    settings = load_settings(env, tmp_path)
    read_write = open_store(settings, Mode.READ_WRITE)
    read_only = open_store(settings, Mode.READ_ONLY)
    assert str(read_write.session.endpoint) == "unix:/run/rw.sock"
    assert str(read_only.session.endpoint) == "http://127.0.0.1:1"


def test_memory_is_read_with_the_right_to_read_alone(tmp_path):
    settings = load_settings({"HADES_STORE": "arango", "ARANGO_RO_UDS": "/run/ro.sock"}, tmp_path)
    context = CallContext(settings, "reader", mode=Mode.READ_ONLY)
    assert str(context.memory.store.session.endpoint) == "unix:/run/ro.sock"
    context.close()


def test_embedder_follows_the_setting(tmp_path):
    hashing = open_embedder(load_settings({"HADES_EMBEDDER": "hashing"}, tmp_path))
    assert hashing.embed(["a word"]).shape == (1, hashing.model.dimension)
    minilm = open_embedder(load_settings({}, tmp_path))
    assert minilm.model.dimension == 384


def test_openai_embedder_needs_an_address_and_a_model(tmp_path):
    env = {"HADES_EMBEDDER": "openai", "HADES_LLM_BASE_URL": "http://127.0.0.1:1/v1"}
    with pytest.raises(SettingsError, match="HADES_EMBEDDER_MODEL"):
        open_embedder(load_settings(env, tmp_path))
    named = load_settings(
        env | {"HADES_EMBEDDER_MODEL": "e5", "HADES_LLM_API_KEY": "s3cret"}, tmp_path
    )
    assert "e5" in repr(open_embedder(named))
    assert "s3cret" not in repr(open_embedder(named))


def test_a_view_over_aql_has_the_snapshot_of_its_home_for_turns_that_meet_a_large_write(tmp_path):
    with ArangoDouble(root_password="p") as double:
        server = {
            "HADES_STORE": "arango",
            "HADES_ARANGO_URL": double.url,
            "HADES_ARANGO_PASSWORD": "p",
        }
        settings = load_settings({**server, "HADES_VIEW": "arango"}, tmp_path)
        store = open_store(settings, Mode.ADMIN)
        store.provision()
        view = open_view(settings)
        assert view.open_whole() is None
        published = publish(store, settings.home)
        whole = view.open_whole()
    assert whole.info.snapshot == published.snapshot
    assert "a large write" in whole.info.degraded_from
