"""Two graphs beside each other: what differs, as a document and as a page; then one serves or
goes.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from hades.night.report import last_runs
from hades.ports.services import utc_now
from hades.settings.load import load_settings
from hades.snapshot.pointer import pin
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


def test_a_difference_says_what_is_said_now_and_no_longer(two: tuple[str, str]) -> None:
    found = hades("diff", *two)
    assert (found["before"], found["after"]) == two
    now = {group["name"]: group["statements"] for group in found["said"]["now"]["groups"]}
    assert now["Elbe.md"] == ["The Elbe flows through Dresden."]
    assert set(now) == {"Elbe.md", "Isar.md", "Main.md"}
    gone = {group["name"]: group["statements"] for group in found["said"]["no_longer"]["groups"]}
    assert set(gone) == {"Elbe.md", "Oder.md"}
    assert "# Elbe" not in gone["Elbe.md"]  # which it still says
    only = hades("diff", *two, "--only", "isar")["said"]["now"]["groups"]
    assert [group["name"] for group in only] == ["Isar.md"]


def test_a_difference_lists_relations_by_entity_and_by_topic(two: tuple[str, str]) -> None:
    by_entity = hades("diff", *two, "--by", "entity")["said"]
    names = [group["name"] for group in by_entity["no_longer"]["groups"]]
    assert "Oder" in names
    by_topic = hades("diff", *two, "--by", "topic")["said"]
    for part in ("now", "no_longer"):
        assert by_topic[part]["count"] == by_entity[part]["count"]
        assert all("→" in group["statements"][0] for group in by_topic[part]["groups"])


def test_both_graphs_are_asked_the_questions_of_a_file(
    two: tuple[str, str], tmp_path: Path
) -> None:
    questions = tmp_path / "questions.txt"
    questions.write_text("Where does the Elbe flow?\nWhere does the Weser flow?\n")
    answers = hades("diff", *two, "--questions", str(questions))["standing"]["answers"]
    assert [answer["change"] for answer in answers] == ["changed", "same"]
    assert "North Sea" in answers[0]["before"]
    assert "Dresden" in answers[0]["after"]
    shown = run("diff", *two, "--questions", str(questions)).output
    assert "+ The Elbe flows through Dresden." in shown


def test_a_snapshot_is_named_by_pin_night_day_or_the_beginning_of_its_id(
    two: tuple[str, str],
) -> None:
    home = load_settings().home
    pin(home, "first", two[0])
    night = next(build["build"] for build in last_runs(home) if build["snapshot"] == two[1])
    today = f"{utc_now():%Y-%m-%d}"
    for before, after in ((two[0], two[1][:9]), (two[0][:9], night), ("first", today)):
        compared = hades("compare", "--before", before, "--after", after)
        assert (compared["before"], compared["after"]) == two
    pin(home, "first", None)
    refused = hades("diff", "2000-01-01", "today", code=1)["problem"]
    assert "what served on 2000-01-01 is not kept" in refused


def test_a_snapshot_is_promoted_or_discarded(two: tuple[str, str]) -> None:
    assert "serves" in hades("discard", two[1], code=1)["problem"]
    assert hades("promote", two[0])["snapshot"] == two[0]
    assert hades("discard", two[1]) == {"discarded": two[1]}
    assert [one["snapshot"] for one in hades("snapshots")["snapshots"]] == [two[0]]
    assert "there is no snapshot" in hades("discard", two[1], code=1)["problem"]
