"""The remote sources of a home: those that were added and those of hades.yaml, each with a mirror,
which is read like any folder of documents, and a ledger.
"""

from __future__ import annotations

import re
import shutil
import time
from collections.abc import Callable, Mapping
from contextlib import closing
from dataclasses import replace
from datetime import datetime
from importlib import import_module
from pathlib import Path
from urllib.parse import urlsplit

from hades.errors import HadesError, SettingsError
from hades.files import FileLock
from hades.ingest.sources.remote.connector import Kind, Place
from hades.ingest.sources.remote.ledger import (
    LEDGERS,
    MIRRORS,
    STAGED,
    Ledger,
    SyncState,
    ledgers,
    state_facts,
    sync_states,
)
from hades.ingest.sources.remote.sync import Sync, SyncReport
from hades.ports.services import ProgressReport, silent, utc_now
from hades.settings.load import fill_placeholders, mask_secrets
from hades.settings.tree import SOURCE_NAME
from hades.settings.trust import fingerprint_of, set_trust, trusted_folders
from schemas.sources import RemoteSource

_MODULES = {
    "files": "files",
    "web": "website",
    "sql": "sql",
    "dlt": "dlt_rows",
    "imap": "mailbox",
}
_DIALECTS = frozenset({"sql", "sqlite", "postgresql", "mysql", "mariadb", "oracle", "mssql"})
_LONGEST_PROBLEM = 600


def kind_of(url: str) -> Kind:
    """The kind that reads an address."""
    scheme, colon, place = url.partition(":")
    name = "files"

    if scheme == "dlt":
        name = "dlt"
    elif scheme.partition("+")[0] in _DIALECTS:
        name = "sql"
    elif scheme in ("http", "https"):
        name = "web"
    elif scheme in ("imap", "imaps"):
        name = "imap"
    elif not colon or not place.startswith(("//", ":")):
        raise SettingsError(
            f"{mask_secrets(url, url)!r} is no address of a source; give one such as "
            "https://example.org, s3://bucket/folder, file:///folder, postgresql://host/database, "
            "imaps://user@host/INBOX or dlt:package.module:resource"
        )

    return load_kind(name)


def load_kind(name: str) -> Kind:
    """What a kind declares of itself."""
    kind: Kind = import_module(f"{__package__}.{_MODULES[name]}").KIND
    return kind


def check_options(source: RemoteSource) -> Kind:
    """The kind of a source; raises where the source sets what its kind does not read."""
    kind = kind_of(source.url)
    for name in sorted(_options_of_kinds().difference(kind.options)):
        if getattr(source, name) != RemoteSource.model_fields[name].default:
            raise SettingsError(
                f"a source of kind {kind.name} reads no {name}; it reads {', '.join(kind.options)}"
            )

    return kind


def _options_of_kinds() -> set[str]:
    names: set[str] = set()
    for name in _MODULES:
        names.update(load_kind(name).options)

    return names


def default_name(url: str) -> str:
    """A name for an address: its host and the end of its path."""
    parts = urlsplit(url)
    host = parts.netloc.rpartition("@")[2]
    text = f"{host}-{parts.path.strip('/').rpartition('/')[2]}"
    name = re.sub(r"[^a-z0-9]+", "-", text.lower()).strip("-")[:40].strip("-")
    return name or "source"


def whole_address(url: str) -> str:
    """The address for a process that runs elsewhere: a path of this folder from the root."""
    if url.startswith("sqlite:///") and not url.startswith("sqlite:////"):
        return f"sqlite:///{Path(url.removeprefix('sqlite:///')).resolve()}"
    if "://" not in url and Path(url).exists():
        return Path(url).resolve().as_uri()

    return url


