"""A workspace as it was at a commit, read from the repository without a work tree."""

from __future__ import annotations

from collections.abc import Iterator, MutableMapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from threading import Lock

from hades.ingest.source_document import Material, RejectedInput, RejectReason
from hades.ingest.sources.confined import ConfinedPool
from hades.ingest.sources.file_languages import language_of
from hades.ingest.sources.file_material import PARSER, FileReader
from hades.ingest.sources.git_command import BlobReader, GitError, resolve_commit, run_git
from hades.ingest.sources.parallel_reading import in_order, reading_workers
from hades.ingest.sources.reading import MAX_TEXT_BYTES, Unusable, decode, require_plain_name, show
from hades.ingest.sources.walk import SKIPPED_FOLDERS
from schemas.source_kinds import SourceKind

_SUBMODULE, _LINK = "160000", "120000"


@dataclass(frozen=True)
class TreeFile:
    """An entry of a commit's tree; `size` is 0 for a submodule."""

    path: str
    blob: str
    mode: str
    size: int


def list_tree(git_dir: Path, commit: str) -> list[TreeFile]:
    """Every entry of a commit, sorted by path; submodules and symbolic links are among them."""
    listed = run_git(git_dir, "ls-tree", "-r", "-z", "--long", "--full-tree", commit)
    files = []
    for entry in filter(None, listed.split(b"\0")):
        facts, _, path = entry.partition(b"\t")
        mode, _, blob, size = facts.split()
        name = path.decode("utf-8", "surrogateescape")
        files.append(TreeFile(name, blob.decode(), mode.decode(), int(size) if size.isdigit() else 0))
    return sorted(files, key=lambda one: one.path)


class GitTreeSource:
    """The code and documentation of one commit, as `WorkspaceSource` reads them from a folder.

    `parsed` keeps documents by content between commits: what did not change is not parsed again.
    """

    kind = SourceKind.WORKSPACE
    mirrors = True

    def __init__(
        self, git_dir: Path, commit: str = "HEAD", corpus: str = "", parsed: MutableMapping[str, Material] | None = None
    ) -> None:
        self._git_dir = git_dir.resolve()
        found = resolve_commit(self._git_dir, commit)
        if found is None:
            raise GitError(f"{git_dir} has no commit {commit!r}; expected a commit, a branch or a tag of a repository")
        self.commit = found
        self.corpus = corpus or self._git_dir.name
        self.place = str(self._git_dir)
        self._parsed: MutableMapping[str, Material] = {} if parsed is None else parsed
        self._entries = list_tree(self._git_dir, self.commit)
        paths = {one.path for one in self._entries}
        self._reader = FileReader(
            self.corpus, lambda folder: (f"{folder}/__init__.py" if folder else "__init__.py") in paths, self._go_mod()
        )

    def estimate(self) -> int | None:
        """Files that will be read."""
        return sum(1 for _ in self._files())

    def read(self) -> Iterator[Material | RejectedInput]:
        """Files in the order of their paths."""
        blobs, lock = BlobReader(self._git_dir), Lock()
        try:
            with ConfinedPool(PARSER, reading_workers()) as parsers:
                yield from in_order(partial(self._outcome, parsers, blobs, lock), self._files(), reading_workers())
        finally:
            blobs.close()

    def _files(self) -> Iterator[TreeFile]:
        for one in self._entries:
            if not SKIPPED_FOLDERS.isdisjoint(one.path.split("/")[:-1]):
                continue
            if one.mode == _SUBMODULE or (one.mode != _LINK and language_of(one.path) is not None):
                yield one

    def _outcome(
        self, parsers: ConfinedPool, blobs: BlobReader, lock: Lock, file: TreeFile
    ) -> Material | RejectedInput:
        try:
            require_plain_name(file.path)
            key = f"{file.blob} {self._reader.module(file.path)} {file.path}"
            if key not in self._parsed:
                self._parsed[key] = self._reader.material(file.path, _content(file, blobs, lock), parsers)
            return self._parsed[key]
        except Unusable as problem:
            return RejectedInput(SourceKind.WORKSPACE, show(file.path), problem.reason, problem.detail, problem.size)

    def _go_mod(self) -> str:
        file = next((one for one in self._entries if one.path == "go.mod" and one.mode != _LINK), None)
        if file is None:
            return ""
        blobs = BlobReader(self._git_dir)
        try:
            return decode(_content(file, blobs, Lock()))
        except Unusable:
            return ""
        finally:
            blobs.close()


def _content(file: TreeFile, blobs: BlobReader, lock: Lock) -> bytes:
    """The bytes of a file of the tree; one reader serves all threads, so it is locked."""
    if file.mode == _SUBMODULE:
        raise Unusable(RejectReason.UNREADABLE, "a submodule is a repository of its own; ingest it by itself")
    if file.size > MAX_TEXT_BYTES:
        detail = f"{file.size} bytes, the limit is {MAX_TEXT_BYTES}"
        raise Unusable(RejectReason.OVERSIZED, detail, file.size)
    with lock:
        data = blobs.read(file.blob)
    if data is None:
        raise Unusable(RejectReason.UNREADABLE, "the repository does not hold its content, as in a partial clone")
    return data
