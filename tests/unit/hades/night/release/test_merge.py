"""Merging a branch: document by document, conflicts by name, all or nothing."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hades.night.release.branch import document_states
from hades.ports.store import Mode
from hades.wiring import open_store
from tests.command_line import run, run_json
from tests.homes import live_in, settings_of
from tests.patience import examples

PAGES = ("a.md", "b.md", "c.md")


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A home that was published from three pages, and two branches of it."""
    live_in(tmp_path / "home", monkeypatch)
    begin(tmp_path)
    return tmp_path


def begin(place: Path) -> None:
    (place / "pages").mkdir()
    for name in PAGES:
        write(place, name, "first")
    publish(place)
    run_json("branch", "one")
    run_json("branch", "two")


def write(place: Path, name: str, word: str) -> None:
    (place / "pages" / name).write_text(f"# {name}\n\nThe {word} version of page {name}.\n")


def publish(place: Path, *branch: str) -> None:
    run_json(*branch, "ingest", "documents", str(place / "pages"))
    run_json(*branch, "publish")


def texts(place: Path) -> dict[str, str]:
    """The documents of the home by id."""
    with closing(open_store(settings_of(place / "home"), Mode.READ_ONLY)) as store:
        rows = store.scan("documents", columns=["origin", "text"])
        return {row["origin"]: row["text"] for batch in rows for row in batch.to_pylist()}


def states(place: Path) -> dict[str, str]:
    with closing(open_store(settings_of(place / "home"), Mode.READ_ONLY)) as store:
        return document_states(store)


def test_two_branches_merge_where_they_changed_different_documents(place: Path) -> None:
    write(place, "a.md", "second")
    write(place, "d.md", "new")
    publish(place, "--branch", "one")
    write(place, "a.md", "first")
    (place / "pages" / "d.md").unlink()
    (place / "pages" / "b.md").unlink()
    publish(place, "--branch", "two")
    report = run_json("merge", "one")
    assert (report["added"], report["changed"], report["removed"]) == (["d.md"], ["a.md"], [])
    assert run_json("merge", "two")["removed"] == ["b.md"]
    found = texts(place)
    assert found.keys() == {"a.md", "c.md", "d.md"}
    assert "second version" in found["a.md"]
    run_json("publish")
    assert "second version" in run("answer", "Which version of page a.md is there?").output
    again = run_json("merge", "one")
    assert again == {"added": [], "changed": [], "removed": [], "resolved": []}


def test_a_conflict_is_named_and_nothing_is_merged(place: Path) -> None:
    write(place, "a.md", "one's")
    write(place, "b.md", "one's")
    publish(place, "--branch", "one")
    write(place, "a.md", "two's")
    write(place, "b.md", "first")
    publish(place, "--branch", "two")
    run_json("merge", "one")
    before = states(place)
    problem: dict[str, Any] = run_json("merge", "two", code=1)["error"]
    assert problem["type"] == "MergeConflict"
    assert "a.md" in problem["message"]
    assert "b.md" not in problem["message"]
    assert states(place) == before
    assert run_json("merge", "two", "--take", "home")["changed"] == []
    assert states(place) == before
    assert run_json("merge", "two", "--take", "branch")["changed"] == ["a.md"]
    assert "two's" in texts(place)["a.md"]
    assert "one's" in texts(place)["b.md"]


def test_a_branch_that_nobody_wrote_to_merges_as_nothing(place: Path) -> None:
    write(place, "a.md", "second")
    publish(place)
    assert run_json("merge", "one")["changed"] == []
    assert "second" in texts(place)["a.md"]
    assert run("merge", "nowhere").exit_code == 1


WORDS = st.sampled_from(["first", "second", "third", None])
SIDES = st.fixed_dictionaries(dict.fromkeys(PAGES, WORDS))


@pytest.mark.slow
@settings(max_examples=examples(3))
@given(home=SIDES, branch=SIDES)
def test_a_merge_is_the_three_way_merge_of_each_page(
    tmp_path_factory: pytest.TempPathFactory,
    home: dict[str, str | None],
    branch: dict[str, str | None],
) -> None:
    place = tmp_path_factory.mktemp("merge")
    with pytest.MonkeyPatch.context() as patch:
        live_in(place / "home", patch)
        begin(place)
        for side, words in ((("--branch", "one"), branch), ((), home)):
            for name, word in words.items():
                (place / "pages" / name).unlink(missing_ok=True)
                if word is not None:
                    write(place, name, word)
            publish(place, *side)
        clash = [
            name
            for name in PAGES
            if "first" not in (home[name], branch[name]) and home[name] != branch[name]
        ]
        done = run("merge", "one", "--json")
        assert done.exit_code == bool(clash), done.output
        merged = {
            name: branch[name] if home[name] == "first" and not clash else home[name]
            for name in PAGES
        }
        found = texts(place)
    expected = {name for name, word in merged.items() if word is not None}
    assert found.keys() == expected
    assert all(f"The {merged[name]} version" in found[name] for name in expected)
