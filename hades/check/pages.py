"""The two states of a repository that are compared, read from git objects alone."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path, PurePosixPath

from hades.errors import HadesError
from hades.ingest.sources.documents import prose_language, why_not_read
from hades.ingest.sources.git import GitError, resolve_commit, run_git

INDEX = "index"  # what `git add` has staged, in the place of a commit
FOLDERS = ("docs", "doc", "documentation")
_BRANCHES = ("origin/HEAD", "origin/main", "origin/master", "main", "master")
_LARGEST = 4 << 20  # bytes of a page
_BLOBS_AT_ONCE = 500


class CheckUsageError(HadesError):
    """What was asked cannot be checked: a name, a file or a folder is not there."""


@dataclass(frozen=True)
class State:
    """The files of a repository at a commit or in the index, and where its documentation is."""

    repository: Path
    commit: str
    blobs: Mapping[str, str]  # path to id of the contents, of the whole repository
    opaque: frozenset[str]  # links of the file system and submodules: what is below is not known
    folder: str  # of the documentation; "" for the whole repository

    def is_page(self, path: str) -> bool:
        """Whether a path lies in the documentation."""
        return PurePosixPath(path).is_relative_to(self.folder)

    @cached_property
    def documents(self) -> dict[str, str]:
        """Contents of the documentation that can be read: path in its folder to id."""
        documents = {}
        for path, blob in self.blobs.items():
            is_hidden = any(part.startswith(".") for part in PurePosixPath(path).parts)
            suffix = PurePosixPath(path).suffix.lower()
            if self.is_page(path) and not is_hidden and not why_not_read(suffix):
                documents[path.removeprefix(f"{self.folder}/")] = blob

        return documents

    @cached_property
    def texts(self) -> dict[str, str]:
        """Pages of prose by path: the documentation, and what stands at the root."""
        paths = []
        for path in self.blobs:
            is_prose = prose_language(path) in ("markdown", "rst")
            if is_prose and (self.is_page(path) or "/" not in path):
                paths.append(path)

        contents = read_blobs(self.repository, [self.blobs[path] for path in paths])
        texts = {}
        for path in sorted(paths):
            content = contents[self.blobs[path]]
            if len(content) <= _LARGEST:
                texts[path] = content.decode("utf-8", "replace").replace("\r\n", "\n")

        return texts

    @cached_property
    def digest(self) -> str:
        """What stands for the contents of the documentation: equal where they are."""
        rows = []
        for path, blob in sorted(self.documents.items()):
            rows.append(f"{path}\0{blob}")

        return hashlib.sha256("\n".join(rows).encode()).hexdigest()

    def export(self, into: Path) -> None:
        """Write the documentation below a folder of its own."""
        contents = read_blobs(self.repository, list(self.documents.values()))
        for path, blob in self.documents.items():
            place = into / path
            place.parent.mkdir(parents=True, exist_ok=True)
            place.write_bytes(contents[blob])

    def read(self, path: str) -> str | None:
        """The text of a file of the repository; None where there is none."""
        blob = self.blobs.get(path)
        if blob is None:
            return None

        return read_blobs(self.repository, [blob])[blob].decode("utf-8", "replace")

    def mentions(self, text: str, *patterns: str) -> bool:
        """Whether a file of the repository contains a text, in whatever case."""
        if self.commit == INDEX:
            where = ("--cached",)
        else:
            where = (self.commit,)

        try:
            run_git(
                self.repository,
                "grep",
                "-q",
                "-i",
                "-F",
                "-e",
                text,
                *where,
                "--",
                *patterns,
            )
        except GitError:
            return False

        return True


def open_states(
    path: Path,
    base: str | None,
    head: str | None,
    folder: str | None,
) -> tuple[State, State]:
    """What the head branched off from, and the head: a commit, or the index where it is `index`."""
    repository = find_repository(path)
    if head == INDEX:
        head_commit = INDEX
    else:
        head_commit = _commit_of(repository, head or "HEAD")

    if head_commit == INDEX:
        tip = _commit_of(repository, "HEAD")
    else:
        tip = head_commit

    base_commit = _base_of(
        repository,
        base,
        tip,
        is_staged=head_commit == INDEX,
    )
    head_files = _list_files(repository, head_commit)
    folder = _folder_of(head_files[0], folder)
    head_state = State(repository, head_commit, *head_files, folder)
    base_state = State(
        repository,
        base_commit,
        *_list_files(repository, base_commit),
        folder,
    )
    return base_state, head_state


def find_repository(path: Path) -> Path:
    """The root of the repository that holds a folder; a bare one is its own root."""
    if not path.is_dir():
        raise CheckUsageError(f"{path} is no folder; expected a git repository or a folder of one")
    if (path / "objects").is_dir() and (path / "HEAD").is_file():  # without a work tree
        return path

    try:
        return Path(os.fsdecode(run_git(path, "rev-parse", "--show-toplevel")).rstrip("\n"))
    except GitError as error:
        raise CheckUsageError(f"{path} is not in a git repository: {error}") from None


def read_blobs(repository: Path, blobs: list[str]) -> dict[str, bytes]:
    """Contents by their ids."""
    contents: dict[str, bytes] = {}
    for first in range(0, len(blobs), _BLOBS_AT_ONCE):
        names = "".join(f"{blob}\n" for blob in blobs[first : first + _BLOBS_AT_ONCE])
        output = run_git(
            repository,
            "cat-file",
            "--batch",
            written=names.encode(),
        )
        place = 0

        while place < len(output):
            end = output.index(b"\n", place)
            blob, kind, *size = output[place:end].decode().split()
            if kind == "missing":
                raise CheckUsageError(
                    f"{repository} lacks the contents {blob}; fetch the whole history "
                    "(`fetch-depth: 0`)"
                )

            place = end + 1 + int(size[0])
            contents[blob] = output[end + 1 : place]
            place += 1

    return contents


def _commit_of(repository: Path, name: str) -> str:
    if name.startswith("-"):
        commit = None
    else:
        commit = resolve_commit(repository, name)

    if commit is None:
        raise CheckUsageError(
            f"{repository} has no commit {name!r}; expected a branch, a tag or a commit that was "
            "fetched (in a GitHub workflow: `fetch-depth: 0`)"
        )

    return commit


def _base_of(
    repository: Path,
    base: str | None,
    tip: str,
    *,
    is_staged: bool,
) -> str:
    """Where the head left the base; without a name the main branch, or the commit before."""
    if base is not None:
        return _fork_point(
            repository,
            _commit_of(repository, base),
            tip,
        )
    if is_staged:
        return tip

    for branch in _BRANCHES:
        commit = resolve_commit(repository, branch)
        if commit is not None:
            fork = _fork_point(repository, commit, tip)
            if fork != tip:
                return fork
            break

    parent = resolve_commit(repository, f"{tip}^")
    if (
        parent is None
        and run_git(
            repository,
            "rev-parse",
            "--is-shallow-repository",
        )
        == b"true\n"
    ):
        raise CheckUsageError(
            f"{repository} lacks the commit before {tip[:10]}, and nothing can be compared; fetch "
            "more of the history (in a GitHub workflow: `fetch-depth: 0`), or name --base"
        )

    return parent or tip


def _fork_point(repository: Path, base: str, tip: str) -> str:
    """The newest commit that both have; the base itself where the history does not reach it."""
    try:
        return run_git(repository, "merge-base", base, tip).decode().strip()
    except GitError:
        return base


def _list_files(
    repository: Path,
    commit: str,
) -> tuple[dict[str, str], frozenset[str]]:
    """Every file of a commit or of the index, and the paths that are none."""
    if commit == INDEX:
        # A hook of `git commit -a` is told of another index.
        output = run_git(
            repository,
            "ls-files",
            "--stage",
            "-z",
            keep="GIT_INDEX_FILE",
        )
    else:
        output = run_git(
            repository,
            "ls-tree",
            "-r",
            "-z",
            "--full-tree",
            commit,
        )

    blobs = {}
    opaque = []
    for row in filter(None, output.split(b"\0")):
        head, _, path = row.partition(b"\t")
        fields = head.decode().split()
        name = path.decode("utf-8", "replace")

        if fields[0].startswith("100"):
            blobs[name] = fields[1] if commit == INDEX else fields[2]
        else:
            opaque.append(name)

    return blobs, frozenset(opaque)


def _folder_of(blobs: Iterable[str], folder: str | None) -> str:
    """The folder of the documentation; a usual name where none is given, else the whole."""
    if folder is not None:
        if folder in ("", "."):
            chosen = ""
        else:
            chosen = PurePosixPath(folder).as_posix().strip("/")

        if chosen and not any(path.startswith(f"{chosen}/") for path in blobs):
            raise CheckUsageError(
                f"the head has no folder {folder!r}; name the folder of the documentation by --docs"
            )

        return chosen

    tops = set()
    for path in blobs:
        if "/" in path:
            tops.add(path.partition("/")[0])

    return next((name for name in FOLDERS if name in tops), "")
