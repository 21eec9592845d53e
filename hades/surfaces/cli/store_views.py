"""`hades provision`."""

from __future__ import annotations

from contextlib import closing

from rich.text import Text

from hades.ports.store import Mode
from hades.settings import load_settings
from hades.surfaces.cli.output import Answer
from hades.wiring import open_store
from schemas.parts import ALL


def provision_store(only: str | None = None) -> Answer:
    """Create what the catalogue, or a part of it, declares and is not there."""
    settings = load_settings()
    with closing(open_store(settings, Mode.ADMIN)) as store:
        report = store.provision(only)
        where = store.describe()
    document = {
        "store": where,
        "tenant": settings.tenant,
        "holds": where.get("holds", ALL),
        "created": list(report.created),
        "notes": list(report.notes),
    }
    if report.created:
        head = f"created {len(report.created)} objects"
        listing = "\n".join(f"  {name}" for name in report.created)
    else:
        head, listing = "everything was there already; nothing to create", ""
    lines = [head, listing, *report.notes]
    return Answer(document, tuple(Text(line) for line in lines if line))
