"""A branch begins as the home is, costs next to nothing, and then lives alone."""

from __future__ import annotations

from pathlib import Path

import pytest

from hades.snapshot.pointer import root_of, served
from tests.command_line import run, run_json
from tests.homes import live_in

QUESTION = "Which port has the service?"


@pytest.fixture
def pages(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A home that was published from two pages."""
    live_in(tmp_path / "home", monkeypatch)
    pages = tmp_path / "pages"
    pages.mkdir()
    (pages / "port.md").write_text("# Port\n\nThe service has the port 8377.\n")
    (pages / "owner.md").write_text("# Owner\n\nAda Holm owns the billing service.\n")
    publish(pages)
    return pages


def publish(pages: Path, *branch: str) -> str:
    run_json(*branch, "ingest", "documents", str(pages))
    return str(run_json(*branch, "publish")["snapshot"])


def ask(*branch: str) -> str:
    answer = run(*branch, "answer", QUESTION)
    assert answer.exit_code == 0, answer.output
    return answer.output


def test_a_branch_is_built_and_asked_alone(pages: Path, tmp_path: Path) -> None:
    home = tmp_path / "home"
    before = served(home)
    assert run_json("branch", "try-ports")["snapshot"] == before
    branch = run_json("branch", "--list")["branches"][0]
    assert not branch["has_own_store"]
    assert branch["own_bytes"] < 5 * 2**20
    assert "8377" in ask("--branch", "try-ports")
    (pages / "port.md").write_text("# Port\n\nThe service has the port 9000.\n")
    after = publish(pages, "--branch", "try-ports")
    assert "9000" in ask("--branch", "try-ports")
    assert "8377" in ask()
    assert served(home) == before
    report = run_json("compare", "--before", before, "--after", "try-ports")
    assert (report["after"], report["documents"]["changed"]["names"]) == (after, ["port.md"])
    run_json("branch", "--drop", "try-ports")
    assert run_json("branch", "--list")["branches"] == []
    assert "8377" in ask()


def test_a_branch_stays_as_it_began_when_the_home_moves_on(pages: Path, tmp_path: Path) -> None:
    run_json("branch", "frozen")
    (pages / "port.md").write_text("# Port\n\nThe service has the port 9000.\n")
    publish(pages)
    run_json("publish", "--prune", "1")
    folder = tmp_path / "home" / "branches" / "frozen"
    assert (folder / "graph.db").exists()
    assert "8377" in ask("--branch", "frozen")
    assert "9000" in ask()
    assert run_json("--branch", "frozen", "publish")["snapshot"] == served(folder)
    assert run_json("--branch", "frozen", "log")["nights"][-1]["snapshot"] == served(folder)


def test_an_unwritten_branch_reads_the_store_of_its_home(pages: Path, tmp_path: Path) -> None:
    run_json("branch", "reader")
    assert run_json("--branch", "reader", "status")["counts"]["documents"] == 2
    assert run_json("--branch", "reader", "standing", "list") == {"questions": []}
    folder = tmp_path / "home" / "branches" / "reader"
    assert not (folder / "graph.db").exists()
    run_json("--branch", "reader", "standing", "add", QUESTION)
    assert (folder / "graph.db").exists()
    assert run_json("standing", "list") == {"questions": []}


def test_forgetting_reaches_every_branch(pages: Path, tmp_path: Path) -> None:
    (pages / "secret.md").write_text("# Zanzibar\n\nQuintus hid the marmalade of Zanzibar here.\n")
    publish(pages)
    run_json("branch", "first")
    run_json("branch", "second")
    run_json("--branch", "second", "standing", "add", QUESTION)
    (pages / "secret.md").unlink()
    certificate = run_json("forget", "secret.md", "--publish")
    assert certificate["branches"] == ["first", "second"]
    paths = [path for path in (tmp_path / "home").rglob("*") if path.is_file()]
    assert [path for path in paths if b"armalade" in path.read_bytes()] == []
    assert "8377" in ask("--branch", "first")


@pytest.mark.parametrize("name", ["Big", "../up", "a b", ""])
def test_a_name_that_is_no_folder_is_refused(pages: Path, name: str) -> None:
    assert run("branch", name).exit_code == 1
    assert run("branch", "--drop", name).exit_code == 1


def test_a_branch_that_is_not_there_is_named(pages: Path, tmp_path: Path) -> None:
    done = run("--branch", "nowhere", "snapshots")
    assert done.exit_code == 1
    assert "there is no branch 'nowhere'" in done.output
    run_json("branch", "here")
    assert run("branch", "here").exit_code == 1
    assert run("--branch", "here", "branch", "inner").exit_code == 1
    assert sorted(path.name for path in root_of(tmp_path / "home").glob(".linking*")) == []


def test_a_backup_is_of_the_home_or_of_one_branch(pages: Path, tmp_path: Path) -> None:
    run_json("branch", "other")
    run_json("backup", str(tmp_path / "safe"))
    assert not (tmp_path / "safe" / "home" / "branches").exists()
    run_json("--branch", "other", "backup", str(tmp_path / "of-branch"))
    run_json("restore", str(tmp_path / "of-branch"), HADES_HOME=str(tmp_path / "restored"))
    assert run_json("status", HADES_HOME=str(tmp_path / "restored"))["counts"]["documents"] == 2
    run_json("restore", str(tmp_path / "safe"), "--force")
    assert run_json("branch", "--list")["branches"] == []