class RemoteSources:
    """The remote sources of a home."""

    def __init__(
        self,
        home: Path,
        configured: Mapping[str, RemoteSource] | None = None,
        *,
        configuration: Path | None = None,
        trusts_all: bool = False,
        now: Callable[[], datetime] = utc_now,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        """`configured` are those of hades.yaml, whose folder is trusted already; what was added is
        trusted where the person who added it is the one who syncs.
        """
        self._home = home
        self._folder = home / "sources"
        self._configured = configured or {}
        self._configuration = configuration
        self._trusts_all = trusts_all
        self._now = now
        self._sleep = sleep

    def names(self) -> list[str]:
        """Every source, by name."""
        return sorted({*self._configured, *(ledger.name for ledger in ledgers(self._home))})

    def mirror(self, name: str) -> Path:
        """The folder with the copies of a source."""
        return self._folder / MIRRORS / name

    def ledger(self, name: str) -> Ledger:
        """What is known of a source."""
        return Ledger(self._folder / LEDGERS / f"{name}.db")

    def require(self, name: str) -> Ledger:
        """The ledger of a source that there is."""
        if name not in self.names():
            known = ", ".join(self.names()) or "none"
            raise SettingsError(f"there is no source {name!r}; sources: {known}")

        return self.ledger(name)

    def source(self, name: str) -> RemoteSource:
        """The description of a source."""
        if name in self._configured:
            return self._configured[name]

        described = self.require(name).facts().get("source")
        if described is None:
            raise SettingsError(
                f"{name} no longer stands in hades.yaml; put it back, or run `hades sources "
                f"remove {name}` to forget its documents"
            )

        fingerprint = fingerprint_of(described)
        trusted = trusted_folders(self._configuration).get(str(self.mirror(name).resolve()))
        if not self._trusts_all and trusted != fingerprint:
            raise SettingsError(
                f"the source {name} ({mask_secrets(described['url'], described['url'])}) was added "
                "by somebody else; it decides where your credentials go, so add it again by "
                "`hades sources add`, or set HADES_TRUST_FOLDER=1"
            )

        return RemoteSource.model_validate(described)

    def is_read(self, name: str) -> bool:
        """Whether the graph has read the mirror since it last changed."""
        return self.ledger(name).state().is_read

    def add(self, name: str, source: RemoteSource) -> SyncState:
        """Remember a source; one of the same name is replaced, and keeps its documents."""
        if not re.fullmatch(SOURCE_NAME, name):
            raise SettingsError(
                f"{name!r} is no name of a source; use 1 to 63 of a-z, 0-9, _ and -"
            )

        if name in self._configured:
            raise SettingsError(f"{name} stands in hades.yaml; change it there")

        check_options(source)
        described = source.model_dump(mode="json")
        if not self._trusts_all:
            set_trust(
                self.mirror(name),
                fingerprint_of(described),
                self._configuration,
            )

        ledger = self.ledger(name)
        state = replace(
            ledger.state(),
            url=source.url,
            every_hours=source.every_hours,
            is_read=False,
        )
        ledger.record(source=described, state=state_facts(state))
        return state

    def remove(self, name: str) -> None:
        """Forget a source with its mirror; the caller removes its documents from the graph."""
        if name in self._configured:
            raise SettingsError(f"{name} stands in hades.yaml; remove it there first")

        self.require(name).path.unlink(missing_ok=True)
        if not self._trusts_all:
            set_trust(
                self.mirror(name),
                None,
                self._configuration,
            )

        for folder in (self.mirror(name), self._folder / STAGED / name):
            shutil.rmtree(folder, ignore_errors=True)

    def states(self) -> list[SyncState]:
        """When each source was synced, and how that went."""
        return sync_states(self._home, self._configured)

    def sync(
        self,
        name: str,
        *,
        accept: bool = False,
        progress: ProgressReport = silent,
    ) -> SyncReport:
        """Bring the mirror in step with the source. What fails is the report's problem and the
        ledger's; the mirror stays as it was.
        """
        self.require(name)
        with closing(FileLock(self._folder / STAGED / f"{name}.lock")) as lock:
            holder = lock.claim(f"a sync of {name}")
            if holder is not None:
                return SyncReport(name, problem=f"{name}: {holder} is running already")
            return self._sync(name, accept, progress)

    def _sync(
        self,
        name: str,
        accept: bool,
        progress: ProgressReport,
    ) -> SyncReport:
        began = time.perf_counter()
        ledger = self.ledger(name)
        at = self._now()
        url = ""

        try:
            source = self.source(name)
            url = source.url
            state = replace(
                ledger.state(),
                url=url,
                every_hours=source.every_hours,
                last_sync=at,
            )
            ledger.record(state=state_facts(state))
            kind = check_options(source)
            address = fill_placeholders(whole_address(url))
            place = Place(address, source, self._sleep, self._now)
            mirror = self.mirror(name)
            staged = self._folder / STAGED / name
            mirror.mkdir(parents=True, exist_ok=True)

            with closing(kind.open(place)) as connector:
                sync = Sync(
                    source,
                    connector,
                    ledger,
                    mirror,
                    staged,
                    accept,
                    progress,
                    at,
                )
                return sync.run()
        except Exception as error:  # what libraries raise is no closed list
            problem = _explain(error, url)
            state = ledger.state()
            failed = replace(
                state,
                last_sync=at,
                failures=state.failures + 1,
                problem=f"{name}: {problem}",
            )
            ledger.record(state=state_facts(failed))
            seconds = time.perf_counter() - began
            return SyncReport(
                name,
                problem=failed.problem,
                seconds=seconds,
            )


def _explain(error: Exception, url: str) -> str:
    """What went wrong, without any credential."""
    text = str(error)
    if not isinstance(error, HadesError):
        text = (
            f"{type(error).__name__}: {text}; nothing was changed. Check the address, the access "
            "and the network, then sync again"
        )

    return " ".join(mask_secrets(text, url).split())[:_LONGEST_PROBLEM]
