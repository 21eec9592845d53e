"""Who may read which document, as the sources say: kept beside the snapshots, so that a change
holds from the next question on and waits for no build.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from pathlib import Path

from hades.errors import HadesError
from hades.files import hold_lock, write_whole
from hades.ports.graph import DocumentFilter
from hades.settings.load import BRANCHES

FILE = "rights.json"
# Names of readers: `hr` is a group, `user:anna` a person. A document without an entry is public.
Readers = tuple[str, ...]
PUBLIC: Readers = ("public",)
NOBODY: Readers = ()
OWNER: Readers = ("*",)  # who asks by this reads all; no reader can be called so
USER = "user:"
_LONGEST = 200
_PLANS = "plans"


class RightsError(HadesError):
    """Rights that cannot be read, or a name that no reader can have."""


def reader_names(names: Iterable[object]) -> Readers:
    """Names as they are compared: in lower case, each once; whoever names `public` means all."""
    cleaned = {" ".join(str(name).split()).casefold() for name in names} - {""}
    for name in cleaned:
        if name in OWNER or len(name) > _LONGEST:
            raise RightsError(
                f"{name[:40]!r} is no name of a reader; write a group such as hr, a person such "
                "as user:anna, or public"
            )

    if PUBLIC[0] in cleaned:
        return PUBLIC

    return tuple(sorted(cleaned))


def asker_of(user: str | None, groups: Sequence[str] = ()) -> Readers:
    """The names that whoever asks reads by, `public` among them."""
    names = reader_names(groups)
    if any(name.startswith(USER) for name in names):
        raise RightsError(
            "a group cannot be called user:...; name the person by itself, as in --as-user anna"
        )

    if user and user.strip():
        person = reader_names([USER + user])
    else:
        person = ()

    return tuple(sorted({*PUBLIC, *names, *person}))


@dataclass(frozen=True, eq=False)
class Rights:
    """The rights at one moment: the readers of every document (`_id`) that is not public."""

    version: str = ""
    readers: Mapping[str, Readers] = field(default_factory=dict)

    def hidden_from(self, asker: Readers) -> list[str]:
        """The documents that whoever asks may not read."""
        return [
            document for document, readers in self.readers.items() if set(asker).isdisjoint(readers)
        ]


_NO_RIGHTS = Rights()


class RightsFile:
    """The file of a home, which its branches and plans share: what they bring into the home has
    rights there. It is read once, and again when it was replaced.
    """

    def __init__(self, home: Path) -> None:
        is_inside = home.parent.name in (BRANCHES, _PLANS)
        self._path = (home.parents[1] if is_inside else home) / FILE
        self._read: tuple[tuple[int, int, int], Rights] | None = None

    def current(self) -> Rights:
        """The rights that hold now; none where no source states any."""
        try:
            status = self._path.stat()
        except FileNotFoundError:
            return _NO_RIGHTS

        mark = status.st_mtime_ns, status.st_ino, status.st_size
        read = self._read
        if read is None or read[0] != mark:
            read = mark, self._load()
            self._read = read

        return read[1]

    def restrict_any(self) -> bool:
        """Whether some document is not for everybody."""
        return bool(self.current().readers)

    def _load(self) -> Rights:
        try:
            content = self._path.read_bytes()
            entries = json.loads(content)["documents"]

            readers = {}
            for document, names in entries.items():
                readers[document] = tuple(names)
        except (OSError, ValueError, TypeError, KeyError, AttributeError) as error:
            raise RightsError(
                f"{self._path} cannot be read ({error}), so nobody can be shown anything; put it "
                "back from a backup, or remove it and read every source again"
            ) from None

        return Rights(hashlib.sha256(content).hexdigest()[:16], readers)

    def record(self, stated: Mapping[str, Readers]) -> bool:
        """Keep what sources state of these documents; whether anything is another than before.

        What is no longer stated of stays, because an older snapshot may show it.
        """
        if stated and not self._differs(stated):
            return False

        with hold_lock(self._path.with_name(f".{FILE}.lock")):
            if not self._differs(stated):
                return False

            readers = dict(self.current().readers)
            for document, names in stated.items():
                if names == PUBLIC:
                    readers.pop(document, None)
                else:
                    readers[document] = names

            write_whole(self._path, json.dumps({"documents": readers}, sort_keys=True))

        return True

    def _differs(self, stated: Mapping[str, Readers]) -> bool:
        known = self.current().readers
        return any(known.get(document, PUBLIC) != names for document, names in stated.items())


@lru_cache
def rights_of(home: Path) -> RightsFile:
    """The file of a home, which all of a process share."""
    return RightsFile(home)


def within_rights(
    rights: RightsFile | None,
    only: DocumentFilter | None,
    asker: Readers,
) -> DocumentFilter | None:
    """A filter limited to what whoever asks may read; unchanged for the owner, where everything is
    public, and where it is limited to some readers already.
    """
    if asker == OWNER or rights is None or not rights.restrict_any():
        return only

    within = (only or DocumentFilter()).within or DocumentFilter()
    if within.readers:
        return only

    return replace(
        only or DocumentFilter(),
        within=replace(within, readers=asker),
    )
