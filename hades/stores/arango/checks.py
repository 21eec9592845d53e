"""What the server is and whether HADES can rely on it: version, sharding, rights, clock, limits, unfinished writes."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Literal, cast

from arango.exceptions import ArangoServerError

from aql import load
from hades.errors import StoreError
from hades.stores.arango import journal
from hades.stores.arango.client import ArangoSession

OLDEST, ADVISED = (3, 12, 0), (3, 12, 4)
CLOCK_S = 5.0
_COORDINATOR = "COORDINATOR"


class WrongServer(StoreError):
    """A server that HADES cannot keep its promises on."""


@dataclass(frozen=True)
class Finding:
    """One line of the examination: what, how it stands, what was found, what to do."""

    name: str
    status: Literal["ok", "warn", "fail"]
    found: str
    next: str = ""


def check_version(session: ArangoSession) -> list[str]:
    """Refuse a server that is too old; say what is off on one that is older than advised."""
    if session.version_numbers < OLDEST:
        raise WrongServer(
            f"the server is ArangoDB {session.version}; HADES needs 3.12.0, better 3.12.9 or newer: upgrade the server"
        )
    if session.version_numbers < ADVISED:
        return [_old(session)]
    return []


def check_sharding(session: ArangoSession) -> None:
    """Refuse a database of a cluster that spreads collections over servers: order and atomic commits need one."""
    sharding = _sharding(session)
    if sharding is not None and sharding != "single":
        raise WrongServer(
            f"the database {session.database_name} is sharded ({sharding or 'flexible'}), expected OneShard; "
            "move it away or choose another HADES_ARANGO_DATABASE, and let `hades provision` create it"
        )


def findings(session: ArangoSession) -> Iterator[Finding]:
    """Everything that can be asked with this account."""
    old = session.version_numbers < ADVISED
    yield Finding("server version", "warn" if old else "ok", session.version, _old(session) if old else "")
    sharding = _sharding(session)
    if sharding is None:
        yield Finding("sharding", "ok", "a single server")
    else:
        wrong = sharding != "single"
        step = "let `hades provision` create a database of its own" if wrong else ""
        yield Finding("sharding", "fail" if wrong else "ok", sharding or "flexible", step)
    yield _clock(session)
    yield _rights(session)
    size = session.unit_size
    yield Finding(
        "transaction limit",
        "ok",
        f"{size.limit_bytes // 2**20} MiB ({size.source}); one unit writes at most {size.unit_bytes // 2**20} MiB",
    )
    left = journal.complete_writes(session)
    if left is None:
        yield Finding("write journal", "fail", "missing", "hades provision")
    elif left:
        yield Finding(
            "write journal", "warn", f"{len(left)} unfinished writes", "the next build or ingest finishes them"
        )
    else:
        yield Finding("write journal", "ok", "nothing unfinished")


def _clock(session: ArangoSession) -> Finding:
    began = time.time()
    said = session.query(load("maintenance/read_clock"), {}, action="asking the server's time")[0] / 1000
    skew = said - (began + time.time()) / 2
    if abs(skew) > CLOCK_S:
        step = "set both clocks by NTP: validity intervals are compared with the time of this machine"
        return Finding("clock", "warn", f"the server's clock differs by {skew:+.1f} s", step)
    return Finding("clock", "ok", f"within {CLOCK_S:.0f} s")


def _rights(session: ArangoSession) -> Finding:
    user = session.user
    try:
        held = session.db.permission(user, session.database_name)
    except ArangoServerError:
        return Finding("rights", "ok", f"{user}; which rights, the server does not tell this account")
    if held == "none":
        step = f"grant {user} `ro` (questions) or `rw` (builds) on {session.database_name}"
        return Finding("rights", "fail", f"{user} may not read the database", step)
    return Finding("rights", "ok", f"{user} has {held} on {session.database_name}")


def _sharding(session: ArangoSession) -> str | None:
    """How a cluster's database is sharded; None on a single server or where the account may not ask."""
    try:
        if session.db.role() != _COORDINATOR:
            return None
        properties = cast(dict[str, Any], session.db.properties())
    except ArangoServerError:
        return None
    return str(properties.get("sharding") or "")


def _old(session: ArangoSession) -> str:
    return (
        f"the server is ArangoDB {session.version}. Off on it: the vector index (searches compare every vector), and "
        "transactions larger than 128 MiB unless the server allows more. A deployment created before 3.12.4 can become "
        "read-only later: upgrade to 3.12.9 or newer before production"
    )
