"""Trees and commits by the git command: no network, prompt or hooks, no programs that a
repository's settings name.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import IO

from hades.ingest.parsers.languages import CODE_SUFFIXES
from hades.ingest.sources.files import SourceError
from hades.settings.load import child_environment
from hades.settings.tree import HistorySettings

_SECONDS = 120.0
_SAFE = (
    "-c",
    "protocol.allow=never",
    "-c",
    "core.hooksPath=/dev/null",
    "-c",
    "core.fsmonitor=false",
    "-c",
    "safe.directory=*",
    "-c",
    "core.quotePath=false",
    "-c",
    "diff.renameLimit=200",
    "--no-replace-objects",
)
_ENVIRONMENT = {
    "GIT_TERMINAL_PROMPT": "0",
    "GIT_NO_LAZY_FETCH": "1",
    "GIT_OPTIONAL_LOCKS": "0",
    "GIT_CONFIG_NOSYSTEM": "1",
    "GIT_CONFIG_GLOBAL": os.devnull,
    "LC_ALL": "C",
}


class GitError(SourceError):
    """The git command failed or is missing."""


def find_git_dir(folder: Path) -> Path | None:
    """The repository whose root is this folder, also for linked work trees; None where there is
    none or no git.
    """
    if not (folder / ".git").exists() or shutil.which("git") is None:
        return None

    try:
        output = run_git(
            folder / ".git" if (folder / ".git").is_dir() else folder,
            "rev-parse",
            "--absolute-git-dir",
        )
    except GitError:
        return None

    return Path(os.fsdecode(output).strip())


def resolve_commit(git_dir: Path, name: str = "HEAD") -> str | None:
    """The id of a commit; None when the name means none, as in a repository without commits."""
    try:
        return (
            run_git(
                git_dir,
                "rev-parse",
                "--verify",
                "--quiet",
                f"{name}^{{commit}}",
            )
            .decode()
            .strip()
        )
    except GitError:
        return None


def run_git(
    git_dir: Path,
    *arguments: str,
    written: bytes = b"",
    keep: str = "",
) -> bytes:
    """What a git command prints that reads `written`; of git's variables only `keep` counts."""
    try:
        process = subprocess.run(
            _command(git_dir, arguments),
            capture_output=True,
            check=False,
            env=_environment(keep),
            input=written,
            timeout=_SECONDS,
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise GitError(f"git {arguments[0]} in {git_dir} did not run: {error}") from error

    if process.returncode:
        message = process.stderr.decode("utf-8", "replace").strip().partition("\n")[0][:200]
        raise GitError(f"git {arguments[0]} in {git_dir} failed: {message}; expected a repository")

    return process.stdout


@contextmanager
def stream_git(git_dir: Path, *arguments: str) -> Iterator[IO[bytes]]:
    """The output of a git command while it runs; a command that fails or is left early raises
    nothing by itself.
    """
    child = subprocess.Popen(
        _command(git_dir, arguments),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        env=_environment(),
    )
    assert child.stdout is not None

    try:
        yield child.stdout
    finally:
        child.stdout.close()
        child.kill()
        child.wait()


def _command(git_dir: Path, arguments: tuple[str, ...]) -> list[str]:
    is_bare = (git_dir / "objects").is_dir() and (git_dir / "HEAD").exists()
    if is_bare or (git_dir / "commondir").exists():
        option = "--git-dir"
    else:
        option = "-C"

    return ["git", *_SAFE, option, os.fspath(git_dir), *arguments]


def _environment(keep: str = "") -> dict[str, str]:
    return {
        **child_environment(without="GIT_", keep=keep),
        **_ENVIRONMENT,
    }


def check_out(git_dir: Path, commit: str, tree: Path) -> None:
    """Bring a folder to a commit of a repository, which lends its objects; what it has of the
    commit stays.
    """
    git_dir = git_dir.resolve()
    commit_id = resolve_commit(git_dir, commit)

    if commit_id is None:
        raise GitError(
            f"{git_dir} has no commit {commit!r}; expected a commit, a branch or a tag of a "
            "repository"
        )

    if not tree.exists():
        paths = run_git(
            git_dir,
            "rev-parse",
            "--git-path",
            "objects",
            "--git-path",
            "shallow",
        )
        objects, shallow = (git_dir / line for line in os.fsdecode(paths).splitlines())
        _borrow_objects(objects, shallow, tree)

    run_git(
        tree,
        "reset",
        "--quiet",
        "--hard",
        commit_id,
    )


def check_out_past(
    folder: Path,
    moment: datetime,
    into: Path,
) -> Path | None:
    """The folder as its repository held it at a moment, written below `into`; None where no
    repository knows it.

    Commits count along the first parents, by the time they were made; before the first of them the
    folder is empty.
    """
    places = ("--show-toplevel", "--git-path", "objects", "--git-path", "shallow")
    last_commit = ("--max-count=1", "HEAD", "--", ".")

    try:
        if shutil.which("git") is None or not run_git(folder, "rev-list", *last_commit):
            return None
        paths = run_git(folder, "rev-parse", *places)
    except GitError:
        return None

    root, objects, shallow = (folder / line for line in os.fsdecode(paths).splitlines())
    tree = into / root.name
    _borrow_objects(objects, shallow, tree)
    newest = ("--first-parent", "--max-count=1", f"--before={moment.isoformat()}", "HEAD")

    if commit := run_git(folder, "rev-list", *newest).decode().strip():
        run_git(tree, "update-ref", "HEAD", commit)
        run_git(tree, "reset", "--quiet", "--hard")

    past = tree / folder.resolve().relative_to(root.resolve())
    past.mkdir(parents=True, exist_ok=True)
    return past


def _borrow_objects(
    objects: Path,
    shallow: Path,
    tree: Path,
) -> None:
    """A repository without commits that reads the objects of another one."""
    tree.mkdir(parents=True)
    run_git(tree, "init", "--quiet")
    (tree / ".git" / "objects" / "info" / "alternates").write_text(
        f"{objects.resolve()}\n",
        "utf-8",
    )

    if shallow.is_file():
        shutil.copyfile(shallow, tree / ".git" / "shallow")


# Commits of a repository, newest first: message, date, author's name, and the files and definitions
# changed. Two readings of `git log`: `--raw` names files without reading contents, so it also works
# in partial clones; `-p -U0` over code files gives changed lines, which name definitions. Contents
# that are missing only cost those names. No e-mail address is read.
USUAL = HistorySettings()
MAX_MESSAGE_CHARS = 8_000
MAX_FILES = 200  # a commit that touches more is a mass edit: its lines are not read
_IDS_PER_CALL = 1_000
_MAX_PATCH_LINE = 400
# Of all patches together; older commits are then known by their files only.
_MAX_PATCH_BYTES = 64 << 20
_MARK = "\x02"  # begins a commit; no message and no path holds it
_FORMAT = f"--format={_MARK}%H%x00%ct%x00%an%x00%B%x00"
_DIFF = (
    "--no-color",
    "--no-ext-diff",
    "--no-textconv",
    "--find-renames=100%",
    "--diff-filter=ACDMRT",
)
_E_MAIL = re.compile(r"[\w.+-]+@[\w-]+\.[\w.-]+")
_TRAILER = re.compile(
    r"^(?:signed-off-by|co-authored-by|reviewed-by|acked-by|tested-by|cc):.*$",
    re.I | re.M,
)
# The name that a line defines, in the languages that are parsed.
_DEFINED = re.compile(
    rb"^\s*(?:(?:export|default|public|private|protected|static|abstract|final|async"
    rb"|pub(?:\(\w+\))?|inline|virtual)\s+)*"
    rb"(?:def|class|func|fn|function|interface|struct|enum|trait"
    rb"|module)\s+(?:\([^)]*\)\s*)?(?:self\.)?([A-Za-z_]\w*)"
)
# Drivers that make git show the enclosing definition after `@@`.
_ATTRIBUTES = (
    "*.py diff=python\n*.pyi diff=python\n*.java diff=java\n*.go diff=golang\n*.rs diff=rust\n*.rb "
    "diff=ruby\n"
    "*.c diff=cpp\n*.cc diff=cpp\n*.cpp diff=cpp\n*.h diff=cpp\n*.hpp diff=cpp\n"
)


@dataclass(frozen=True)
class FileChange:
    """A file that a commit touched; `old_path` is set where it was renamed, `names` are definitions
    that changed.
    """

    path: str
    status: str
    old_path: str = ""
    names: tuple[str, ...] = ()


@dataclass(frozen=True)
class Commit:
    """One commit. `message` has no e-mail address and no trailers that only name people."""

    id: str
    at: datetime
    author: str
    message: str
    changes: tuple[FileChange, ...] = ()


def read_history(
    git_dir: Path,
    commit: str = "HEAD",
    rules: HistorySettings = USUAL,
) -> list[Commit]:
    """Commits that `commit` holds, newest first, merges left out.

    Nothing later than `commit` is read. A repository without commits gives none.
    """
    newest = resolve_commit(git_dir, commit)
    if newest is None or rules.max_commits < 1:
        return []

    selection = [*_bounds(git_dir, newest, rules), newest]
    commits = list(_read_commits(git_dir, selection, rules.keep_emails))
    read_ids = {known.id for known in commits if len(known.changes) <= MAX_FILES}
    names = _read_names(git_dir, selection, read_ids)

    for row, known in enumerate(commits):
        of_file = names.get(known.id, {})
        changes = [_with_names(change, of_file.get(change.path, ())) for change in known.changes]
        commits[row] = replace(known, changes=tuple(changes))

    return commits


def _with_names(change: FileChange, names: Iterable[str]) -> FileChange:
    return replace(change, names=tuple(dict.fromkeys(names)))


def list_commits(
    git_dir: Path,
    commit: str,
    rules: HistorySettings = USUAL,
) -> list[str]:
    """The ids of the commits that `read_history` reads, newest first."""
    return (
        run_git(
            git_dir,
            "rev-list",
            *_bounds(git_dir, commit, rules),
            commit,
        )
        .decode()
        .split()
    )


def read_commits(git_dir: Path, ids: Sequence[str]) -> Iterator[Commit]:
    """These commits with the files that they touched, in the order given; no content is read."""
    for start in range(0, len(ids), _IDS_PER_CALL):
        part = ids[start : start + _IDS_PER_CALL]
        yield from _read_commits(
            git_dir,
            ["--no-walk=unsorted", *part],
            keep_emails=False,
        )


def name_as_newest(commits: Iterable[Commit]) -> Iterator[tuple[Commit, tuple[str, ...]]]:
    """Each commit, newest first, with the paths that its files have in the newest one: renames are
    followed.
    """
    names: dict[str, str] = {}
    for commit in commits:
        yield commit, tuple(names.get(change.path, change.path) for change in commit.changes)
        for change in commit.changes:
            if change.status == "R":
                names[change.old_path] = names.get(change.path, change.path)


def read_dates_added(folder: Path) -> dict[str, datetime]:
    """When the files below a folder were committed first, by their paths in the folder; empty where
    no repository holds it.
    """
    for root in (folder, *folder.parents):
        if (git_dir := find_git_dir(root)) is None:
            continue

        newest = resolve_commit(git_dir)
        if newest is None:
            break

        selection = [*_bounds(git_dir, newest, USUAL), newest]
        commits = _read_commits(git_dir, selection, keep_emails=False)
        dates = dates_added(name_as_newest(commits))

        if root == folder:
            inside = ""
        else:
            inside = f"{folder.relative_to(root).as_posix()}/"

        paths = []
        for path in dates:
            if path.startswith(inside):
                paths.append(path)

        return {path.removeprefix(inside): dates[path] for path in paths}

    return {}


def dates_added(history: Iterable[tuple[Commit, tuple[str, ...]]]) -> dict[str, datetime]:
    """When each file was committed first, by its newest path; commits come newest first, as from
    `name_as_newest`.
    """
    dates: dict[str, datetime] = {}
    for commit, paths in history:
        for change, path in zip(commit.changes, paths, strict=True):
            if change.status == "A":
                dates[path] = commit.at

    return dates


def _bounds(
    git_dir: Path,
    newest: str,
    rules: HistorySettings,
) -> list[str]:
    seconds = run_git(
        git_dir,
        "log",
        "--max-count=1",
        "--format=%ct",
        newest,
    )
    oldest = datetime.fromtimestamp(int(seconds), UTC) - timedelta(days=rules.max_age_days)
    return [f"--max-count={rules.max_commits}", "--no-merges", f"--since={oldest.isoformat()}"]


def _read_commits(
    git_dir: Path,
    selection: Sequence[str],
    keep_emails: bool,
) -> Iterator[Commit]:
    arguments = ("log", "-z", "--raw", "--abbrev=40", *_DIFF, _FORMAT, *selection, "--")
    with stream_git(git_dir, *arguments) as output:
        unfinished = b""
        while block := output.read(1 << 20):
            *whole, unfinished = (unfinished + block).split(_MARK.encode())
            yield from (_commit(record, keep_emails) for record in whole if record.strip(b"\0\n"))

        if unfinished.strip(b"\0\n"):
            yield _commit(unfinished, keep_emails)


def _commit(record: bytes, keep_emails: bool) -> Commit:
    identifier, seconds, author, message, *raw = record.decode("utf-8", "replace").split("\0")
    text = message[: 2 * MAX_MESSAGE_CHARS]
    if not keep_emails:
        text = _E_MAIL.sub("", _TRAILER.sub("", text))
        author = _E_MAIL.sub("", author)

    text = re.sub(r"\n{3,}", "\n\n", text.replace("<>", "")).strip()[:MAX_MESSAGE_CHARS]
    return Commit(
        identifier.strip(),
        datetime.fromtimestamp(int(seconds), UTC),
        author.replace("<>", "").strip(),
        text,
        tuple(_changes(raw)),
    )


def _changes(raw: Sequence[str]) -> Iterator[FileChange]:
    """`:mode mode blob blob status`, then one path, or two where the status is a rename or a
    copy.
    """
    parts = iter(raw)
    for part in parts:
        facts = part.strip("\n")
        if not facts.startswith(":"):
            continue

        status = facts.split()[-1][:1]
        path = next(parts, "")
        if status in "RC":
            yield FileChange(next(parts, ""), status, path)
        elif "160000" not in facts.split()[:2]:  # a submodule
            yield FileChange(path, status)


def _read_names(
    git_dir: Path,
    selection: Sequence[str],
    commit_ids: set[str],
) -> dict[str, dict[str, list[str]]]:
    """Names of changed definitions by commit and path; what git could not read is left out."""
    with TemporaryDirectory() as folder:
        attributes = Path(folder) / "attributes"
        attributes.write_text(_ATTRIBUTES)
        settings = ("-c", f"core.attributesFile={attributes}")
        patterns = [f"*{suffix}" for suffix in sorted(CODE_SUFFIXES)]
        arguments = ("log", "-p", "-U0", *_DIFF, f"--format={_MARK}%H", *selection)

        with stream_git(
            git_dir,
            *settings,
            *arguments,
            "--",
            *patterns,
        ) as output:
            return _parse_patches(output, commit_ids)


def _parse_patches(
    output: IO[bytes],
    commit_ids: set[str],
) -> dict[str, dict[str, list[str]]]:
    names_of: dict[str, dict[str, list[str]]] = {}
    mark = _MARK.encode()
    files: dict[str, list[str]] | None = None
    names: list[str] | None = None

    n_bytes = 0
    for line in output:
        first = line[:1]
        n_bytes += len(line)
        if first == mark:
            if n_bytes > _MAX_PATCH_BYTES:
                break

            commit = line[1:].decode().strip()
            if commit in commit_ids:
                files = names_of.setdefault(commit, {})
            else:
                files = None

            names = None
        elif files is None:
            continue
        elif line.startswith(b"+++ "):
            path = line[4:].decode("utf-8", "replace").rstrip("\n\t")
            if path != "/dev/null":
                names = files.setdefault(path.removeprefix("b/"), [])
            else:
                names = None
        elif names is not None:
            code = b""
            if first == b"@":  # the definition around the changed lines
                code = line.split(b"@@", 2)[-1][:_MAX_PATCH_LINE]
            elif first in b"+-" and len(line) < _MAX_PATCH_LINE:
                code = line[1:]

            if defined := _DEFINED.match(code):
                names.append(defined[1].decode("utf-8", "replace"))

    return names_of


# Which commit wrote a sentence: `git blame` of the lines that hold most of its words.
_LEAST_SHARE = 0.8  # of a line's words that the sentence must have
_LINES_APART = 4  # of one sentence, from the line that holds most of it
_UNCOMMITTED = "0" * 40


@dataclass(frozen=True)
class BlamedLine:
    """A line of a file with the commit that wrote it."""

    number: int
    commit: str
    seconds: int
    text: str


def blame_sentence(path: Path, sentence: str) -> Commit | None:
    """The newest commit that wrote a part of a sentence of a file, or that removed a file that is
    gone; None where no repository knows it. A commit without an id is still to be made.
    """
    try:
        if not path.is_file():
            options = ("log", "-z", "--max-count=1", "--diff-filter=D", _FORMAT)
            record = run_git(path.parent, *options, "--", path.name)
            if record:
                return _commit(record.lstrip(_MARK.encode()), keep_emails=False)

            return None

        output = run_git(
            path.parent,
            "blame",
            "--line-porcelain",
            "--",
            path.name,
        )
        lines = _lines_of_sentence(list(_blamed(output)), sentence)
        if not lines:
            return None

        newest = max(lines, key=lambda line: line.seconds)
        if newest.commit == _UNCOMMITTED:
            return Commit(
                "",
                datetime.fromtimestamp(newest.seconds, UTC),
                "",
                "not committed yet",
            )

        return next(
            _read_commits(
                path.parent,
                ["--no-walk", newest.commit],
                keep_emails=False,
            )
        )
    except GitError:
        return None


def _blamed(output: bytes) -> Iterator[BlamedLine]:
    commit = ""
    seconds = 0

    number = 0
    for line in output.decode("utf-8", "replace").split("\n"):
        if line.startswith("\t"):
            number += 1
            yield BlamedLine(number, commit, seconds, line[1:])
        elif re.match(r"[0-9a-f]{40} ", line):
            commit = line[:40]
        elif line.startswith("committer-time "):
            seconds = int(line.split()[1])


def _lines_of_sentence(lines: Sequence[BlamedLine], sentence: str) -> list[BlamedLine]:
    """The lines around the one that holds most words of a sentence, as far as they are of it."""
    words = set(re.findall(r"\w+", sentence.casefold()))

    shared: dict[int, int] = {}
    for line in lines:
        line_words = set(re.findall(r"\w+", line.text.casefold()))
        common = len(line_words & words)
        is_part = common >= _LEAST_SHARE * len(line_words) or common >= _LEAST_SHARE * len(words)

        if common and is_part:
            shared[line.number] = common

    if not shared:
        return []

    best = max(shared, key=lambda number: (shared[number], -number))
    reach = 1 if shared[best] == len(words) else _LINES_APART  # it may stand in one line
    return [line for line in lines if line.number in shared and abs(line.number - best) < reach]


_PAGES = ("*.md", "*.markdown", "*.rst", "*.txt", "*.adoc")
_MAX_PAGE_BYTES = 16 << 20  # of all versions together
_HUNK = re.compile(r"^@@ .*\n", re.M)
_PATHS = re.compile(r"^(?:---|\+\+\+) (.+?)\t?$", re.M)
_RENAMED = re.compile(r"^rename from (.+)\nrename to (.+)$", re.M)


@dataclass(frozen=True)
class PageVersion:
    """The lines that a commit took from a page of a folder, and those that it brought into it."""

    name: str
    at: datetime
    commit: str
    gone: str
    came: str


def first_commit(folder: Path) -> datetime | None:
    """When the repository of a folder began; None where there is none."""
    try:
        seconds = run_git(
            folder,
            "log",
            "--max-parents=0",
            "--format=%ct",
            "HEAD",
        ).split()
    except GitError:
        return None

    if seconds:
        return datetime.fromtimestamp(min(map(int, seconds)), UTC)

    return None


def read_pages(
    folder: Path,
    start: datetime | None,
    end: datetime,
) -> Iterator[PageVersion]:
    """What commits after `start` until `end` made of the pages below a folder, newest first and
    without the one that the repository began with; none where no repository knows it. A page has
    its newest name throughout.
    """
    if start is None:
        moments = []
    else:
        moments = [f"--since={start.isoformat()}"]

    arguments = ("--no-merges", "--min-parents=1", "-p", "-U0", "--relative")
    whole = ("log", *arguments, "--no-prefix", *_DIFF[:3], "-M", f"--format={_MARK}%H %ct")
    pages = (*moments, f"--until={end.isoformat()}", "HEAD", "--", *_PAGES)
    names: dict[str, str] = {}

    with stream_git(folder, *whole, *pages) as output:
        unfinished = b""
        size = 0
        while size < _MAX_PAGE_BYTES and (block := output.read(1 << 18)):
            size += len(block)
            *commits, unfinished = (unfinished + block).split(_MARK.encode())
            for commit in commits:
                yield from _page_versions(commit.decode("utf-8", "replace"), names)

        yield from _page_versions(unfinished.decode("utf-8", "replace"), names)


def _page_versions(record: str, names: dict[str, str]) -> Iterator[PageVersion]:
    """The pages of a commit by their newest names, which `names` has of those that got another."""
    header, *patches = record.split("\ndiff --git ")
    if not patches:
        return

    commit, seconds = header.split()[:2]
    at = datetime.fromtimestamp(int(seconds), UTC)
    for patch in patches:
        facts, *hunks = _HUNK.split(patch)
        for old, new in _RENAMED.findall(facts):
            names[old] = names.get(new, new)

        paths = []
        for path in _PATHS.findall(facts):
            if path != "/dev/null":
                paths.append(path)

        lines = "".join(hunks).split("\n")
        if hunks and paths:
            name = names.get(paths[-1], paths[-1])
            gone, came = (
                "\n".join(line[1:] for line in lines if line.startswith(sign)) for sign in "-+"
            )
            yield PageVersion(name, at, commit, gone, came)
