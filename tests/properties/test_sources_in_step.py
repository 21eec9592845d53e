"""Whatever happens at a source, the copies are what it held at the last sync that succeeded."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from hades.errors import HadesError
from hades.ingest.sources.remote import remotes
from hades.ingest.sources.remote.connector import Connector, Kind, Place, Reading, RemoteDocument
from schemas.sources import RemoteSource

NAMES = st.sampled_from(["a.md", "a", "a/b.md", "c d.txt", "C D.txt", ".git/e.md", "a/b", "f?.md"])
STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("write"), NAMES, st.binary(max_size=3)),
        st.tuples(st.just("delete"), NAMES, st.just(b"")),
        st.tuples(st.sampled_from(["sync", "cut", "fail"]), st.just(""), st.just(b"")),
    ),
    max_size=25,
)


@dataclass
class Elsewhere:
    """A source in memory; a version counts the writes of a name. It may fail after some reads."""

    files: dict[str, tuple[int, bytes]] = field(default_factory=dict)
    reads_left: int | None = None
    lists: bool = True
    columns: tuple[str, ...] = ()

    def list_documents(self) -> Iterator[RemoteDocument]:
        for name, (version, _) in self.files.items():
            yield RemoteDocument(id=name, name=name, version=str(version), address=name)
        if not self.lists:
            raise HadesError("the listing was cut")

    def read_documents(self, documents: Any, _versions: Any) -> Iterator[Reading]:
        for document in documents:
            if self.reads_left == 0:
                raise HadesError("the connection was cut")
            if self.reads_left is not None:
                self.reads_left -= 1
            yield Reading(document, self.files[document.id][1])

    def close(self) -> None:
        """Nothing is open."""


@given(STEPS)
def test_copies_are_those_of_the_last_sync_that_succeeded(
    steps: list[tuple[str, str, bytes]],
) -> None:
    there = Elsewhere()

    def open_there(_place: Place) -> Connector:
        return there

    kind = Kind("files", "", ("include", "exclude"), open_there)
    kind_of, remotes.check_options = remotes.check_options, lambda source: kind
    try:
        with TemporaryDirectory() as folder:
            _follow(steps, there, remotes.RemoteSources(Path(folder), trusts_all=True))
    finally:
        remotes.check_options = kind_of


def _follow(
    steps: list[tuple[str, str, bytes]], there: Elsewhere, home: remotes.RemoteSources
) -> None:
    home.add("there", RemoteSource(url="s3://there", min_documents=0, max_gone=1.0))
    expected: dict[str, bytes] = {}
    for count, (step, name, content) in enumerate(steps):
        if step == "write":
            there.files[name] = (count, content)
        elif step == "delete":
            there.files.pop(name, None)
        else:
            there.reads_left = 1 if step == "cut" else None
            there.lists = step != "fail"
            report = home.sync("there")
            if not report.problem:
                expected = {name: content for name, (_, content) in there.files.items()}
            copies = home.ledger("there").copies()
            root = home.mirror("there")
            assert {
                copy.id: (root / copy.path).read_bytes() for copy in copies.values()
            } == expected
            assert len(list(filter(Path.is_file, root.rglob("*")))) == len(expected)
            assert home.ledger("there").state().documents == len(expected)
