"""Serve, mcp, token, probe, status."""

from __future__ import annotations

import socket
from collections.abc import Mapping
from contextlib import closing
from dataclasses import asdict
from importlib import import_module
from itertools import islice
from pathlib import Path
from typing import Any, Literal

import typer
from rich.table import Table
from rich.text import Text

from hades.build.forecast import forecast_build
from hades.build.report import last_runs
from hades.build.weights.feedback import tell as what_use_taught
from hades.errors import NotProvisioned
from hades.ingest.manifest import entries
from hades.ingest.phases import Phase
from hades.ports.services import utc_now
from hades.ports.store import GraphStore, Mode, Term
from hades.settings.load import keep_libraries_quiet, load_settings, socket_activation
from hades.settings.tree import Settings
from hades.surfaces.access.limits import Door, Limits, Token, Tokens, hand_over, tcp_door, tcp_socket, unix_socket
from hades.surfaces.capabilities.capability import AccessMode
from hades.surfaces.cli.output import Answer
from hades.wiring import open_store, paid_models
from schemas.catalogue import ALL, COLLECTIONS

# `hades serve`, `hades mcp` and `hades token`.


def run_serve(
    uds: Path | None, host: str, port: int | None, mode: AccessMode, no_token: bool, workers: int = 1
) -> Answer:
    """Listen on a Unix socket or on TCP, and answer until the process is stopped."""
    import_module("uvicorn")  # a missing extra is named before anything listens
    from hades.surfaces.rest.services import serve_with_workers

    settings, wanted = load_settings(), Mode(mode)
    keep_libraries_quiet()
    given = socket_activation()
    if uds is not None:
        door = Door(wanted, tenant=settings.tenant)
        listening = hand_over(uds.absolute(), wanted, given) or unix_socket(uds.absolute(), wanted)
        address = str(uds)
    else:
        door = tcp_door(wanted, host, needs_token=not no_token, tenant=settings.tenant)
        listening = tcp_socket(host, settings.serve_port if port is None else port)
        address = address_of(host, listening)
    _announce(settings, door, f"hades serves {mode} on {address}; stop it with Ctrl-C")
    try:
        serve_with_workers(settings, door, listening, limits_of(settings), workers)
    finally:
        listening.close()
        if uds is not None and not given:
            uds.unlink(missing_ok=True)
    return _report_stop(address, mode)


def run_mcp(mode: Literal["ro", "rw", "admin"], port: int | None, host: str, no_token: bool) -> Answer:
    """Offer the tools over stdio, or over HTTP when a port is given."""
    from hades.surfaces.mcp.server import PATH, serve_http, serve_stdio

    settings = load_settings()
    keep_libraries_quiet()
    if port is None:
        serve_stdio(settings, Door(Mode(mode), tenant=settings.tenant))
        return Answer(None, ())  # stdout belongs to the protocol
    door = tcp_door(Mode(mode), host, needs_token=not no_token, tenant=settings.tenant)
    listening = tcp_socket(host, port)
    address = f"{address_of(host, listening)}{PATH}"
    _announce(settings, door, f"hades offers its tools ({mode}) on {address}; stop it with Ctrl-C")
    try:
        serve_http(settings, door, listening, limits_of(settings))
    finally:
        listening.close()
    return _report_stop(address, mode)


def _announce(settings: Settings, door: Door, text: str) -> None:
    typer.echo(text, err=True)
    if door.needs_token and not Tokens(settings.home).all():
        typer.echo("no token exists yet; create one with `hades token add NAME`", err=True)


def _report_stop(address: str, mode: str) -> Answer:
    return Answer({"served": address, "mode": mode}, (Text(f"stopped serving {address}"),))


def address_of(host: str, listening: socket.socket) -> str:
    """The address for a browser."""
    name = f"[{host}]" if ":" in host else host
    return f"http://{name}:{listening.getsockname()[1]}"


