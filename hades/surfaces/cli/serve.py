"""The commands `hades serve`, `mcp`, `token` and `status`."""

from __future__ import annotations

import json
import shutil
import socket
import sys
import webbrowser
from collections.abc import Iterator, Mapping
from contextlib import closing
from dataclasses import asdict
from difflib import unified_diff
from itertools import islice
from pathlib import Path
from typing import Annotated, Any, Literal

import typer
from rich.console import RenderableType
from rich.table import Table
from rich.text import Text

from hades.build.forecast import forecast_build
from hades.build.report import last_runs
from hades.build.weights.feedback import tell as what_use_taught
from hades.errors import NotProvisioned, SettingsError
from hades.files import write_whole
from hades.ingest.manifest import entries
from hades.ingest.phases import Phase
from hades.ports.graph import DocumentFilter
from hades.ports.services import utc_now
from hades.ports.store import Mode, Term, scan_rows
from hades.settings.load import keep_libraries_quiet, load_settings, socket_activation
from hades.settings.tree import Settings
from hades.surfaces.access.limits import Door, Limits, Token, Tokens, hand_over, tcp_door, tcp_socket, unix_socket
from hades.surfaces.capabilities.capability import AccessMode
from hades.surfaces.cli.output import Answer, argument, list_records, local_command, option, table
from hades.wiring import open_store, paid_models
from schemas.catalogue import ALL, COLLECTIONS

MODES = "ro: read; rw: also judge, remember and roll back; admin: also erase."
MCP_MODES = "ro: only tools that read; rw: also tools that write; admin: also memory_erase."
ModeOption = Annotated[AccessMode, option(MODES)]


@local_command("serve")
def run_serve(
    uds: Annotated[Path | None, option("Listen on a Unix socket, with file mode 0660 or 0600.", metavar="PATH")] = None,
    port: Annotated[int | None, option("Listen on TCP; 0 takes a free port.", min=0, max=65535)] = None,
    host: Annotated[str, option("Address for --port; with 0.0.0.0 other machines can connect.")] = "127.0.0.1",
    mode: ModeOption = "ro",
    no_token: Annotated[
        bool, option("On TCP of this machine only: accept every local user without a token.", "--no-token")
    ] = False,
    workers: Annotated[int, option("Processes that answer; they share one memory-mapped snapshot.", min=1, max=64)] = 1,
    open_page: Annotated[bool, option("Open the explorer page in the browser.", "--open")] = False,
    allow_folder: Annotated[
        list[Path] | None,
        option("With --mode rw: callers may have this folder of documents read; may be repeated.", "--allow-folder"),
    ] = None,
) -> Answer:
    """Serve REST and the explorer page until stopped; by default read-only on 127.0.0.1, for callers with a token."""
    from hades.surfaces.rest.app import serve_with_workers  # a missing extra is named before anything listens

    if uds is not None and (port is not None or no_token or open_page):
        raise typer.BadParameter(
            "--uds takes neither --port nor --no-token nor --open: the rights of its file decide who may connect"
        )

    settings, wanted, folders = load_settings(), Mode(mode), tuple(allow_folder or ())
    keep_libraries_quiet()
    given = socket_activation()
    if uds is not None:
        door = Door(wanted, tenant=settings.tenant, folders=folders)
        listening = hand_over(uds.absolute(), wanted, given) or unix_socket(uds.absolute(), wanted)
        address = str(uds)
    else:
        door = tcp_door(wanted, host, needs_token=not no_token, tenant=settings.tenant, folders=folders)
        listening = tcp_socket(host, settings.serve_port if port is None else port)
        address = address_of(host, listening)
    _announce(settings, door, f"hades serves {mode} on {address}; stop it with Ctrl-C")
    if open_page:
        webbrowser.open(address)  # the socket listens already, so that the page waits for the service
    try:
        serve_with_workers(settings, door, listening, limits_of(settings), workers)
    finally:
        listening.close()
        if uds is not None and not given:
            uds.unlink(missing_ok=True)
    return _report_stop(address, mode)


@local_command("mcp")
def run_mcp(
    mode: Annotated[AccessMode, option(MCP_MODES)] = "ro",
    port: Annotated[
        int | None, option("Streamable HTTP on this port; by default stdin and stdout.", min=0, max=65535)
    ] = None,
    host: Annotated[str, option("With --port: the address to listen on.")] = "127.0.0.1",
    no_token: Annotated[
        bool, option("With --port, on this machine only: accept every local user without a token.", "--no-token")
    ] = False,
) -> Answer:
    """Serve the tools of the Model Context Protocol, over stdio or streamable HTTP at /mcp; read-only by default."""
    from hades.surfaces.mcp.server import PATH, serve_http, serve_stdio

    settings = load_settings()
    keep_libraries_quiet()
    if port is None:
        serve_stdio(settings, Door(Mode(mode), tenant=settings.tenant))
        return Answer(None, ())  # stdout belongs to the protocol
    door = tcp_door(Mode(mode), host, needs_token=not no_token, tenant=settings.tenant)
    with tcp_socket(host, port) as listening:
        address = f"{address_of(host, listening)}{PATH}"
        _announce(settings, door, f"hades offers its tools ({mode}) on {address}; stop it with Ctrl-C")
        serve_http(settings, door, listening, limits_of(settings))
    return _report_stop(address, mode)


