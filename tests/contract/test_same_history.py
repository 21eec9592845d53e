"""The same history ends in the same graph on every store: with a small limit, and on a server that
fails often.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cache
from pathlib import Path
from tempfile import mkdtemp

import pytest

from hades.night.release.publish import roll_back_graph
from hades.ports.store import Mode
from hades.stores.arango import transaction
from hades.stores.arango.errors import RetryPolicy
from hades.wiring import open_hades, open_store
from tests.arango_double.faults import every
from tests.arango_double.server import ArangoDouble
from tests.contract.conftest import PASSWORD, REAL_SERVER, SMALL
from tests.homes import settings_of

pytestmark = pytest.mark.skipif(
    bool(REAL_SERVER), reason="a server is asked the same by the commands (test_zz)"
)
NIGHTS = (
    datetime(2026, 3, 2, tzinfo=UTC),
    datetime(2026, 3, 3, tzinfo=UTC),
    datetime(2026, 3, 4, tzinfo=UTC),
)
CITIES = (
    "Aachen",
    "Bremen",
    "Celle",
    "Dresden",
    "Essen",
    "Fulda",
    "Gotha",
    "Halle",
    "Ilmenau",
    "Jena",
)
COUNTED = (
    "documents",
    "doc_chunks",
    "entities",
    "relations",
    "mentions",
    "clusters",
    "bridge_cache",
)


@dataclass(frozen=True)
class History:
    """Names of the published snapshots, which are hashes of what they hold, and how many rows there
    are at the end.
    """

    snapshots: tuple[str, ...]
    counts: dict[str, int]


def live_through(folder: Path, cities: Sequence[str] = CITIES, **settings: str) -> History:
    """Two nights, back to the first, a forgotten document, and a third night."""
    corpus = folder / "corpus.jsonl"
    rows = [
        {
            "id": f"d{n}",
            "title": city,
            "text": f"{city} is a town. {city} lies on the road to {cities[n - 1]}.",
        }
        for n, city in enumerate(cities)
    ]
    chosen = settings_of(folder / "home", **settings)
    open_store(chosen, Mode.ADMIN).provision()
    names = []
    with open_hades(chosen) as hades:
        corpus.write_text("\n".join(map(json.dumps, rows[:-2])))
        hades.ingest.passages(corpus)
        names.append(hades.build(as_of=NIGHTS[0])["released"]["snapshot"])
        corpus.write_text("\n".join(map(json.dumps, rows)))
        names.append(hades.build(as_of=NIGHTS[1])["released"]["snapshot"])
        names.append(roll_back_graph(hades.build_context, names[0]).snapshot)
        assert hades.forget(["d3"]).is_complete
        corpus.write_text("\n".join(json.dumps(row) for row in rows if row["id"] != "d3"))
        names.append(hades.build(as_of=NIGHTS[2])["released"]["snapshot"])
        held = hades.store.counts()
        assert hades.store.dangling() == {}
    return History(tuple(names), {name: held[name] for name in COUNTED})


@cache
def embedded_history() -> History:
    return live_through(Path(mkdtemp(prefix="hades-history-")))


def on_server(folder: Path, server: ArangoDouble, cities: Sequence[str] = CITIES) -> History:
    return live_through(
        folder,
        cities,
        HADES_STORE="arango",
        HADES_ARANGO_URL=server.url,
        HADES_ARANGO_DATABASE="kg",
        HADES_ARANGO_USER="root",
        HADES_ARANGO_PASSWORD=PASSWORD,
    )


@pytest.mark.soak  # the next test claims the same of a server that also fails
def test_a_server_with_a_small_limit_ends_where_the_embedded_store_does(tmp_path: Path) -> None:
    with ArangoDouble(
        root_password=PASSWORD, transaction_size_limit=SMALL, tells_options=True
    ) as server:
        assert on_server(tmp_path, server) == embedded_history()


def test_nothing_is_lost_or_doubled_on_a_server_that_restarts_and_fails_in_every_stage(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(transaction, "_SETTLED_S", 0.0)
    monkeypatch.setattr(RetryPolicy, "pauses", lambda policy: [0.0] * (policy.attempts - 1))
    with ArangoDouble(
        root_password=PASSWORD, transaction_size_limit=SMALL, tells_options=True
    ) as server:
        faults = server.faults
        faults.http_error(503, 38, times=1_000, matching=every(53))  # starting up
        faults.error(1496, times=1_000, matching=every(61))  # another server leads the shard now
        faults.error(21003, times=1_000, matching=every(67))  # queue full
        faults.drop_before(times=1_000, matching=every(71))
        faults.drop_after(times=1_000, matching=every(5, "PUT /_api/transaction"))  # after a commit
        faults.http_error(
            503, 30, times=1_000, matching=every(83, before=server.restart)
        )  # restart
        history = on_server(tmp_path, server)
        happened = 6_000 - faults.pending()
        faults.clear()
    assert happened > 30
    assert history == embedded_history()


@pytest.mark.soak
def test_as_many_passages_as_a_benchmark_has_end_the_same_with_the_default_limit(
    tmp_path: Path,
) -> None:
    cities = [
        f"{first}{second.lower()} {n}" for n in range(20) for first in CITIES for second in CITIES
    ][:1_971]
    for folder in ("embedded", "server"):
        (tmp_path / folder).mkdir()
    with ArangoDouble(root_password=PASSWORD) as server:
        assert on_server(tmp_path / "server", server, cities) == live_through(
            tmp_path / "embedded", cities
        )
