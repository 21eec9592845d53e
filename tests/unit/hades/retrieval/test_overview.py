"""The corpus at a glance, and two published graphs beside each other."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path

from hades.build.release.compare import compare_snapshots
from hades.retrieval.answer.overview import describe_corpus
from hades.settings.load import load_settings
from hades.wiring import open_hades, open_view


def test_an_overview_asks_about_the_corpus_and_a_comparison_names_what_came(tmp_path: Path) -> None:
    pages = tmp_path / "pages"
    pages.mkdir()
    (pages / "rhine.md").write_text(
        "# Rhine\n\nThe Rhine flows from Basel to the North Sea. Basel lies on the Rhine.\n"
    )
    settings = load_settings({"HADES_HOME": str(tmp_path / "home"), "HADES_EMBEDDER": "hashing"}, tmp_path)
    lock = f"## Setting up a lock\n\n{'A lock lifts ships. ' * 9}\n\nIt is easy to set.\n\n"
    guide = f"{lock}## Breaking changes\n\n{'None at all. ' * 9}\n"
    (pages / "guide.md").write_text(f"# Changelog\n\nNothing.\n\n{guide}")
    with open_hades(settings) as hades:
        hades.ingest.documents(pages)
        before = hades.publish().snapshot
        (pages / "elbe.md").write_text("# Elbe\n\nThe Elbe flows through Dresden to the North Sea.\n")
        hades.ingest.documents(pages)
        after = hades.publish().snapshot
        overview = describe_corpus(hades.store)
    assert overview["formats"] == {"text/markdown": 3}
    assert overview["questions"][0] == "How do I set up a lock?"
    assert "What is Changelog?" not in overview["questions"]
    assert not any("reaking changes work" in one for one in overview["questions"])
    assert "What is Rhine?" in overview["questions"]
    said = {one["name"]: one["summary"] for one in overview["names"]}
    assert said["Rhine"] == "The Rhine flows from Basel to the North Sea."
    with closing(open_view(settings, before)) as older, closing(open_view(settings, after)) as newer:
        found = compare_snapshots(older, newer)
    assert (found["before"], found["after"]) == (before, after)
    assert "Elbe" in found["nodes"]["entities"]["added_names"]
    assert found["nodes"]["doc_chunks"] | {"added_names": [], "removed_names": []} == {
        "before": 4, "after": 5, "added": 1, "removed": 0, "added_names": [], "removed_names": [],
    }  # fmt: skip