@local_command("mcp install")
def install_mcp(
    client: Annotated[Literal["claude-code", "claude-desktop", "cursor", "vscode"], argument("The agent.", "CLIENT")],
    mode: Annotated[AccessMode, option(MCP_MODES)] = "ro",
    undo: Annotated[bool, option("Take the entry out again.", "--undo")] = False,
    yes: Annotated[bool, option("Write without asking.", "--yes")] = False,
) -> Answer:
    """Write the configuration by which an agent starts `hades mcp`; the difference is shown first.

    The files of claude-code, cursor and vscode are those of the project in this folder.
    """
    desktop = {"darwin": "Library/Application Support", "win32": "AppData/Roaming"}.get(sys.platform, ".config")
    path = {
        "claude-code": Path(".mcp.json"), "cursor": Path(".cursor/mcp.json"), "vscode": Path(".vscode/mcp.json"),
        "claude-desktop": Path.home() / desktop / "Claude" / "claude_desktop_config.json",
    }[client]  # fmt: skip
    before = path.read_text("utf-8") if path.exists() else ""
    entry = None if undo else _client_entry(load_settings(), mode)
    after = _with_entry(path, before, "servers" if client == "vscode" else "mcpServers", entry)
    lines = list(unified_diff(before.splitlines(), after.splitlines(), str(path), str(path), lineterm=""))
    question = "\n".join([*lines, "", "Write this?"])
    written = bool(lines) and (yes or (sys.stdin.isatty() and typer.confirm(question, err=True)))
    if written and after:
        write_whole(path, after)
    elif written:
        path.unlink()
    told = f"{path} is written; start {client} again" if written else "not written; give --yes to write it"
    document = {"client": client, "path": str(path), "difference": lines, "written": written}
    return Answer(document, ("\n".join(lines), told if lines else "nothing to change"), ok=written or not lines)


def _client_entry(settings: Settings, mode: str) -> dict[str, Any]:
    """How the agent starts the server, wherever it is started itself."""
    program = shutil.which("hades")
    command = [program] if program else [sys.executable, "-m", "hades.surfaces.cli.commands"]
    environment = {"HADES_HOME": str(settings.home.resolve()), "HADES_EMBEDDER": settings.embedder}
    return {"command": command[0], "args": [*command[1:], "mcp", "--mode", mode], "env": environment}


def _with_entry(path: Path, text: str, key: str, entry: Mapping[str, Any] | None) -> str:
    """The configuration with the entry `hades`, or without it; empty where nothing is left of it."""
    try:
        document = json.loads(text or "{}")
        servers = {name: one for name, one in document.get(key, {}).items() if name != "hades"}
    except (ValueError, AttributeError) as error:
        raise SettingsError(f"{path} is no JSON object of servers ({error}); add `hades mcp` by hand") from error
    if entry is not None:
        servers["hades"] = entry
    changed = {**document, key: servers}
    if changed == document or (entry is None and key not in document):
        return text
    return json.dumps(changed, indent=2, ensure_ascii=False) + "\n" if servers or len(changed) > 1 else ""


def _announce(settings: Settings, door: Door, text: str) -> None:
    typer.echo(text, err=True)
    if door.needs_token and not Tokens(settings.home).all():
        typer.echo("no token exists yet; create one with `hades token add NAME`", err=True)


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
    path: Annotated[list[str] | None, option("Only documents whose path fits, such as docs/*.md.")] = None,
    source: Annotated[list[str] | None, option("Only documents of this folder, corpus, source or domain.")] = None,
    type: Annotated[list[str] | None, option("Only this kind of file: markdown, python, pdf, ...")] = None,
    tag: Annotated[list[str] | None, option("Only documents that state this tag.")] = None,
    author: Annotated[list[str] | None, option("Only documents that state this author.")] = None,
) -> Answer:
    """Create a token and show it; it cannot be shown again.

    With a filter its holder asks questions of these documents and sees nothing of any other.
    """
    settings = load_settings()
    paths, sources, types, tags, authors = (tuple(values or ()) for values in (path, source, type, tag, author))
    limit = DocumentFilter(None, paths, sources, types, tags, authors)
    given = None if limit.is_open else limit
    text, token = Tokens(settings.home).add(name, Mode(mode), utc_now(), settings.tenant, given)
    note = Text("Save it now: only its hash is stored, so it cannot be shown again.", style="dim")
    return Answer({**_show(token), "token": text}, (text, note))


