"""Trees and history of a repository: exact contents at a commit, bounded commits, nothing of later
ones, no e-mail.
"""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

import pytest

from hades.ingest.sources.documents import DocumentsSource
from hades.ingest.sources.git import (
    GitError,
    blame_sentence,
    check_out,
    find_git_dir,
    list_commits,
    read_commits,
    read_history,
)
from hades.ingest.sources.material import Material
from hades.ingest.sources.workspace import WorkspaceSource
from hades.settings.tree import HistorySettings
from tests.unit.hades.ingest.sources.repositories import Repository

FIRST = "class A:\n    def f(self):\n        return 1\n\n    def g(self):\n        return 2\n"
SECOND = FIRST.replace("return 2", "return 3")


@pytest.fixture
def repository(tmp_path: Path) -> Repository:
    return Repository(tmp_path / "repo")


def test_each_commit_has_its_own_tree_and_unchanged_files_are_parsed_once(
    repository: Repository, tmp_path: Path
) -> None:
    old = repository.commit("one", {"a.py": FIRST, "b.py": "x = 1\n", "gone/d.py": "z = 1\n"})
    new = repository.commit(
        "two", {"a.py": SECOND, "c.py": "y = 1\n", "gone/d.py": None, ".gitignore": "b.py\n"}
    )
    repository.commit("a later one", {"a.py": "x = 2\n"})
    parsed: dict[str, Material] = {}
    texts = {}
    for commit in (old, new):
        check_out(repository.folder / ".git", commit, tmp_path / "tree")
        read = WorkspaceSource(tmp_path / "tree", parsed=parsed).read()
        texts[commit] = {one.origin: one.text for one in read if isinstance(one, Material)}
    assert texts == {
        old: {"a.py": FIRST, "b.py": "x = 1\n", "gone/d.py": "z = 1\n"},
        new: {"a.py": SECOND, "b.py": "x = 1\n", "c.py": "y = 1\n"},  # tracked, whatever is ignored
    }
    assert len(parsed) == 5


def test_an_unknown_commit_says_what_was_expected(repository: Repository, tmp_path: Path) -> None:
    with pytest.raises(GitError, match="expected a commit, a branch or a tag"):
        check_out(repository.folder / ".git", "nope", tmp_path / "tree")


def test_history_has_messages_files_and_definitions_and_no_address(repository: Repository) -> None:
    repository.commit("one", {"a.py": FIRST, "data.csv": "1\n"})
    repository.commit(
        "Fix g\n\nMail bob@example.org about it.\n\nSigned-off-by: Bob <bob@example.org>",
        {"a.py": SECOND, "data.csv": "2\n"},
    )
    newest, oldest = read_history(repository.folder / ".git")
    assert newest.message.startswith("Fix g\n")
    assert (newest.author, newest.at) == ("Ada", datetime(2024, 1, 2, 12, tzinfo=UTC))
    assert "@" not in newest.message
    assert [(one.path, one.status) for one in newest.changes] == [("a.py", "M"), ("data.csv", "M")]
    assert newest.changes[0].names == ("g",)
    assert oldest.changes[0].names == ("A", "f", "g")


def test_history_is_bounded_and_ends_at_its_commit(repository: Repository) -> None:
    ids = [repository.commit(f"c{number}", {"a.py": f"x = {number}\n"}) for number in range(8)]
    git_dir = repository.folder / ".git"
    assert [one.id for one in read_history(git_dir)] == ids[::-1]
    assert [one.id for one in read_history(git_dir, rules=HistorySettings(max_commits=2))] == ids[
        :-3:-1
    ]
    assert [one.id for one in read_history(git_dir, rules=HistorySettings(max_age_days=3))] == ids[
        :-5:-1
    ]
    assert [one.id for one in read_history(git_dir, ids[2])] == ids[2::-1]
    assert list_commits(git_dir, ids[-1], HistorySettings(max_commits=3)) == ids[:-4:-1]
    assert [one.id for one in read_commits(git_dir, ids[:3])] == ids[:3]


