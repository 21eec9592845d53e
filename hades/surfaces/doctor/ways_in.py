"""Who can reach the graph, and what the graph must reach: sockets, tokens, the team's servers."""

from __future__ import annotations

import os
import socket
import stat
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urlsplit

from hades.settings import Settings
from hades.surfaces.doctor.finding import Check

ANSWER_SECONDS = 3.0
TOKENS = "tokens.json"
# Where the units of deployments/systemd put the service's own sockets.
SERVED = {
    "read-only": Path("/run/hades/readonly/hades.sock"),
    "read-write": Path("/run/hades/readwrite/hades.sock"),
    "admin": Path("/run/hades/admin/hades.sock"),
}
_RIGHTS = {"read-only": 0o660, "read-write": 0o600, "admin": 0o600}


def check_sockets(settings: Settings) -> Iterator[Check]:
    """Sockets that the settings name must be there; any socket must let in nobody but those it is meant for."""
    named = {
        "read-only": settings.arango_ro_uds,
        "read-write": settings.arango_rw_uds,
        "admin": settings.arango_admin_uds,
    }
    for kind, path in named.items():
        if path is not None:
            yield _check_socket(f"ArangoDB, {kind}", path, _RIGHTS[kind])
    for kind, path in SERVED.items():
        if _exists(path):
            yield _check_socket(f"HADES, {kind}", path, _RIGHTS[kind])


def check_tokens(home: Path) -> Iterator[Check]:
    """The file of token hashes is for its owner alone."""
    path = home / TOKENS
    if path.is_file():
        rights = stat.S_IMODE(path.stat().st_mode)
        if rights & 0o077:
            yield Check("tokens", "fail", f"{path} has the rights {rights:04o}, expected 0600", f"chmod 600 {path}")
        else:
            yield Check("tokens", "ok", f"{path}, for its owner alone")


def check_servers(settings: Settings) -> Iterator[Check]:
    """Prefect, MLflow and the collector, where the settings name one; nothing but a greeting is sent."""
    if (prefect := settings.prefect_api_url) is not None:
        step = "start it (prefect server start), or unset PREFECT_API_URL to run flows without one"
        yield _check_answer("prefect", prefect, f"{prefect.rstrip('/')}/health", step)
    if (mlflow := settings.mlflow_uri) is not None and urlsplit(mlflow).scheme in ("http", "https"):
        step = "start it (mlflow server), or unset HADES_MLFLOW_URI to keep the registry under HADES_HOME"
        yield _check_answer("mlflow", mlflow, f"{mlflow.rstrip('/')}/health", step)
    if (collector := settings.otlp_endpoint) is not None:
        yield _check_collector(collector)


def _check_socket(name: str, path: Path, allowed: int) -> Check:
    try:
        status = path.stat()
    except OSError as error:
        step = "start what listens there, or correct the variable"
        return Check("sockets", "fail", f"{name}: {path} cannot be seen ({error.strerror})", step)
    if not stat.S_ISSOCK(status.st_mode):
        return Check("sockets", "fail", f"{name}: {path} is no socket", "correct the variable")
    rights = stat.S_IMODE(status.st_mode)
    if rights & ~allowed:
        found = f"{name}: {path} has the rights {rights:04o}, expected {allowed:04o}"
        return Check("sockets", "fail", found, f"chmod {allowed:04o} {path}, or SocketMode= in its unit")
    if not os.access(path, os.W_OK):
        return Check("sockets", "warn", f"{name}: {path} is not for this user", "join its group, or ask its owner")
    return Check("sockets", "ok", f"{name}: {path}, {rights:04o}")


def _check_answer(name: str, shown: str, address: str, step: str) -> Check:
    try:
        with urllib.request.urlopen(address, timeout=ANSWER_SECONDS) as answer:
            return Check(name, "ok", f"{shown} answers ({answer.status})")
    except urllib.error.HTTPError as error:
        return Check(name, "warn", f"{shown} answers {error.code} to {urlsplit(address).path}", "is it the right one?")
    except (OSError, ValueError) as error:
        return Check(name, "fail", f"{shown} does not answer ({getattr(error, 'reason', error)})", step)


def _check_collector(address: str) -> Check:
    parts = urlsplit(address)
    port = parts.port or (443 if parts.scheme == "https" else 80)
    try:
        with socket.create_connection((parts.hostname or "", port), timeout=ANSWER_SECONDS):
            return Check("collector", "ok", f"{address} listens")
    except OSError as error:
        step = "start it, or unset OTEL_EXPORTER_OTLP_ENDPOINT; answers do not wait for it"
        return Check("collector", "warn", f"{address} does not listen ({error})", step)


def _exists(path: Path) -> bool:
    try:
        return path.exists()
    except OSError:  # a folder that this user may not enter holds nothing for it
        return False