@local_command("token list")
def list_tokens() -> Answer:
    """List the tokens: name, mode and id. The text of a token is not stored."""
    tokens = [_show(token) for token in Tokens(load_settings().home).all()]
    view = list_records(tokens, "name mode tenant id created=created_at limited_to=only")
    return Answer(
        {"tokens": tokens}, (view if tokens else "there is no token; create one with `hades token add NAME`",)
    )


@local_command("token revoke")
def revoke_token(name: Annotated[str, argument("Name or id of the token.", "NAME")]) -> Answer:
    """Revoke a token; running services refuse it from the next request on."""
    token = Tokens(load_settings().home).revoke(name)
    return Answer({"revoked": _show(token)}, (f"{token.name} ({token.id}) is revoked",))


def _show(token: Token) -> dict[str, Any]:
    """A token without its hash."""
    return {name: value for name, value in asdict(token).items() if name != "sha256"}


QUARANTINE = "quarantine"
_SHOWN, _MAX_LISTED = 5, 1_000
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
            whole = where.get("holds", ALL) == ALL  # a smaller database has nothing to ingest or build
            stale = {}
            if whole:  # what the next `hades ingest` would still have to do
                waiting = sum(Phase.CHUNKS not in entry.phases for entry in entries(store).values())
                without = store.count("doc_chunks", where=[Term("embedding_model", "is_null")])
                stale = {"documents to cut": waiting, "chunks to embed": without}
            rows = scan_rows(store, QUARANTINE, columns=["uri", "reason", "detail"])
            set_aside = sorted(islice(rows, _MAX_LISTED), key=lambda row: str(row["uri"]))
            night = forecast_build(store, settings.home, paid_models(settings)) if whole else {}
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
        "runs": last_runs(settings.home),
        "nightly": night,
    }
    return Answer(document, _status_view(document))


def forecast_table(stages: Mapping[str, float | None]) -> Table:
    """The stages that have work to do, with the time that each will take."""
    known = [seconds for seconds in stages.values() if seconds is not None]
    rows = {**stages, "together": sum(known) if known else None}
    shown = ((name, "not measured yet" if value is None else f"{value:,.1f}") for name, value in rows.items())
    return table(("stage", "seconds"), shown, title="next build")


def cost_sentence(cost: Mapping[str, Any]) -> str:
    """What paid models would be sent and what that costs."""
    if not (cost["embedding_tokens"] or cost["calls"]):
        return "cost: 0 (nothing to send to a paid model)"
    sent, written = f"{cost['prompt_tokens']:,} tokens sent", f"{cost['completion_tokens']:,} written"
    parts = [f"{cost['embedding_tokens']:,} tokens to embed"] if cost["embedding_tokens"] else []
    parts += [f"at most {cost['calls']:,} summaries of topics ({sent}, {written})"] if cost["calls"] else []
    told = "not known; set HADES_EMBEDDER_PRICE, HADES_LLM_INPUT_PRICE and HADES_LLM_OUTPUT_PRICE (a million tokens)"
    if cost["price"] is not None:
        told = f"about {cost['price']:,.4f} in the currency of your prices"
    return f"cost: {told}; {' and '.join(parts)}"


def _status_view(document: dict[str, Any]) -> Iterator[RenderableType]:
    store = dict(document["store"])
    if (size := store.pop("bytes", None)) is not None:
        store["size"] = f"{int(size) / _MEBIBYTE:,.1f} MiB"
    yield "\n".join(f"{name}: {value}" for name, value in store.items())
    held = [(one.name, document["counts"][one.name], Text(one.about, style="dim")) for one in COLLECTIONS]
    if rows := [row for row in held if row[1]]:  # `--json` has the empty ones too
        yield table(("collection", "rows", "holds"), rows)
    yield from _notes(document)
    if night := document["nightly"]:
        yield forecast_table(night["stages"])
        yield cost_sentence(night["cost"])
        if night["runs"]:
            yield f"times: median of {night['runs']} earlier build(s); a change of your files may add stages"
        if lesson := what_use_taught(night["learned"]):
            yield f"the last build: {lesson}"


def _notes(document: Mapping[str, Any]) -> Iterator[str]:
    aside = document["set_aside"]
    if aside:
        yield f"set aside: {document['quarantine']:,} (all of them with --json)"
    yield from (f"  {one['uri']}: {one['detail'] or one['reason']}" for one in aside[:_SHOWN])
    yield from (f"waiting: {count:,} {what}" for what, count in document["stale"].items() if count)
    for run in document["runs"]:
        yield f"build {run['build']}: {sum(run['seconds'].values()):.0f} s, snapshot {run['snapshot']}"
    if not document["counts"]["documents"]:
        lacks = "no documents yet" if document["provisioned"] else "nothing is here yet"
        yield f"{lacks}. Next: hades ingest documents PATH (or workspace PATH), then hades build"
    elif not document["runs"]:
        yield "nothing was built yet. Next: hades build"
