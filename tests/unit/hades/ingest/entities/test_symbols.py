"""Code symbols are also known by the last part of their name, where that says enough."""

from hades.ingest.sources.workspace import WorkspaceSource
from tests.unit.hades.stages.release.small_graphs import opened

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
        rows = [row for batch in hades.store.scan("entities", columns=["name", "aliases"]) for row in batch.to_pylist()]
        found = view.nodes(view.match_names("where does ParcelTracker find a parcel?").numbers)
    aliases = {row["name"]: row["aliases"] for row in rows}
    assert aliases["post.ParcelTracker"] == ["ParcelTracker"]
    assert aliases["post.ParcelTracker.find_parcel"] == ["find_parcel"]
    assert aliases["post.ParcelTracker.get"] == []
    assert "post.ParcelTracker" in [node.name for node in found]
