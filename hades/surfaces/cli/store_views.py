"""`hades provision` and `hades status`."""

from __future__ import annotations

from contextlib import closing
from dataclasses import asdict
from typing import Any

from rich.table import Table
from rich.text import Text

from hades.errors import NotProvisioned
from hades.ingest.manifest import entries
from hades.ingest.phases import Phase
from hades.ports.store import GraphStore, Mode, Term
from hades.settings import load_settings
from hades.stages.forecast import forecast_build, last_runs
from hades.stages.weights.online_report import tell as what_use_taught
from hades.surfaces.cli.output import Answer
from hades.wiring import open_store
from schemas.catalogue import COLLECTIONS
from schemas.parts import ALL

QUARANTINE = "quarantine"


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


def show_status() -> Answer:
    """Rows per collection; an empty home is an answer, not an error."""
    settings = load_settings()
    provisioned = True
    try:
        with closing(open_store(settings, Mode.READ_ONLY)) as store:
            counts = store.counts()
            where = store.describe()
            whole = where.get("holds", ALL) == ALL  # a smaller database has nothing to ingest or build
            stale = _stale(store) if whole else {}
            night = forecast_build(store, settings.home).as_dict() if whole else {}
    except NotProvisioned as missing:
        provisioned, where, stale, night = False, {"missing": str(missing)}, {}, {}
        counts = dict.fromkeys((collection.name for collection in COLLECTIONS), 0)
    document = {
        "provisioned": provisioned,
        "tenant": settings.tenant,
        "store": where,
        "counts": counts,
        "quarantine": counts[QUARANTINE],
        "stale": stale,
        "bytes": int(where["bytes"]) if "bytes" in where else None,
        "runs": [asdict(run) for run in last_runs(settings.home)],
        "nightly": night,
    }
    return Answer(document, _status_view(document))


def _stale(store: GraphStore) -> dict[str, int]:
    """What the next `hades ingest` would still have to do: documents to cut, chunks to embed."""
    waiting = sum(Phase.CHUNKS not in entry.phases for entry in entries(store).values())
    without = store.count("doc_chunks", where=[Term("embedding_model", "is_null")])
    return {"documents to cut": waiting, "chunks to embed": without}


def _status_view(document: dict[str, Any]) -> tuple[Table | Text, ...]:
    table = Table(box=None, pad_edge=False)
    table.add_column("collection")
    table.add_column("rows", justify="right")
    table.add_column("holds", style="dim")
    for collection in COLLECTIONS:
        table.add_row(collection.name, f"{document['counts'][collection.name]:,}", collection.about)
    store = Text("\n".join(f"{name}: {value}" for name, value in document["store"].items()))
    quarantined = document["quarantine"]
    notes = [
        f"set aside in quarantine: {quarantined:,}" if quarantined else "nothing is set aside in quarantine",
        *(f"waiting: {count:,} {what}" for what, count in document["stale"].items() if count),
        *(f"ran {run['build']}: {sum(run['seconds'].values()):.0f} s, {run['snapshot']}" for run in document["runs"]),
    ]
    if not document["runs"]:
        notes.append("last runs: none yet")
    if night := document["nightly"]:
        known = f", about {night['seconds']:.0f} s as the last one took" if night["seconds"] else ""
        notes.append(f"a nightly would do: {', '.join(night['stages'])}{known}")
        if lesson := what_use_taught(night["learned"]):
            notes.append(f"the last one: {lesson}")
    if not document["provisioned"]:
        notes.append("next: hades provision")
    return (store, table, Text("\n".join(notes)))
