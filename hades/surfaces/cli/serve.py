"""The commands `hades serve`, `mcp`, `token` and `status`."""

from __future__ import annotations

import socket
import webbrowser
from collections.abc import Iterator, Mapping
from contextlib import closing, nullcontext
from dataclasses import asdict, replace
from itertools import islice
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import RenderableType
from rich.table import Table
from rich.text import Text

from hades.errors import NotProvisioned
from hades.ingest.manifest import entries
from hades.ingest.phases import Phase
from hades.ingest.sources.remote.ledger import sync_states
from hades.night.forecast import forecast_build
from hades.night.history import size_of_history
from hades.night.plan.folder import describe_plans
from hades.night.report import last_runs
from hades.night.retention import size_of_nights
from hades.night.weights.feedback import tell as what_use_taught
from hades.ports.graph import DocumentFilter
from hades.ports.services import utc_now
from hades.ports.store import Mode, Term, scan_rows
from hades.settings.load import keep_libraries_quiet, load_settings, socket_activation
from hades.settings.tree import Settings
from hades.snapshot.rights_file import OWNER, Readers, asker_of
from hades.surfaces.access.limits import (
    Door,
    Limits,
    Token,
    Tokens,
    hand_over,
    tcp_door,
    tcp_socket,
    unix_socket,
)
from hades.surfaces.capabilities.capability import AccessMode
from hades.surfaces.cli.output import (
    Answer,
    argument,
    day,
    list_records,
    local_command,
    option,
    table,
)
from hades.surfaces.cli.warm import keep_warm
from hades.wiring import open_store, paid_models
from schemas.catalogue import ALL, COLLECTIONS
from schemas.record import JsonObject

MODES = "ro: read; rw: also judge, remember and roll back; admin: also erase."
MCP_MODES = "ro: only tools that read; rw: also tools that write; admin: also memory_erase."
ModeOption = Annotated[AccessMode, option(MODES)]
DoorUser = Annotated[
    str | None,
    option(
        "Without tokens: the person whose documents callers may read.",
        "--as-user",
    ),
]
DoorGroups = Annotated[
    str | None, option("Without tokens: groups whose documents callers may read.", "--groups")
]
DoorOwner = Annotated[
    bool, option("Without tokens: callers may read every document.", "--as-owner")
]


@local_command("serve")
def run_serve(
    uds: Annotated[
        Path | None,
        option(
            "Listen on a Unix socket, with file mode 0660 or 0600.",
            metavar="PATH",
        ),
    ] = None,
    port: Annotated[
        int | None,
        option(
            "Listen on TCP; 0 takes a free port.",
            min=0,
            max=65535,
        ),
    ] = None,
    host: Annotated[
        str, option("Address for --port; with 0.0.0.0 other machines can connect.")
    ] = "127.0.0.1",
    mode: ModeOption = "ro",
    no_token: Annotated[
        bool,
        option(
            "On TCP of this machine only: accept every local user without a token.",
            "--no-token",
        ),
    ] = False,
    workers: Annotated[
        int,
        option(
            "Processes that answer; they share one memory-mapped snapshot.",
            min=1,
            max=64,
        ),
    ] = 1,
    open_page: Annotated[bool, option("Open the explorer page in the browser.", "--open")] = False,
    allow_folder: Annotated[
        list[Path] | None,
        option(
            "With --mode rw: callers may have this folder of documents read; may be repeated.",
            "--allow-folder",
        ),
    ] = None,
    as_user: DoorUser = None,
    groups: DoorGroups = None,
    as_owner: DoorOwner = False,
) -> Answer:
    """Serve REST and the explorer page until stopped; by default read-only on 127.0.0.1, for
    callers with a token.
    """
    # A missing extra is named before anything listens.
    from hades.surfaces.rest.app import serve_with_workers

    if uds is not None and (port is not None or no_token or open_page):
        raise typer.BadParameter(
            "--uds takes neither --port nor --no-token nor --open: the rights of its file decide "
            "who may connect"
        )

    settings = load_settings()
    access = Mode(mode)
    asker = _door_asker(as_user, groups, as_owner)
    folders = tuple(allow_folder or ())
    keep_libraries_quiet()
    activation = socket_activation()

    if uds is not None:
        door = Door(
            access,
            tenant=settings.tenant,
            folders=folders,
            asker=asker,
        )
        path = uds.absolute()
        listening = hand_over(path, access, activation) or unix_socket(path, access)
        address = str(uds)
    else:
        door = tcp_door(
            access,
            host,
            needs_token=not no_token,
            tenant=settings.tenant,
            folders=folders,
        )
        door = replace(door, asker=asker)
        listening = tcp_socket(host, settings.serve_port if port is None else port)
        address = address_of(host, listening)

    _announce(
        settings,
        door,
        f"hades serves {mode} on {address}; stop it with Ctrl-C",
    )
    if open_page:  # the socket listens already, so that the page waits for the service
        webbrowser.open(address)

    try:
        with keep_warm(settings) if uds is None else nullcontext():
            serve_with_workers(
                settings,
                door,
                listening,
                limits_of(settings),
                workers,
            )
    finally:
        listening.close()
        if uds is not None and not activation:
            uds.unlink(missing_ok=True)

    return _report_stop(address, mode)


