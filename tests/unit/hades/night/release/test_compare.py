"""Two graphs beside each other: what differs, as a document and as a page; then one serves or
goes.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.command_line import run
from tests.homes import live_in

RIVERS = ("Rhine", "Elbe", "Oder", "Weser", "Main", "Isar")


def hades(*words: str, code: int = 0) -> dict[str, Any]:
    done = run(*words, "--json")
    assert done.exit_code == code, done.output
    return dict(json.loads(done.stdout)) if done.exit_code == 0 else {"problem": done.output}


@pytest.fixture(scope="module")
def two(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[str, str]]:
    """Two snapshots of one home; the last test of the file discards the second."""
    folder = tmp_path_factory.mktemp("compared")
    with pytest.MonkeyPatch.context() as patch:
        live_in(folder / "home", patch)
        yield build_twice(folder / "pages")


def build_twice(pages: Path) -> tuple[str, str]:
    pages.mkdir()
    for name in RIVERS[:4]:
        (pages / f"{name}.md").write_text(
            f"# {name}\n\nThe {name} flows to the North Sea. Ships go up the {name}.\n"
        )
    hades("ingest", "documents", str(pages))
    hades("standing", "add", "Where does the Oder flow?")
    before = hades("build")["builds"][0]["released"]["snapshot"]
    for name in RIVERS[4:]:
        (pages / f"{name}.md").write_text(f"# {name}\n\nThe {name} meets the Rhine near Mainz.\n")
    (pages / "Elbe.md").write_text("# Elbe\n\nThe Elbe flows through Dresden.\n")
    (pages / "Oder.md").unlink()
    return before, hades("build")["builds"][0]["released"]["snapshot"]


def test_a_comparison_counts_what_differs_and_a_page_shows_it(
    two: tuple[str, str], tmp_path: Path
) -> None:
    found = hades("compare", "--standing", "--page", str(tmp_path / "page.html"))
    assert (found["before"], found["after"]) == two
    assert {change: one["names"] for change, one in found["documents"].items()} == {
        "added": ["Isar.md", "Main.md"],
        "changed": ["Elbe.md"],
        "removed": ["Oder.md"],
    }
    for one in found["relations"].values():
        assert one["after"] - one["before"] == one["added"] - one["removed"]
    assert found["nodes"]["doc_chunks"]["added"] == 3
    topics = found["topics"]
    assert topics["after"] - topics["before"] == len(topics["came"]) - len(topics["went"])
    assert all(one["before"] != one["after"] for one in found["weights"]["most"])
    assert found["standing"]["asked"] == 1
    page = (tmp_path / "page.html").read_text("utf-8")
    assert "Isar.md" in page
    assert f"hades discard {two[1]}" in page
    same = hades("compare", "--before", two[0], "--after", two[0])
    assert (same["weights"]["moved"], same["topics"]["moved"], same["topics"]["came"]) == (0, 0, [])


def test_a_snapshot_is_promoted_or_discarded(two: tuple[str, str]) -> None:
    assert "serves" in hades("discard", two[1], code=1)["problem"]
    assert hades("promote", two[0])["snapshot"] == two[0]
    assert hades("discard", two[1]) == {"discarded": two[1]}
    assert [one["snapshot"] for one in hades("snapshots")["snapshots"]] == [two[0]]
    assert "there is no snapshot" in hades("discard", two[1], code=1)["problem"]
