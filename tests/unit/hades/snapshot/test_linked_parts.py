"""Publishing after a small change: equal files are links, known texts are not analysed again, and the bytes agree."""

from __future__ import annotations

import shutil
from pathlib import Path
from random import Random

import pytest

from hades.snapshot import lexical, manifest
from hades.snapshot import lexical as analysed_texts
from hades.snapshot.files import Folder
from hades.snapshot.lexical import AnalysedTexts
from hades.snapshot.manifest import is_noted, prune
from hades.snapshot.open import open_snapshot, rollback
from hades.snapshot.publish import PublishReport, publish
from hades.stores.sqlite.store import SqliteStore
from tests.contract.examples import entity, put
from tests.unit.hades.snapshot.homes import chain_store


def inode(folder: Path, name: str) -> int:
    return (folder / name).stat().st_ino


def publish_changes(home: Path, changes: int) -> tuple[SqliteStore, list[PublishReport]]:
    """A snapshot, and one after each of some changes."""
    store = chain_store(home / "graph.db")
    published = [publish(store, home)]
    for number in range(changes):
        put(store, "entities", entity(f"more{number}"))
        published.append(publish(store, home))
    return store, published


def test_parts_that_did_not_change_are_the_files_of_the_snapshot_before_the_last(tmp_path: Path) -> None:
    _, (first, second, third) = publish_changes(tmp_path, 2)
    assert (first.files_linked, second.files_linked) == (0, 0)
    assert 0 < third.files_linked < third.files
    assert inode(first.path, "edge.weight") == inode(third.path, "edge.weight")
    assert inode(second.path, "edge.weight") != inode(third.path, "edge.weight")
    assert inode(first.path, "node.hash") != inode(third.path, "node.hash")


def test_snapshots_that_share_files_open_without_a_second_look_and_outlive_each_other(tmp_path: Path) -> None:
    _, published = publish_changes(tmp_path, 4)
    paths = [one.path for one in published]
    assert all(is_noted(path, manifest.load(path)[0].arrays) for path in paths)
    prune(tmp_path, keep=2)
    assert [path.is_dir() for path in paths] == [False, False, False, True, True]
    assert all(is_noted(path, manifest.load(path)[0].arrays) for path in paths[3:])
    assert rollback(tmp_path) == paths[3].name
    assert open_snapshot(tmp_path).number(["entities/more3"]).tolist() == [-1]


def test_a_damaged_file_of_an_older_snapshot_is_not_linked(tmp_path: Path) -> None:
    store, (first, _) = publish_changes(tmp_path, 1)
    weights = first.path / "edge.weight"
    weights.write_bytes(bytes(weights.stat().st_size))
    put(store, "entities", entity("last"))
    assert publish(store, tmp_path).files_linked == 0


def test_the_snapshot_is_the_same_whether_texts_were_known_or_not(tmp_path: Path) -> None:
    store = chain_store(tmp_path / "graph.db")
    put(store, "entities", entity("gone", name="Zanzibar Zeppelin"))
    publish(store, tmp_path / "known")
    store.delete("entities", keys=["gone"])
    put(store, "entities", entity("more", name="Rivers flowing"))
    known, fresh = publish(store, tmp_path / "known"), publish(store, tmp_path / "fresh")
    assert known.manifest_hash == fresh.manifest_hash


def lexical_files(folder: Path, texts: list[str], known: AnalysedTexts | None) -> dict[str, bytes]:
    folder.mkdir()
    writer = lexical.LexicalWriter(folder, "t", known)
    writer.append(texts)
    with Folder(folder) as arrays:
        writer.write(arrays)
    found = {path.name: path.read_bytes() for path in folder.iterdir()}
    shutil.rmtree(folder)
    return found


def test_known_texts_are_not_analysed_and_forgotten_words_leave_the_cache(tmp_path: Path, monkeypatch) -> None:
    cache = tmp_path / "cache.npz"
    lexical_files(tmp_path / "a", ["rivers flow", "Zanzibar zeppelin", ""], AnalysedTexts(cache))
    asked: list[str] = []
    real = lexical.Vocabulary.numbers
    monkeypatch.setattr(lexical.Vocabulary, "numbers", lambda self, text: asked.append(text) or real(self, text))
    texts = ["", "a flowing sea", "rivers flow"]
    second = lexical_files(tmp_path / "b", texts, AnalysedTexts(cache))
    assert asked == ["a flowing sea"]
    assert second == lexical_files(tmp_path / "c", texts, None)
    assert "zanzibar" not in AnalysedTexts(cache).terms
    assert "sea" in AnalysedTexts(cache).terms


@pytest.mark.parametrize("seed", range(6))
def test_any_history_of_texts_gives_the_index_of_a_build_from_nothing(tmp_path: Path, monkeypatch, seed: int) -> None:
    monkeypatch.setattr(lexical, "_PORTION_TEXTS", 3)
    monkeypatch.setattr(lexical, "_BLOCK_WORDS", 20)
    random, cache = Random(seed), tmp_path / "cache.npz"
    words = ["river", "rivers", "sea", "Flow", "naïve", "zeppelin", "x_1", "the", ""]
    texts: list[str] = []
    for night in range(5):
        texts = [text for text in texts if random.random() < 0.7]
        texts += [" ".join(random.choices(words, k=random.randrange(6))) for _ in range(random.randrange(6))]
        random.shuffle(texts)
        known = lexical_files(tmp_path / f"known{night}", texts, AnalysedTexts(cache))
        assert known == lexical_files(tmp_path / f"fresh{night}", texts, None)


def test_a_torn_cache_or_that_of_another_analyser_is_ignored(tmp_path: Path, monkeypatch) -> None:
    cache = tmp_path / "cache.npz"
    lexical_files(tmp_path / "a", ["rivers flow"], AnalysedTexts(cache))
    monkeypatch.setattr(analysed_texts, "_version", lambda: b"another")
    assert AnalysedTexts(cache).terms == ()
    monkeypatch.undo()
    cache.write_bytes(cache.read_bytes()[:40])
    assert AnalysedTexts(cache).places([analysed_texts.digest_text("rivers flow")]).tolist() == [-1]
