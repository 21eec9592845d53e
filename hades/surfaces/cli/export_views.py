"""`hades export` and `hades import`."""

from __future__ import annotations

from contextlib import closing
from importlib.metadata import version
from pathlib import Path
from typing import Literal

from rich.text import Text

from hades.ports.clock import utc_now
from hades.ports.progress import silent
from hades.ports.store import Mode
from hades.settings import load_settings
from hades.stages.release.text_export import export_text, import_text, seal_export
from hades.surfaces.cli.output import Answer
from hades.surfaces.cli.progress import show_progress
from hades.wiring import open_store, open_written_store


def run_export(target: Path, form: Literal["jsonl", "markdown"], only: str) -> Answer:
    """Write the rows of the store as text."""
    settings = load_settings()
    with show_progress() as progress, closing(open_store(settings, Mode.READ_ONLY)) as store:
        document = export_text(
            store, target, form, only, at=utc_now(), hades=version("hades-graphrag"), progress=progress or silent
        )
    held = document["collections"]
    told = f"{target}: {sum(one['rows'] for one in held.values()):,} rows of {len(held)} collections as {form}"
    return Answer({"path": str(target), **document}, (Text(told), Text(f"read it back with: hades import {target}")))


def run_import(source: Path, seal: bool) -> Answer:
    """Write the rows of an export into the store."""
    if seal:
        seal_export(source)
    with show_progress() as progress, closing(open_written_store(load_settings())) as store:
        counts = import_text(store, source, progress=progress or silent)
    told = f"{sum(counts.values()):,} rows of {len(counts)} collections are in the store"
    return Answer({"source": str(source), "rows": counts}, (Text(told), Text("next: hades publish")))
