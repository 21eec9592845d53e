"""Three modes by endpoint; a write through the read-only handle is refused before anything is
sent.
"""

from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pytest
from pydantic import SecretStr

from aql import load
from hades.errors import ReadOnly, SettingsError, StoreUnavailable
from hades.ports.store import Mode, Term
from hades.settings.load import load_settings
from hades.stores.arango.client import ArangoEndpoints, is_modifying
from hades.stores.arango.errors import RetryPolicy
from hades.stores.arango.store import ArangoStore

NOBODY = "http://127.0.0.1:9"  # the discard port: whoever sends there gets nothing
ROWS = pa.table({"_key": ["a"], "name": ["A"], "name_lower": ["a"], "type": ["concept"]})
ONCE = RetryPolicy(attempts=1)


def test_a_socket_wins_over_the_url_for_its_own_mode_only() -> None:
    endpoints = ArangoEndpoints(url="http://db:8529/", ro_socket="/run/hades/readonly/arangod.sock")
    assert str(endpoints.of(Mode.READ_ONLY)) == "unix:/run/hades/readonly/arangod.sock"
    assert str(endpoints.of(Mode.READ_WRITE)) == "http://db:8529"
    assert str(endpoints.of(Mode.ADMIN)) == "http://db:8529"


@pytest.mark.parametrize(
    ("mode", "variable"),
    [
        (Mode.READ_ONLY, "ARANGO_RO_UDS"),
        (Mode.READ_WRITE, "ARANGO_RW_UDS"),
        (Mode.ADMIN, "ARANGO_ADMIN_UDS"),
    ],
)
def test_a_mode_without_an_endpoint_says_which_variable_to_set(mode: Mode, variable: str) -> None:
    others = {"ro_socket": Path("/a"), "rw_socket": Path("/b"), "admin_socket": Path("/c")}
    others.pop(
        {Mode.READ_ONLY: "ro_socket", Mode.READ_WRITE: "rw_socket", Mode.ADMIN: "admin_socket"}[
            mode
        ]
    )
    with pytest.raises(SettingsError, match=rf"set {variable} to a socket, or HADES_ARANGO_URL"):
        ArangoStore(ArangoEndpoints(**others), mode)


@pytest.mark.parametrize(
    "url",
    ["http://root:hush@db:8529", "http://root@db", "ftp://db", "db:8529", "http://a,http://b"],
)
def test_an_address_that_cannot_be_used_is_refused_without_repeating_it(url: str) -> None:
    with pytest.raises(SettingsError) as caught:
        load_settings({"HADES_ARANGO_URL": url})
    assert "hush" not in str(caught.value)


@pytest.mark.parametrize("password", ["hush", SecretStr("hush")])
def test_the_password_shows_nowhere(password: SecretStr | str) -> None:
    endpoints = ArangoEndpoints(url=NOBODY, user="kg", password=password)
    store = ArangoStore(endpoints, Mode.READ_WRITE, retry=ONCE)
    with pytest.raises(StoreUnavailable) as caught:
        store.describe()
    error: BaseException | None = caught.value
    while error is not None:
        assert "hush" not in f"{error!r} {error}"
        error = error.__cause__ or error.__context__
    assert "hush" not in repr(endpoints)
    assert endpoints.account == ("kg", "hush")


@pytest.mark.parametrize(
    "write",
    [
        lambda store: store.upsert("entities", ROWS),
        lambda store: store.patch("entities", ROWS),
        lambda store: store.delete("entities", keys=["a"]),
        lambda store: store.delete("entities", where=[Term("type", "==", "concept")]),
        lambda store: store.transaction(["entities"]).__enter__(),
        lambda store: store.provision(),
        lambda store: store.session.query(
            load("rows/delete_keys"),
            {"@collection": "entities", "keys": []},
            action="sneaking a write in",
        ),
    ],
)
def test_a_read_only_handle_refuses_writes_before_anything_is_sent(
    write: Callable[[ArangoStore], object],
) -> None:
    store = ArangoStore(ArangoEndpoints(url=NOBODY), Mode.READ_ONLY, retry=ONCE)
    with pytest.raises(ReadOnly):
        write(store)


def test_only_the_deleting_queries_modify() -> None:
    texts = Path(__file__).parents[4] / "aql"
    writing = {path.stem for path in texts.glob("*/*.aql") if is_modifying(path.read_text("utf-8"))}
    assert writing == {"delete_keys", "delete_pieces", "delete_abandoned"}
