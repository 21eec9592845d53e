"""MemoryEnhancedPathRAG by its name: defaults, one per process, every key read, forgetting (A63 to
A65, X-09, X-24).
"""

from __future__ import annotations

import ast
from inspect import signature
from pathlib import Path

import pytest

import hades
from hades.compat.pathrag import MemoryEnhancedPathRAG
from hades.errors import SettingsError
from hades.retrieval.walks.flow import PRUNING_THRESHOLD
from hades.settings.load import load_settings
from hades.settings.tree import CacheSettings, PathragSettings
from hades.snapshot.pointer import RETIRED
from hades.wiring import open_hades
from tests.homes import live_in
from tests.unit.hades.retrieval.dated_corpus import published

SECRET = "Ada Lovelace wrote the first program, and Charles Babbage built the engine in London."
PLAIN = "Grace Hopper wrote a compiler. Ada Lovelace was read by Grace Hopper in New York."


@pytest.fixture(autouse=True)
def home(tmp_path, monkeypatch):
    live_in(tmp_path / "home", monkeypatch, tmp_path)
    yield tmp_path / "home"
    for one in MemoryEnhancedPathRAG._shared.values():
        one.close()
    MemoryEnhancedPathRAG._shared.clear()


def texts(folder: Path) -> bytes:
    return b"".join(path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file())


def test_it_constructs_with_defaults(home):
    assert next(iter(signature(MemoryEnhancedPathRAG).parameters.values())).default is None
    config = MemoryEnhancedPathRAG().config
    assert config | {"nvme_cache_path": "", "reliable_store_path": ""} == {
        "decay_rate": 0.85,
        "pruning_threshold": PRUNING_THRESHOLD,
        "max_cache_paths": 100,
        "path_token_estimate": 150,
        "context_window_tokens": 4096,
        "reserve_tokens": 512,
        "enable_caching": True,
        "ram_cache_size_mb": 8192,
        "nvme_cache_path": "",
        "nvme_cache_size_gb": 50,
        "reliable_store_path": "",
        "reliable_store_size_gb": 500,
        "promotion_threshold": 5,
        "importance_threshold": 0.7,
    }
    assert config["nvme_cache_path"] == str(home / "cache" / "nvme")
    assert not home.exists()  # nothing is made before the first question
    assert MemoryEnhancedPathRAG({"enable_caching": False}).memory_manager is None


def test_a_partial_configuration_goes_over_the_settings_which_go_over_the_defaults(tmp_path):
    (tmp_path / "hades.yaml").write_text(
        "pathrag: {decay_rate: 0.5, reserve_tokens: 100}\ncache: {ram_cache_size_mb: 9}"
    )
    rag = MemoryEnhancedPathRAG({"decay_rate": 0.6, "nvme_cache_path": str(tmp_path / "fast")})
    assert (
        rag.config["decay_rate"],
        rag.config["reserve_tokens"],
        rag.config["ram_cache_size_mb"],
    ) == (0.6, 100, 9)
    assert rag.context_manager.available_tokens == 3996
    assert rag.memory_manager is not None
    assert rag.memory_manager.nvme_cache.base_path == tmp_path / "fast"


@pytest.mark.parametrize(
    ("config", "words"),
    [
        ({"decay": 0.5}, "decay_rate"),
        ({"decay_rate": 1.5}, "decay_rate"),
        ({"reserve_tokens": 5000}, "reserve_tokens"),
    ],
)
def test_a_configuration_that_means_nothing_is_named(config, words):
    with pytest.raises(SettingsError, match=words):
        MemoryEnhancedPathRAG(config)


def test_an_empty_home_is_an_error_that_says_what_to_do():
    found = MemoryEnhancedPathRAG().retrieve_paths("anything")
    assert found["success"] is False
    assert "publish" in found["error"]


def test_one_serves_the_whole_process_and_keeps_its_memory(home):
    published(home)
    assert MemoryEnhancedPathRAG.shared() is MemoryEnhancedPathRAG.shared()
    assert MemoryEnhancedPathRAG.shared({"decay_rate": 0.5}) is not MemoryEnhancedPathRAG.shared()
    tiers = [MemoryEnhancedPathRAG.shared().retrieve_paths("Ada Holm")["tier"] for _ in range(2)]
    assert tiers == ["RAID5", "RAM"]


def test_another_tenant_is_served_by_another(monkeypatch):
    first = MemoryEnhancedPathRAG.shared()
    monkeypatch.setenv("HADES_TENANT", "team")
    second = MemoryEnhancedPathRAG.shared()
    assert first.config["nvme_cache_path"] != second.config["nvme_cache_path"]


def test_every_key_is_read_by_some_code():
    """X-21: a key that no module reads as an attribute is a promise that nothing keeps."""
    library = Path(hades.__file__).parent
    readers = [library / "compat" / "pathrag.py"]
    readers += (library / "cache").glob("*.py")
    trees = [ast.parse(path.read_text()) for path in readers]
    read = {
        node.attr for tree in trees for node in ast.walk(tree) if isinstance(node, ast.Attribute)
    }
    unread = [
        key
        for section in (CacheSettings, PathragSettings)
        for key in section.model_fields
        if key not in read
    ]
    assert unread == []


def test_forgetting_a_document_leaves_none_of_its_text_in_any_tier(home, tmp_path):
    (tmp_path / "docs").mkdir()
    (tmp_path / "docs" / "secret.md").write_text(SECRET)
    (tmp_path / "docs" / "plain.md").write_text(PLAIN)
    settings = load_settings()
    with open_hades(settings) as graph:
        graph.ingest.documents(tmp_path / "docs")
        graph.publish()
        rag = MemoryEnhancedPathRAG({"ram_cache_size_mb": 0.02}, settings=settings)
        for question in ("Ada Lovelace", "Charles Babbage", "Who built the engine in London?"):
            rag.retrieve_paths(question)
        rag.memory_manager.put("path:another", {"text": SECRET}, 0.1)
        rag.memory_manager.put("path:third", {"text": SECRET}, 0.5)
        assert b"Babbage" in texts(home / "cache" / "nvme") + texts(home / "cache" / "reliable")
        certificate = graph.forget(["secret.md"])
    assert certificate.answers_removed >= 2
    assert all((folder / RETIRED).exists() for folder in (home / "snapshots").glob("g*"))
    assert b"Babbage" not in texts(home / "cache")
    rag.close()
    assert b"Babbage" not in texts(home / "cache")


@pytest.mark.slow
def test_what_a_pruned_snapshot_said_is_gone_with_it(home, tmp_path):
    (tmp_path / "docs").mkdir()
    (tmp_path / "docs" / "secret.md").write_text(SECRET)
    (tmp_path / "docs" / "plain.md").write_text(PLAIN)
    from datetime import UTC, datetime

    from hades.night.release.publish import publish_now

    settings = load_settings()
    with open_hades(settings) as graph:
        graph.ingest.documents(tmp_path / "docs")
        graph.publish()
        graph.forget(["secret.md"])
        rag = MemoryEnhancedPathRAG(settings=settings)
        assert rag.retrieve_paths("Charles Babbage")[
            "success"
        ]  # the old snapshot still serves, and holds it
        released = publish_now(graph.build_context, datetime(2026, 1, 1, tzinfo=UTC), keep=1)
    assert len(released["removed"]) == 1
    rag.close()
    assert b"Babbage" not in texts(home / "cache")
