"""The servers of a cluster and the copies of each shard, for `hades doctor`."""

from __future__ import annotations

from collections.abc import Iterator

from arango.exceptions import ArangoServerError
from arango.request import Request

from hades.ports.store import Check
from hades.stores.arango.client import ArangoSession
from hades.stores.arango.errors import TransportError
from schemas.record import JsonObject

COORDINATOR = "COORDINATOR"


def is_cluster(session: ArangoSession) -> bool:
    """Whether the address is that of a cluster; false where the account may not ask."""
    try:
        return bool(session.db.role() == COORDINATOR)
    except ArangoServerError:
        return False


def check_cluster(session: ArangoSession) -> Iterator[Check]:
    """Servers that answer, and shards whose copies are complete; nothing of a single server."""
    if not is_cluster(session):
        return

    health = _ask(session, "/_admin/cluster/health").get("Health", {})
    servers = []
    for server in health.values():
        if server.get("Role") == "DBServer":
            servers.append(server)

    if servers:
        yield _check_servers(servers)

    collections = _ask(session, "/_admin/cluster/shardDistribution").get("results", {})
    if collections:
        yield _check_copies(list(collections.values()))


def _check_servers(servers: list[JsonObject]) -> Check:
    away = sorted(server["ShortName"] for server in servers if server["Status"] != "GOOD")
    found = f"{len(servers) - len(away)} of {len(servers)} answer"
    if not away:
        return Check("database servers", "ok", found)

    step = "start it again; rows without another copy cannot be read or written until then"
    return Check(
        "database servers",
        "warn",
        f"{found}; away: {', '.join(away)}",
        step,
    )


def _check_copies(collections: list[JsonObject]) -> Check:
    """How many servers hold each row, and which shards lack a copy that is up to date."""
    shards = 0
    behind = 0

    copies: list[int] = []
    for collection in collections:
        for name, planned in collection["Plan"].items():
            current = collection["Current"].get(name, {})
            shards += 1
            copies.append(1 + len(planned["followers"]))
            behind += not set(planned["followers"]) <= set(current.get("followers", ()))

    each = f"{shards} shards, each on {min(copies, default=0)} servers"
    if behind:
        step = "wait until they have caught up; a server lost before then takes rows along"
        return Check(
            "copies",
            "warn",
            f"{each}; {behind} lack a copy that is up to date",
            step,
        )

    if min(copies, default=0) < 2:
        step = (
            "a lost server takes rows along: `hades backup`, then `hades provision --replicas 2` "
            "with another HADES_ARANGO_DATABASE, then `hades restore`"
        )
        return Check("copies", "warn", each, step)

    return Check("copies", "ok", each)


def _ask(session: ArangoSession, endpoint: str) -> JsonObject:
    """What a coordinator answers; nothing where this account may not ask."""
    try:
        answer = session.db.conn.send_request(Request(method="get", endpoint=endpoint))
    except (TransportError, ArangoServerError):
        return {}

    if answer.is_success and isinstance(answer.body, dict):
        return answer.body

    return {}
