"""Repositories and files beyond ordinary size cost no more than their bounds, and are reported."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from hades.ingest.sources.git import list_commits, read_commits, read_history
from hades.ingest.sources.material import Material, RejectedInput, RejectReason
from hades.ingest.sources.workspace import WorkspaceSource
from hades.settings.tree import HistorySettings


@pytest.mark.parametrize("count", [3_000, pytest.param(100_000, marks=pytest.mark.soak)])
def test_of_many_commits_only_the_newest_within_the_bound_are_read(tmp_path: Path, count: int) -> None:
    subprocess.run(["git", "init", "-q", str(tmp_path)], check=True)
    lines = []
    for number in range(count):
        text = f"Change {number}"
        lines.append(
            f"commit refs/heads/main\ncommitter Ada <ada@example.org> {1_600_000_000 + number} +0000\n"
            f"data {len(text)}\n{text}\nM 100644 inline file{number % 50}.py\ndata 7\n{number:06}\n\n"
        )
    subprocess.run(["git", "-C", str(tmp_path), "fast-import", "--quiet"], input="".join(lines).encode(), check=True)
    git_dir = tmp_path / ".git"
    commits = read_history(git_dir, "refs/heads/main", max_commits=300)
    ids = list_commits(git_dir, "refs/heads/main", max_commits=300)
    assert [one.id for one in commits] == ids
    assert commits[0].message == f"Change {count - 1}"
    assert len(commits) == 300
    assert [one.id for one in read_commits(git_dir, ids[:5])] == ids[:5]


def test_a_file_of_fifty_megabytes_is_set_aside_and_the_rest_is_read(tmp_path: Path) -> None:
    with (tmp_path / "generated.py").open("wb") as file:
        file.truncate(50 << 20)
    (tmp_path / "small.py").write_text("def f():\n    return 1\n")
    found = list(WorkspaceSource(tmp_path, history=HistorySettings()).read())
    rejected = [one for one in found if isinstance(one, RejectedInput)]
    assert [(one.uri, one.reason) for one in rejected] == [("generated.py", RejectReason.OVERSIZED)]
    assert [one.origin for one in found if isinstance(one, Material)] == ["small.py"]
