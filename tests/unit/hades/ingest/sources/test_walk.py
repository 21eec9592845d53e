"""Which files a walk finds: git's ignore rules, skipped folders, links, order."""

from __future__ import annotations

import os
import random
import shutil
import subprocess
from pathlib import Path

import pytest

from hades.ingest.sources.files import walk
from hades.ingest.sources.material import RejectReason


def make(root: Path, *paths: str) -> None:
    for path in paths:
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_text("x")


def found(root: Path) -> list[str]:
    return [one.relative for one in walk(str(root)) if ".gitignore" not in one.relative]


def test_order_is_that_of_names_folder_by_folder(tmp_path: Path) -> None:
    make(tmp_path, "b.py", "a/z.py", "a/b/c.py", "c/a.py")
    assert found(tmp_path) == ["a/b/c.py", "a/z.py", "b.py", "c/a.py"]


@pytest.mark.parametrize(
    ("rules", "kept"),
    [
        ("*.log\n", ["a.py", "build/b.py", "d/build/c.py", "d/e.py"]),
        ("build/\n", ["a.py", "d/e.py", "x.log"]),
        ("/build/\n", ["a.py", "d/build/c.py", "d/e.py", "x.log"]),
        ("*\n!*/\n!*.py\n", ["a.py", "build/b.py", "d/build/c.py", "d/e.py"]),
        (
            "build\n!build/b.py\n",
            ["a.py", "d/e.py", "x.log"],
        ),  # what is below an ignored folder stays ignored
        ("d/**/c.py\n# a remark\n\n\\#x\n", ["a.py", "build/b.py", "d/e.py", "x.log"]),
        ("[a-b].py\n", ["d/build/c.py", "d/e.py", "x.log"]),
        ("*\n!*/\n!/a.py\n", ["a.py"]),  # folders are kept, what is in them is not
        ("!\n/\n*a*b*c*d*e*f*g\n", ["a.py", "build/b.py", "d/build/c.py", "d/e.py", "x.log"]),
    ],
)
def test_gitignore_patterns(tmp_path: Path, rules: str, kept: list[str]) -> None:
    make(tmp_path, "a.py", "x.log", "build/b.py", "d/build/c.py", "d/e.py")
    (tmp_path / ".gitignore").write_text(rules)
    assert found(tmp_path) == kept


def test_nested_gitignore_overrides_the_outer_one(tmp_path: Path) -> None:
    make(tmp_path, "a.txt", "d/a.txt", "d/b.txt", "d/e/b.txt")
    (tmp_path / ".gitignore").write_text("*.txt\n")
    (tmp_path / "d/.gitignore").write_text("!a.txt\n")
    (tmp_path / "d/e/.gitignore").write_text("!/b.txt\n")
    assert found(tmp_path) == ["d/a.txt", "d/e/b.txt"]


def test_environments_caches_and_repositories_are_skipped(tmp_path: Path) -> None:
    make(
        tmp_path,
        ".git/x.py",
        "node_modules/m.js",
        "__pycache__/x.py",
        "env/pyvenv.cfg",
        "env/lib/x.py",
        "ok.py",
    )
    assert found(tmp_path) == ["ok.py"]


def test_links_are_never_followed(tmp_path: Path) -> None:
    root = tmp_path / "root"
    make(root, "a.py", "d/b.py")
    make(tmp_path, "outside.py")
    (root / "loop").symlink_to(root)
    (root / "self.py").symlink_to("self.py")
    (root / "dangling.py").symlink_to("nowhere.py")
    (root / "out.py").symlink_to(tmp_path / "outside.py")
    (root / "inner.py").symlink_to(root / "a.py")
    entries = {one.relative: one.problem for one in walk(str(root))}
    assert sorted(entries) == ["a.py", "d/b.py", "dangling.py", "out.py", "self.py"]
    for name in ("dangling.py", "out.py", "self.py"):
        problem = entries[name]
        assert problem is not None
        assert problem.reason is RejectReason.UNREADABLE


def test_names_with_control_characters_are_named_not_read(tmp_path: Path) -> None:
    make(tmp_path, "two\nlines.py", "ok.py")
    problems = {one.relative: one.problem for one in walk(str(tmp_path))}
    assert problems["ok.py"] is None
    problem = problems["two\nlines.py"]
    assert problem is not None
    assert problem.reason is RejectReason.MALFORMED


def test_folders_nested_beyond_the_longest_path_are_reported(tmp_path: Path) -> None:
    here = os.getcwd()
    try:
        os.chdir(tmp_path)
        for _ in range(30):
            os.mkdir("d" * 200)
            os.chdir("d" * 200)
    finally:
        os.chdir(here)
    problems = [one.problem for one in walk(str(tmp_path))]
    assert len(problems) == 1
    assert problems[0] is not None
    assert problems[0].reason is RejectReason.UNREADABLE


@pytest.mark.skipif(shutil.which("git") is None, reason="compares with git, which is not installed")
@pytest.mark.parametrize("seed", range(8))
def test_random_rules_ignore_what_git_ignores(tmp_path: Path, seed: int) -> None:
    chance = random.Random(seed)
    lines = (
        "* !*/ *.py !*.py a/ !a/ /a b/* !b/c **/c c/** a/**/d /b/ !d a/b *.p? [ab] !**/d.py "
        "b/** !b/**/ */c"
    )
    for _ in range(25):
        folders = [chance.choice("abcd") for _ in range(chance.randint(0, 3))]
        path = tmp_path.joinpath(*folders, chance.choice(["a.py", "c.py", "d.py", "x.log", "y"]))
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("x")
    folders_made = sorted(path for path in tmp_path.rglob("*") if path.is_dir())
    for folder in [tmp_path, *chance.sample(folders_made, min(3, len(folders_made)))]:
        rules = chance.choices(lines.split(), k=chance.randint(1, 5))
        (folder / ".gitignore").write_text("\n".join(rules) + "\n")
    subprocess.run(["git", "init", "-q", str(tmp_path)], check=True)
    listed = ["git", "-C", str(tmp_path), "ls-files", "--others", "--exclude-standard", "-z"]
    expected = subprocess.run(listed, check=True, capture_output=True, text=True).stdout.split("\0")
    assert sorted(one.relative for one in walk(str(tmp_path))) == sorted(filter(None, expected))