def limits_of(settings: Settings) -> Limits:
    """The limits of a request, a client and the process, from the settings."""
    return Limits(
        body_bytes=settings.serve_body_kib * 1024,
        request_seconds=settings.serve_seconds,
        per_second=settings.serve_rate,
        burst=settings.serve_burst,
        threads=settings.serve_threads,
        cache_bytes=settings.serve_kept_mib * 1024 * 1024,
    )


def add_token(name: str, mode: AccessMode) -> Answer:
    """Create a token of this home."""
    settings = load_settings()
    text, token = Tokens(settings.home).add(name, Mode(mode), utc_now(), settings.tenant)
    note = Text("Save it now: only its hash is stored, so it cannot be shown again.", style="dim")
    return Answer({**_show(token), "token": text}, (Text(text), note))


def list_tokens() -> Answer:
    """Every token of this home."""
    tokens = Tokens(load_settings().home).all()
    table = Table(box=None, pad_edge=False)
    for heading in ("name", "mode", "tenant", "id", "created"):
        table.add_column(heading)
    for token in tokens:
        table.add_row(token.name, token.mode, token.tenant or "", token.id, token.created_at)
    empty = Text("there is no token; create one with `hades token add NAME`")
    return Answer({"tokens": [_show(token) for token in tokens]}, (table if tokens else empty,))


def revoke_token(name: str) -> Answer:
    """Revoke a token."""
    token = Tokens(load_settings().home).revoke(name)
    return Answer({"revoked": _show(token)}, (Text(f"{token.name} ({token.id}) is revoked"),))


def _show(token: Token) -> dict[str, Any]:
    """A token without its hash."""
    return {name: value for name, value in asdict(token).items() if name != "sha256"}


# Whether a service lives, for health checks of containers and units: asks it, over its socket or an address. python
# -m hades.surfaces.cli.serve /run/hades/readonly/hades.sock python -m hades.surfaces.cli.serve
# http://127.0.0.1:8377/ready Loads nothing but the standard library: a check every few seconds must cost nothing.


PATH = "/health"


# `hades status`: what is stored, what waits, the last builds, and what the next build would take and cost.


QUARANTINE = "quarantine"
_SHOWN, _MAX_LISTED = 5, 1_000
_MEBIBYTE = 1024 * 1024


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
            set_aside = _list_quarantine(store)
            night = forecast_build(store, settings.home, paid_models(settings)).as_dict() if whole else {}
    except NotProvisioned as missing:
        provisioned, where, stale, night, set_aside = False, {"missing": str(missing)}, {}, {}, []
        counts = dict.fromkeys((collection.name for collection in COLLECTIONS), 0)
    document = {
        "provisioned": provisioned,
        "tenant": settings.tenant,
        "store": where,
        "counts": counts,
        "quarantine": counts[QUARANTINE],
        "set_aside": set_aside,
        "stale": stale,
        "bytes": int(where["bytes"]) if "bytes" in where else None,
        "runs": [asdict(run) for run in last_runs(settings.home)],
        "nightly": night,
    }
    return Answer(document, _status_view(document))


def forecast_table(stages: Mapping[str, float | None]) -> Table:
    """The stages that have work to do, with the time that each will take."""
    table = Table(title="next build", title_justify="left", title_style="bold", box=None, pad_edge=False)
    table.add_column("stage")
    table.add_column("seconds", justify="right")
    for name, seconds in stages.items():
        table.add_row(name, "not measured yet" if seconds is None else f"{seconds:,.1f}")
    known = [seconds for seconds in stages.values() if seconds is not None]
    table.add_row("together", f"{sum(known):,.1f}" if known else "not measured yet", style="bold")
    return table