@local_command("mcp")
def run_mcp(
    mode: Annotated[AccessMode, option(MCP_MODES)] = "ro",
    port: Annotated[
        int | None,
        option(
            "Streamable HTTP on this port; by default stdin and stdout.",
            min=0,
            max=65535,
        ),
    ] = None,
    host: Annotated[str, option("With --port: the address to listen on.")] = "127.0.0.1",
    no_token: Annotated[
        bool,
        option(
            "With --port, on this machine only: accept every local user without a token.",
            "--no-token",
        ),
    ] = False,
    as_user: DoorUser = None,
    groups: DoorGroups = None,
    as_owner: DoorOwner = False,
) -> Answer:
    """Serve the tools of the Model Context Protocol, over stdio or streamable HTTP at /mcp;
    read-only by default.
    """
    from hades.surfaces.mcp.server import PATH, serve_http, serve_stdio

    settings = load_settings()
    keep_libraries_quiet()
    asker = _door_asker(as_user, groups, as_owner)

    if port is None:
        serve_stdio(
            settings,
            Door(
                Mode(mode),
                tenant=settings.tenant,
                asker=asker,
            ),
        )
        return Answer(None, ())  # stdout belongs to the protocol

    door = tcp_door(
        Mode(mode),
        host,
        needs_token=not no_token,
        tenant=settings.tenant,
    )
    door = replace(door, asker=asker)
    with tcp_socket(host, port) as listening:
        address = f"{address_of(host, listening)}{PATH}"
        _announce(
            settings,
            door,
            f"hades offers its tools ({mode}) on {address}; stop it with Ctrl-C",
        )
        serve_http(
            settings,
            door,
            listening,
            limits_of(settings),
        )

    return _report_stop(address, mode)


def _door_asker(
    as_user: str | None,
    groups: str | None,
    as_owner: bool,
) -> Readers:
    """The names that callers without a token read by: of nobody in particular, where none is
    given.
    """
    if as_owner and (as_user or groups):
        raise typer.BadParameter("--as-owner reads all; leave --as-user and --groups out")
    if as_owner:
        return OWNER

    return asker_of(as_user, (groups or "").split(","))


def _announce(settings: Settings, door: Door, text: str) -> None:
    typer.echo(text, err=True)
    if door.needs_token and not Tokens(settings.home).all():
        typer.echo(
            "no token exists yet; create one with `hades token add NAME`",
            err=True,
        )


def _report_stop(address: str, mode: str) -> Answer:
    return Answer({"served": address, "mode": mode}, (f"stopped serving {address}",))


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


