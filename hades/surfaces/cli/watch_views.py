"""`hades watch`: one line an update."""

from __future__ import annotations

import sys
from contextlib import suppress
from pathlib import Path
from typing import Any

from rich.text import Text

from hades.errors import HadesError
from hades.ingest.sources.reading import SourceError
from hades.stages.watch_folder import Refresh, source_kind_of, watch_folder
from hades.surfaces.cli.output import Answer
from hades.wiring import open_hades

_SHOWN = 3


def run_watch(path: Path, kind: str, quiet_seconds: float, *, once: bool) -> Answer:
    """Update the graph now and after each change; ends with Ctrl-C or, with `once`, after the first update."""
    if not path.is_dir():
        raise SourceError(f"{path} is not a folder; expected one to watch")
    chosen = source_kind_of(path) if kind == "auto" else kind
    updates = failed = 0
    with open_hades() as hades:

        def refresh() -> dict[str, Any]:
            read = hades.ingest.workspace if chosen == "workspace" else hades.ingest.documents
            report = read(path).as_dict()
            return {**report, "snapshot": hades.build()["released"]["snapshot"]}

        with suppress(KeyboardInterrupt):
            for update in watch_folder(path, refresh, quiet_seconds=quiet_seconds, ignored=hades.home):
                updates, failed = updates + 1, failed + bool(update.problem)
                sys.stderr.write(_line(update) + "\n")
                if once:
                    if update.problem:
                        raise HadesError(update.problem)
                    break
    told = f"watched {path} as {chosen}: {updates} updates, {failed} failed"
    return Answer({"path": str(path), "kind": chosen, "updates": updates, "failed": failed}, (Text(told),))


def _line(update: Refresh) -> str:
    named = ", ".join(update.changed[:_SHOWN]) + (" ..." if len(update.changed) > _SHOWN else "")
    after = f" after {named}" if named else ""
    if update.report is None:
        return f"not updated{after}: {update.problem}"
    documents = update.report["documents"]
    counts = ", ".join(f"{documents[part]} {part}" for part in ("new", "changed", "removed") if documents[part])
    return f"updated in {update.seconds:.1f} s{after}: {counts or 'nothing new'}; snapshot {update.report['snapshot']}"
