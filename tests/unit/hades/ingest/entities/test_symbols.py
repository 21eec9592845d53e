"""Code symbols are also known by the last part of their name, where that says enough."""

from hades.ingest.sources.workspace import WorkspaceSource
from tests.unit.hades.night.release.small_graphs import opened

CODE = '''
class ParcelTracker:
    """Follows parcels."""

    def find_parcel(self):
        """Find one."""

    def get(self):
        """Fetch it."""
'''


def test_an_identifier_is_an_alias_and_a_plain_word_is_not(tmp_path):
    (tmp_path / "code").mkdir()
    (tmp_path / "code" / "post.py").write_text(CODE)
    with opened(tmp_path / "home") as hades:
        hades.ingest.source(WorkspaceSource(tmp_path / "code"))
        hades.publish()
        view = hades.view()
        rows = [
            row
            for batch in hades.store.scan("entities", columns=["name", "aliases"])
            for row in batch.to_pylist()
        ]
        found = view.nodes(view.match_names("where does ParcelTracker find a parcel?").numbers)
    aliases = {row["name"]: row["aliases"] for row in rows}
    assert aliases["post.ParcelTracker"] == ["ParcelTracker"]
    assert aliases["post.ParcelTracker.find_parcel"] == ["find_parcel"]
    assert aliases["post.ParcelTracker.get"] == []
    assert "post.ParcelTracker" in [node.name for node in found]


def test_two_files_with_the_same_qualified_name_are_two_symbols(tmp_path):
    for folder in ("one", "two"):
        (tmp_path / "code" / folder / "src").mkdir(parents=True)
        (tmp_path / "code" / folder / "src" / "helpers.py").write_text(
            f'def open_parcel():\n    """Opens parcels of {folder}."""\n    return '
            f"wrap_{folder}()\n\n\n"
            f"def wrap_{folder}():\n    return 1\n"
        )
    with opened(tmp_path / "home") as hades:
        hades.ingest.source(WorkspaceSource(tmp_path / "code"))
        entities = [
            row
            for batch in hades.store.scan("entities", columns=["_key", "name"])
            for row in batch.to_pylist()
        ]
        relations = [row for batch in hades.store.scan("relations") for row in batch.to_pylist()]
        mentions = [row for batch in hades.store.scan("mentions") for row in batch.to_pylist()]
    name_of = {f"entities/{row['_key']}": row["name"] for row in entities}
    names = [f"{folder}/src/helpers.py:helpers.open_parcel" for folder in ("one", "two")]
    assert {name for name in name_of.values() if "open_parcel" in name} == set(names)
    calls = {
        (name_of[row["_from"]], name_of[row["_to"]]) for row in relations if row["label"] == "calls"
    }
    assert calls == {
        (name, f"helpers.wrap_{folder}") for name, folder in zip(names, ("one", "two"), strict=True)
    }
    for name in names:
        assert len({row["_from"] for row in mentions if name_of[row["_to"]] == name}) >= 1