@local_command("token add")
def add_token(
    name: Annotated[str, argument("Whose token it is; recorded in the audit log.", "NAME")],
    mode: ModeOption = "ro",
    path: Annotated[
        list[str] | None, option("Only documents whose path fits, such as docs/*.md.")
    ] = None,
    source: Annotated[
        list[str] | None, option("Only documents of this folder, corpus, source or domain.")
    ] = None,
    type: Annotated[
        list[str] | None, option("Only this kind of file: markdown, python, pdf, ...")
    ] = None,
    tag: Annotated[list[str] | None, option("Only documents that state this tag.")] = None,
    author: Annotated[list[str] | None, option("Only documents that state this author.")] = None,
    as_user: Annotated[
        str | None, option("The person who holds it, as sources name readers.", "--as-user")
    ] = None,
    groups: Annotated[
        str | None, option("Groups of the person, with commas between.", "--groups")
    ] = None,
    as_owner: Annotated[bool, option("Its holder may read every document.", "--as-owner")] = False,
) -> Answer:
    """Create a token and show it; it cannot be shown again.

    With a filter its holder asks questions of these documents and sees nothing of any other. Where
    sources state rights, its holder sees what is public or names the person or a group; a token of
    mode rw or admin that names nobody sees all.
    """
    settings = load_settings()
    limit = DocumentFilter(
        paths=tuple(path or ()),
        sources=tuple(source or ()),
        types=tuple(type or ()),
        tags=tuple(tag or ()),
        authors=tuple(author or ()),
    )
    token_limit = None if limit.is_open else limit
    tokens = Tokens(settings.home)
    is_named = as_owner or as_user is not None or groups is not None

    if is_named:
        names = _door_asker(as_user, groups, as_owner)
    else:
        names = ()

    text, token = tokens.add(
        name,
        Mode(mode),
        utc_now(),
        settings.tenant,
        token_limit,
        names,
    )
    note = Text(
        "Save it now: only its hash is stored, so it cannot be shown again.",
        style="dim",
    )
    return Answer(
        {
            **_token_document(token),
            "token": text,
        },
        (text, note),
    )


@local_command("token list")
def list_tokens() -> Answer:
    """List the tokens: name, mode and id. The text of a token is not stored."""
    tokens = []
    for token in Tokens(load_settings().home).all():
        tokens.append(_token_document(token))

    view = list_records(
        tokens,
        "name mode tenant id created=created_at limited_to=only reads_as=names",
    )
    return Answer(
        {"tokens": tokens},
        (view if tokens else "there is no token; create one with `hades token add NAME`",),
    )


@local_command("token revoke")
def revoke_token(name: Annotated[str, argument("Name or id of the token.", "NAME")]) -> Answer:
    """Revoke a token; running services refuse it from the next request on."""
    token = Tokens(load_settings().home).revoke(name)
    return Answer(
        {"revoked": _token_document(token)},
        (f"{token.name} ({token.id}) is revoked",),
    )


def _token_document(token: Token) -> JsonObject:
    """A token without its hash."""
    return {name: value for name, value in asdict(token).items() if name != "sha256"}


QUARANTINE = "quarantine"
_SHOWN = 5
_MAX_LISTED = 1_000
_MEBIBYTE = 1024 * 1024


@local_command("status")
def show_status() -> Answer:
    """Count the rows of each collection, what is quarantined, what is stale, and the last runs."""
    settings = load_settings()
    provisioned = True

    try:
        with closing(open_store(settings, Mode.READ_ONLY)) as store:
            counts = store.counts()
            where = store.describe()
            # A smaller database has nothing to ingest or build.
            is_whole = where.get("holds", ALL) == ALL
            stale = {}

            if is_whole:  # what the next `hades ingest` would still have to do
                uncut = sum(Phase.CHUNKS not in entry.phases for entry in entries(store).values())
                without_vector = [Term("embedding_model", "is_null")]
                unembedded = store.count("doc_chunks", where=without_vector)
                stale = {
                    "documents to cut": uncut,
                    "chunks to embed": unembedded,
                }

            rows = scan_rows(
                store,
                QUARANTINE,
                columns=["uri", "reason", "detail"],
            )
            set_aside = sorted(
                islice(rows, _MAX_LISTED),
                key=lambda row: str(row["uri"]),
            )
            if is_whole:
                night = forecast_build(
                    store,
                    settings.home,
                    paid_models(settings),
                )
            else:
                night = {}
    except NotProvisioned as missing:
        provisioned = False
        where = {"missing": str(missing)}
        stale = {}
        night = {}
        set_aside = []
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
        "sources": source_rows(settings),
        "runs": last_runs(settings.home),
        "plans": describe_plans(settings.home),
        "history": {
            **size_of_history(settings.home),
            "limit": settings.history_mib * _MEBIBYTE,
        },
        "kept": {
            **size_of_nights(settings.home),
            "limit": settings.nights_kept,
        },
        "nightly": night,
    }
    return Answer(document, _status_view(document))


def source_rows(settings: Settings) -> list[JsonObject]:
    """The remote sources with when each was last in step."""
    states = sync_states(settings.home, settings.sources)
    return [state.as_dict(utc_now()) for state in states]


def forecast_table(stages: Mapping[str, float | None]) -> Table:
    """The stages that have work to do, with the time that each will take."""
    measured = []
    for seconds in stages.values():
        if seconds is not None:
            measured.append(seconds)

    rows = {
        **stages,
        "together": sum(measured) if measured else None,
    }
    cells = (
        (name, "not measured yet" if value is None else f"{value:,.1f}")
        for name, value in rows.items()
    )
    return table(
        ("stage", "seconds"),
        cells,
        title="next build",
    )