def test_renames_merges_and_odd_bytes_are_read(repository: Repository) -> None:
    repository.commit("one", {"a.py": FIRST, "naïve dir/b.py": "x = 1\n"})
    repository.git("checkout", "-q", "-b", "side")
    repository.commit("side", {"naïve dir/b.py": "x = 2\n"})
    repository.git("checkout", "-q", "main")
    repository.git("mv", "a.py", "moved.py")
    repository.commit("move", {})
    repository.git("merge", "-q", "--no-ff", "-m", "merge", "side")
    found = {one.message: one.changes for one in read_history(repository.folder / ".git")}
    assert set(found) == {"one", "side", "move"}
    assert [(one.path, one.status, one.old_path) for one in found["move"]] == [
        ("moved.py", "R", "a.py")
    ]
    assert [one.path for one in found["side"]] == ["naïve dir/b.py"]


def test_a_repository_without_commits_has_no_history(
    repository: Repository, tmp_path: Path
) -> None:
    assert read_history(repository.folder / ".git") == []
    assert find_git_dir(repository.folder) == (repository.folder / ".git").resolve()
    assert find_git_dir(tmp_path) is None


def test_programs_that_a_repository_configures_are_not_run(repository: Repository) -> None:
    repository.commit("one", {"a.py": FIRST, ".gitattributes": "*.py diff=evil\n"})
    repository.commit("two", {"a.py": SECOND})
    witness = repository.folder / "witness"
    repository.git("config", "diff.evil.textconv", f"touch {witness};cat")
    repository.git("config", "diff.external", f"touch {witness}")
    repository.git("config", "core.fsmonitor", f"touch {witness}")
    assert len(read_history(repository.folder / ".git")) == 2
    assert not witness.exists()


def test_a_sentence_is_blamed_on_its_own_commit_beside_later_ones_like_it(
    repository: Repository,
) -> None:
    lines = [f"Note {number}: the account is owned by team{number}." for number in (1, 2, 3)]
    for number in (1, 2, 3):
        repository.commit(f"note {number}", {"notes.md": "\n".join([*lines[:number], ""])})
    page = repository.folder / "notes.md"
    subjects = [commit.message for line in lines if (commit := blame_sentence(page, line))]
    assert subjects == ["note 1", "note 2", "note 3"]


def test_a_file_is_dated_by_the_commit_that_added_it(repository: Repository) -> None:
    repository.commit("add", {"late.md": "# Late\n\nA page."})
    repository.commit("move", {"late.md": None, "moved.md": "# Late\n\nA page."})
    repository.commit("change", {"moved.md": "# Late\n\nA page, changed."})
    found = {
        one.origin: one
        for one in WorkspaceSource(repository.folder, history=HistorySettings()).read()
    }
    added = next(
        one
        for name, one in found.items()
        if name.startswith("commit:") and one.text.startswith("add")
    )
    assert found["moved.md"].created == added.created


def test_a_page_of_a_repository_is_dated_by_the_commit_that_added_it(
    repository: Repository,
) -> None:
    stated = "---\ndate: 2020-05-17\n---\n# Stated\n\nA page that states its date."
    repository.commit("add", {"docs/page.md": "# Page\n\nA page.", "docs/stated.md": stated})
    repository.commit("change", {"docs/page.md": "# Page\n\nA page, changed."})
    (repository.folder / "docs" / "new.md").write_text("# New\n\nNot committed yet.")
    created = {
        page.origin: page.created
        for page in DocumentsSource(repository.folder / "docs").read()
        if isinstance(page, Material)
    }
    assert created["page.md"] == datetime(2024, 1, 1, 12, tzinfo=UTC)
    assert created["stated.md"] == datetime(2020, 5, 17, tzinfo=UTC)
    assert created["new.md"] is None
