"""`hades mcp install`: the entry by which an agent starts `hades mcp`, written and taken out."""

from __future__ import annotations

import json
import shutil
import sys
from collections.abc import Mapping, Sequence
from difflib import unified_diff
from pathlib import Path
from typing import Annotated, Any, Literal

import typer

from hades.errors import SettingsError
from hades.files import write_whole
from hades.settings.load import configuration_folder, load_settings
from hades.settings.tree import Settings
from hades.surfaces.capabilities.capability import AccessMode
from hades.surfaces.cli.output import Answer, argument, local_command, option
from hades.surfaces.cli.serve import MCP_MODES
from schemas.record import JsonObject

FORMER = "former_mcp_entries.json"
Client = Literal["claude-code", "claude-desktop", "cursor", "vscode"]


@local_command("mcp install")
def install_mcp(
    client: Annotated[Client, argument("The agent.", "CLIENT")],
    mode: Annotated[AccessMode, option(MCP_MODES)] = "ro",
    undo: Annotated[
        bool, option("Take the entry out again, and put back what it replaced.", "--undo")
    ] = False,
    yes: Annotated[bool, option("Write without asking.", "--yes")] = False,
) -> Answer:
    """Write the configuration by which an agent starts `hades mcp`; the difference is shown first.

    The files of claude-code, cursor and vscode are those of the project in this folder. A server
    of your own that is called hades is kept aside, and `--undo` puts it back.
    """
    path = _file_of(client)
    key = "servers" if client == "vscode" else "mcpServers"
    text = path.read_text("utf-8") if path.exists() else ""
    document = _read_configuration(path, text)
    current = _servers_in(path, document, key).get("hades")
    former = _former_entries()

    if not undo:
        entry: Any = _client_entry(load_settings(), mode)
    elif current is None or _is_ours(current):
        entry = former.get(str(path.absolute()))
    else:
        entry = current  # nobody installed it by this command

    new_text = _with_entry(document, text, key, entry)
    lines = list(
        unified_diff(
            text.splitlines(),
            new_text.splitlines(),
            str(path),
            str(path),
            lineterm="",
        )
    )
    is_written = bool(lines) and (yes or _is_confirmed(lines))

    if is_written:
        if undo:
            former.pop(str(path.absolute()), None)
        elif current is not None and not _is_ours(current):
            former[str(path.absolute())] = current

        _keep_former(former)
        _write_configuration(path, new_text)

    outcome = "nothing to change"
    if is_written:
        outcome = f"{path} is written; start {client} again"
    elif lines:
        outcome = "not written; give --yes to write it"

    report = {
        "client": client,
        "path": str(path),
        "difference": lines,
        "written": is_written,
    }
    return Answer(
        report,
        ("\n".join(lines), outcome),
        ok=is_written or not lines,
    )


def _is_confirmed(lines: Sequence[str]) -> bool:
    """Whether a person at a terminal wants this difference written."""
    question = "\n".join([*lines, "", "Write this?"])
    return sys.stdin.isatty() and typer.confirm(question, err=True)


def _file_of(client: Client) -> Path:
    """The configuration file of an agent."""
    desktop = {
        "darwin": "Library/Application Support",
        "win32": "AppData/Roaming",
    }.get(
        sys.platform,
        ".config",
    )
    return {
        "claude-code": Path(".mcp.json"),
        "cursor": Path(".cursor/mcp.json"),
        "vscode": Path(".vscode/mcp.json"),
        "claude-desktop": Path.home() / desktop / "Claude" / "claude_desktop_config.json",
    }[client]


def _client_entry(settings: Settings, mode: str) -> JsonObject:
    """How the agent starts the server, wherever it is started itself."""
    program = shutil.which("hades")
    if program:
        command = [program]
    else:
        command = [sys.executable, "-m", "hades.surfaces.cli.commands"]

    environment = {
        "HADES_HOME": str(settings.home.resolve()),
        "HADES_EMBEDDER": settings.embedder,
    }
    return {
        "command": command[0],
        "args": [*command[1:], "mcp", "--mode", mode],
        "env": environment,
    }


def _is_ours(entry: Any) -> bool:
    """Whether this command wrote an entry, now or before."""
    if isinstance(entry, dict):
        arguments = entry.get("args")
    else:
        arguments = None

    return isinstance(arguments, list) and arguments[-3:-1] == ["mcp", "--mode"]


def _read_configuration(path: Path, text: str) -> JsonObject:
    """The configuration as an object."""
    try:
        document = json.loads(text or "{}")
    except ValueError as error:
        raise _bad_configuration(path, str(error)) from error

    if not isinstance(document, dict):
        raise _bad_configuration(path, f"it holds {type(document).__name__}")

    return document


def _servers_in(
    path: Path,
    document: Mapping[str, Any],
    key: str,
) -> JsonObject:
    """The servers by name."""
    servers = document.get(key, {})
    if not isinstance(servers, dict):
        raise _bad_configuration(path, f"{key!r} holds {type(servers).__name__}")

    return servers


def _bad_configuration(path: Path, problem: str) -> SettingsError:
    return SettingsError(
        f"{path} is no JSON object of servers ({problem}); add `hades mcp` by hand"
    )


def _with_entry(
    document: JsonObject,
    text: str,
    key: str,
    entry: Any,
) -> str:
    """The configuration with the entry `hades`, or without it; empty where nothing is left."""
    servers = {
        **document.get(key, {}),
        "hades": entry,
    }
    if entry is None:
        del servers["hades"]

    changed = {**document, key: servers}
    if changed == document or (entry is None and key not in document):
        return text
    if not servers and len(changed) == 1:
        return ""

    return json.dumps(changed, indent=2, ensure_ascii=False) + "\n"


def _write_configuration(path: Path, text: str) -> None:
    if text:
        write_whole(path, text)
    else:
        path.unlink()


def _former_entries() -> JsonObject:
    """Servers of the person's own that an installation replaced, by configuration file."""
    folder = configuration_folder()
    if folder is None or not (folder / FORMER).exists():
        return {}

    return _read_configuration(folder / FORMER, (folder / FORMER).read_text("utf-8"))


def _keep_former(former: Mapping[str, Any]) -> None:
    """Keep them; an entry may hold credentials, so for this user alone."""
    if former == _former_entries():
        return

    folder = configuration_folder()
    if folder is None:
        raise SettingsError(
            "the server called hades that is there could not be kept, because HOME is not set; "
            "rename it in the file first"
        )

    write_whole(
        folder / FORMER,
        json.dumps(former, indent=1),
        0o600,
    )