def cost_sentence(cost: Mapping[str, Any]) -> str:
    """What paid models would be sent and what that costs."""
    if not (cost["embedding_tokens"] or cost["calls"]):
        return "cost: 0 (nothing to send to a paid model)"

    sent = f"{cost['prompt_tokens']:,} tokens sent"
    written = f"{cost['completion_tokens']:,} written"
    parts = []

    if cost["embedding_tokens"]:
        parts.append(f"{cost['embedding_tokens']:,} tokens to embed")
    if cost["calls"]:
        parts.append(f"at most {cost['calls']:,} summaries of topics ({sent}, {written})")

    price = (
        "not known; set HADES_EMBEDDER_PRICE, HADES_LLM_INPUT_PRICE and HADES_LLM_OUTPUT_PRICE "
        "(a million tokens)"
    )
    if cost["price"] is not None:
        price = f"about {cost['price']:,.4f} in the currency of your prices"

    return f"cost: {price}; {' and '.join(parts)}"


def _status_view(document: JsonObject) -> Iterator[RenderableType]:
    store = dict(document["store"])
    if (size := store.pop("bytes", None)) is not None:
        store["size"] = f"{int(size) / _MEBIBYTE:,.1f} MiB"

    yield "\n".join(f"{name}: {value}" for name, value in store.items())
    rows = []
    for collection in COLLECTIONS:
        row_count = document["counts"][collection.name]
        if row_count:  # `--json` has the empty ones too
            rows.append((collection.name, row_count, Text(collection.about, style="dim")))

    if rows:
        yield table(("collection", "rows", "holds"), rows)

    yield from _notes(document)
    if night := document["nightly"]:
        yield forecast_table(night["stages"])
        yield cost_sentence(night["cost"])
        if night["runs"]:
            yield (
                f"times: median of {night['runs']} earlier build(s); a change of your files may "
                "add stages"
            )

        if lesson := what_use_taught(night["learned"]):
            yield f"the last build: {lesson}"


def _notes(document: Mapping[str, Any]) -> Iterator[str]:
    rows_aside = document["set_aside"]
    if rows_aside:
        yield f"set aside: {document['quarantine']:,} (all of them with --json)"

    yield from (f"  {row['uri']}: {row['detail'] or row['reason']}" for row in rows_aside[:_SHOWN])
    for source in document["sources"]:
        if source["overdue"] or source["problem"]:
            last = source["last_success"]
            if last:
                seen = f"last in step {day(last)}"
            else:
                seen = "never in step"

            yield f"source {source['name']} was {seen}"
            if source["problem"]:
                yield f"  {source['problem']}"

    yield from (f"waiting: {count:,} {work}" for work, count in document["stale"].items() if count)
    for plan in document["plans"]:
        if plan["applied"]:
            state = f"applied {day(plan['applied'])}"
        else:
            state = "waits for `hades apply`"

        yield f"plan {plan['plan']}: {plan['bytes'] / _MEBIBYTE:,.1f} MiB, {state}"

    for run in document["runs"]:
        yield (
            f"build {run['build']}: {sum(run['seconds'].values()):.0f} s, snapshot "
            f"{run['snapshot']}"
        )

    history = document["history"]
    if history["moves"]:
        yield (
            f"history: {history['moves']:,} published graphs, "
            f"{history['bytes'] / _MEBIBYTE:,.1f} of {history['limit'] / _MEBIBYTE:,.0f} MiB, "
            f"changed sentences since {history['texts_since'] or 'no night yet'}"
        )

    kept = document["kept"]
    if kept["nights"]:
        yield (
            f"kept: {kept['nights']:,} nights of at most {kept['limit']:,} and those of snapshots, "
            f"reports {kept['report_bytes'] / _MEBIBYTE:,.1f} MiB, registry "
            f"{kept['registry_bytes'] / _MEBIBYTE:,.1f} MiB"
        )

    if not document["counts"]["documents"]:
        if document["provisioned"]:
            lacks = "no documents yet"
        else:
            lacks = "nothing is here yet"

        yield f"{lacks}. Next: hades ingest documents PATH (or workspace PATH), then hades build"
    elif not document["runs"]:
        yield "nothing was built yet. Next: hades build"