def cost_sentence(cost: Mapping[str, Any]) -> str:
    """What paid models would be sent and what that costs."""
    if not (cost["embedding_tokens"] or cost["calls"]):
        return "cost: 0 (nothing to send to a paid model)"
    parts = []
    if cost["embedding_tokens"]:
        parts.append(f"{cost['embedding_tokens']:,} tokens to embed")
    if cost["calls"]:
        parts.append(
            f"at most {cost['calls']:,} summaries of topics ({cost['prompt_tokens']:,} tokens sent, "
            f"{cost['completion_tokens']:,} written)"
        )
    price = cost["price"]
    told = (
        "not known; set HADES_EMBEDDER_PRICE, HADES_LLM_INPUT_PRICE and HADES_LLM_OUTPUT_PRICE (a million tokens)"
        if price is None
        else f"about {price:,.4f} in the currency of your prices"
    )
    return f"cost: {told}; {' and '.join(parts)}"


def _stale(store: GraphStore) -> dict[str, int]:
    """What the next `hades ingest` would still have to do: documents to cut, chunks to embed."""
    waiting = sum(Phase.CHUNKS not in entry.phases for entry in entries(store).values())
    without = store.count("doc_chunks", where=[Term("embedding_model", "is_null")])
    return {"documents to cut": waiting, "chunks to embed": without}


def _list_quarantine(store: GraphStore) -> list[dict[str, str]]:
    """What ingestion set aside, with the reason; the first thousand."""
    columns = ["uri", "reason", "detail"]
    rows = (row for batch in store.scan(QUARANTINE, columns=columns) for row in batch.to_pylist())
    return sorted(islice(rows, _MAX_LISTED), key=lambda row: str(row["uri"]))


def _status_view(document: dict[str, Any]) -> tuple[Table | Text, ...]:
    parts: list[Table | Text] = [_store_lines(document)]
    if any(document["counts"].values()):
        parts.append(_count_table(document["counts"]))
    parts.append(Text("\n".join(_notes(document))))
    if night := document["nightly"]:
        parts.append(forecast_table(night["stages"]))
        parts.append(Text("\n".join(_forecast_notes(night))))
    return tuple(parts)


def _store_lines(document: Mapping[str, Any]) -> Text:
    told = dict(document["store"])
    if (size := told.pop("bytes", None)) is not None:
        told["size"] = f"{int(size) / _MEBIBYTE:,.1f} MiB"
    return Text("\n".join(f"{name}: {value}" for name, value in told.items()))


def _count_table(counts: Mapping[str, int]) -> Table:
    """Collections that hold something; `--json` has the empty ones too."""
    table = Table(box=None, pad_edge=False)
    table.add_column("collection")
    table.add_column("rows", justify="right")
    table.add_column("holds", style="dim")
    for collection in COLLECTIONS:
        if rows := counts[collection.name]:
            table.add_row(collection.name, f"{rows:,}", collection.about)
    return table


def _notes(document: Mapping[str, Any]) -> list[str]:
    aside = document["set_aside"]
    notes = [
        *([f"set aside: {document['quarantine']:,} (all of them with --json)"] if aside else []),
        *(f"  {one['uri']}: {one['detail'] or one['reason']}" for one in aside[:_SHOWN]),
        *(f"waiting: {count:,} {what}" for what, count in document["stale"].items() if count),
        *(
            f"build {run['build']}: {sum(run['seconds'].values()):.0f} s, snapshot {run['snapshot']}"
            for run in document["runs"]
        ),
    ]
    if not document["provisioned"]:
        notes.append("nothing is here yet. Next: hades ingest documents PATH (or workspace PATH), then hades build")
    elif not document["counts"]["documents"]:
        notes.append("no documents yet. Next: hades ingest documents PATH (or workspace PATH), then hades build")
    elif not document["runs"]:
        notes.append("nothing was built yet. Next: hades build")
    return notes


def _forecast_notes(night: Mapping[str, Any]) -> list[str]:
    notes = [cost_sentence(night["cost"])]
    if night["runs"]:
        notes.append(f"times: median of {night['runs']} earlier build(s); a change of your files may add stages")
    if lesson := what_use_taught(night["learned"]):
        notes.append(f"the last build: {lesson}")
    return notes
