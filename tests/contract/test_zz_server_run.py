"""A night's work by the commands of the docs, on the server that the environment names: only `make
test-arango`.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from aql import load
from hades.ports.store import Mode
from hades.stores.arango.read import Scope
from hades.stores.arango.rows import BulkRows
from hades.stores.arango.store import ArangoStore
from tests.contract.conftest import (
    DATABASE,
    NOT_RUN,
    QUERIES,
    REAL_SERVER,
    bound,
    executed,
    name_of,
    plans,
    real_endpoints,
)

pytestmark = pytest.mark.skipif(not REAL_SERVER, reason="needs a server: HADES_TEST_ARANGO_URL")
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


def hades(home: Path, *words: str, view: str = "snapshot") -> str:
    """What a command prints."""
    ends = real_endpoints(DATABASE)
    user, password = ends.account
    env = {
        **os.environ,
        "HADES_HOME": str(home),
        "HADES_STORE": "arango",
        "HADES_VIEW": view,
        "HADES_EMBEDDER": "hashing",
        "HADES_ARANGO_URL": str(ends.url),
        "HADES_ARANGO_DATABASE": DATABASE,
        "HADES_ARANGO_USER": user,
        "HADES_ARANGO_PASSWORD": password,
    }
    command = [sys.executable, "-m", "hades.surfaces.cli.commands", *words]
    done = subprocess.run(command, env=env, capture_output=True, text=True, check=False)
    assert done.returncode == 0, f"hades {' '.join(words)}: {done.stderr[-2000:]}"
    return done.stdout


@pytest.mark.timeout(1800)
@pytest.mark.parametrize("open_store", ["arango"], indirect=True)
def test_two_nights_a_rollback_a_backup_a_restore_and_a_forget(
    open_store: object, tmp_path: Path
) -> None:
    home, corpus = tmp_path / "home", tmp_path / "corpus.jsonl"
    rows = [
        {
            "id": f"d{n}",
            "title": city,
            "text": f"{city} is a town. {city} lies on the road to {CITIES[n - 1]}.",
        }
        for n, city in enumerate(CITIES)
    ]
    corpus.write_text("\n".join(map(json.dumps, rows[:8])))
    hades(home, "provision")
    hades(home, "ingest", "passages", str(corpus))
    hades(home, "run", "nightly")
    corpus.write_text("\n".join(map(json.dumps, rows)))
    hades(home, "ingest", "passages", str(corpus))
    hades(home, "run", "nightly")
    for view in ("snapshot", "arango"):
        answer = json.loads(
            hades(home, "query", "Which town lies on the road to Dresden?", "--json", view=view)
        )
        assert answer["passages"], f"nothing found through the {view} view: {answer['reasons']}"
    hades(home, "rollback")
    held = ArangoStore(real_endpoints(DATABASE), mode=Mode.READ_ONLY).counts()
    hades(home, "backup", str(tmp_path / "backup"))
    hades(home, "forget", "d3")
    hades(home, "restore", str(tmp_path / "backup"), "--force")
    again = ArangoStore(real_endpoints(DATABASE), mode=Mode.READ_ONLY).counts()
    assert {name: again[name] for name in ("documents", "entities", "relations", "mentions")} == {
        name: held[name] for name in ("documents", "entities", "relations", "mentions")
    }
    hades(home, "doctor")


@pytest.mark.parametrize("open_store", ["arango"], indirect=True)
def test_a_write_of_several_units_and_the_checks_of_the_server(open_store: object) -> None:
    """What no other test of the suite asks of a server with its default limits; the table counts
    it.
    """
    store = ArangoStore(
        real_endpoints(DATABASE),
        mode=Mode.READ_WRITE,
        transaction_limit_bytes=64 * 1024,
        transaction_share=0.25,
    )
    rows = [
        {"_key": f"k{n}", "name": f"n{n}", "name_lower": f"n{n}", "type": "concept"}
        for n in range(60)
    ]
    with store.bulk(["entities"]) as inside:
        inside.upsert("entities", pa.Table.from_pylist(rows))
    assert store.count("entities") == 60
    inside = BulkRows(Scope(store.session), frozenset(["entities"]), None)
    inside.upsert(
        "entities", pa.Table.from_pylist([{**row, "_key": f"x{row['_key']}"} for row in rows])
    )
    inside.give_up()
    assert store.count("entities") == 60
    assert store.session.db.collection("write_journal").count() == 0
    with store.transaction(
        ["entities"]
    ) as inside:  # what a scan of more than ten seconds does in between
        assert inside.count("entities") == 60
    assert store.session.query(
        load("maintenance/keep_alive"), {}, action="keeping a transaction"
    ) == [1]
    assert {one.name for one in store.findings()} >= {"server version", "clock", "write journal"}
    assert store.check() == []


@pytest.mark.parametrize("open_store", ["arango"], indirect=True)
def test_the_vector_index_answers_like_exact_search_or_provisioning_says_why_there_is_none(
    open_store: object,
) -> None:
    exact = ArangoStore(real_endpoints(DATABASE), mode=Mode.ADMIN)
    near = ArangoStore(real_endpoints(DATABASE), mode=Mode.ADMIN, approximate=True)
    chance = np.random.default_rng(7)
    vectors = chance.normal(size=(400, 8)).astype(np.float32)
    rows = [
        {
            "_key": f"v{n}",
            "name": f"v{n}",
            "name_lower": f"v{n}",
            "type": "concept",
            "embedding": one.tolist(),
            "embedding_model": "toy@1/8",
        }
        for n, one in enumerate(vectors)
    ]
    exact.upsert("entities", pa.Table.from_pylist(rows))
    report = near.provision()
    if not near.session.has_vector_index:
        NOT_RUN["maintenance/count_vectors"] = "needs a server with --vector-index"
        assert any("search is exact" in note for note in report.notes)
    is_indexed, found, wanted = near.session.has_vector_index, 0, 0
    for asked in chance.normal(size=(20, 8)).tolist():
        best = set(ask(exact, "view/find_near", vectors=[asked]))
        binds = {"@collection": "entities", "field": "embedding", "vector": asked, "probes": 20}
        found += len(
            best & set(ask(near, "view/find_near_by_index", **binds) if is_indexed else best)
        )
        wanted += len(best)
    told = f"finds {found / wanted:.0%} of the 10 nearest"
    if (
        "view/find_near_by_index" in bound
    ):  # explained here, for without the index the server refuses the query
        told += (
            f"; {', '.join(reached_by(near.session.db, 'view/find_near_by_index')) or 'no index'}"
        )
    plans["view/find_near_by_index"] = told
    exact.provision()  # drops the index again
    assert found / wanted >= 0.8, f"recall of the vector index {found / wanted:.2f}"


def ask(store: ArangoStore, name: str, **binds: object) -> list[str]:
    return store.session.query(
        load(name), {"model": "toy@1/8", "limit": 10, **binds}, action="comparing vectors"
    )


# How the server reaches rows where a header names an index; a query that reads every row is named
# by its header too. The journal holds few rows or none: its plans are shown and not judged.
UNJUDGED = ("journal/",)
FULL_SCAN = "EnumerateCollectionNode"
REACHES_BY = {
    "IndexNode",
    "TraversalNode",
    "SingleRemoteOperationNode",
    "EnumerateViewNode",
    "EnumerateNearVectorNode",
}


@pytest.mark.parametrize("open_store", ["arango"], indirect=True)
def test_every_query_that_ran_uses_the_index_that_its_header_names(open_store: object) -> None:
    db = ArangoStore(real_endpoints(DATABASE), mode=Mode.READ_ONLY).session.db
    is_double = db.details().get("platform") == "double"  # it plans otherwise than a server
    wrong = []
    for name in sorted({*bound} - {"", "view/find_near_by_index"}):
        plans[name] = ", ".join(reached_by(db, name)) or "no index"
        header = load(name).partition("// index: ")[2].partition("\n")[0]
        read_whole = (
            FULL_SCAN in plans[name]
            and not header.startswith("none")
            and not name.startswith(UNJUDGED)
        )
        if read_whole and not is_double:
            wrong.append(
                f"{name}: the header names {header!r}, the server reads every row ({plans[name]})"
            )
    assert wrong == []


def test_every_query_file_ran() -> None:
    """Last: a file that the whole suite does not run is used by nothing, or is not tested on a
    server.
    """
    idle = [name for name in map(name_of, QUERIES) if name not in executed and name not in NOT_RUN]
    assert idle == []


def reached_by(db: Any, name: str) -> dict[str, None]:
    """The nodes of the server's plan that reach rows, and the indexes that they use, each once.

    The plan lists the nodes of subqueries beside those of the query itself. Rows of the journal are
    few or none.
    """
    # For a list without members the server plans no search at all.
    binds = {bind: value if value != [] else ["none/0"] for bind, value in bound[name].items()}
    plan: Any = db.aql.explain(load(name), bind_vars=binds)
    nodes = [node for node in plan["nodes"] if node.get("collection") != "write_journal"]
    kinds = [node["type"] for node in nodes if node["type"] in {FULL_SCAN, *REACHES_BY}]
    named = [
        index["name"] for node in nodes for index in node.get("indexes", ()) if "name" in index
    ]
    return dict.fromkeys([*kinds, *named])
