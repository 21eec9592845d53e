"""The server's errors arrive in HADES's words, and never with a credential."""

import pytest
from arango.exceptions import AQLQueryExecuteError
from arango.request import Request
from arango.response import Response

from hades.errors import (
    BadQuery,
    HadesError,
    NotProvisioned,
    QueryTimeout,
    ReadOnly,
    SettingsError,
    StoreBusy,
    StoreError,
    StoreUnavailable,
)
from hades.stores.arango.errors import (
    CircuitOpen,
    CursorLost,
    Lost,
    NotArango,
    NotSent,
    TimedOut,
    TooLarge,
    TransportError,
    in_our_words,
)


def server_error(code: int | None, status: int) -> AQLQueryExecuteError:
    response = Response("post", "http://localhost/_api/cursor", {}, status, "Status", "{}")
    response.error_code, response.error_message = code, "said the server"
    return AQLQueryExecuteError(response, Request("post", "/_api/cursor"))


def raised(error: Exception, *, writes: bool) -> HadesError:
    with pytest.raises(HadesError) as caught, in_our_words("writing entities", writes=writes):
        raise error
    return caught.value


@pytest.mark.parametrize(
    ("code", "status", "expected"),
    [
        (1200, 409, StoreBusy),
        (18, 500, StoreBusy),
        (28, 500, StoreBusy),
        (29, 500, StoreBusy),
        (1653, 400, StoreBusy),
        (1654, 410, StoreBusy),
        (1655, 404, StoreBusy),
        (1478, 503, StoreUnavailable),
        (1465, 503, StoreUnavailable),
        (21003, 503, StoreUnavailable),
        (1600, 404, CursorLost),
        (1500, 410, QueryTimeout),
        (11, 403, ReadOnly),
        (1004, 403, ReadOnly),
        (None, 403, ReadOnly),
        (11, 401, SettingsError),
        (1203, 404, NotProvisioned),
        (1228, 404, NotProvisioned),
        (1924, 404, NotProvisioned),
        (32, 500, TooLarge),
        *[(code, 503, StoreUnavailable) for code in (30, 38, 1429, 1457, 1495, 1496, 21003)],
        (1601, 409, StoreBusy),
        (1501, 400, StoreError),
    ],
)
def test_each_error_number_has_its_meaning(code: int | None, status: int, expected: type[HadesError]) -> None:
    error = raised(server_error(code, status), writes=True)
    assert type(error) is expected
    assert "writing entities" in str(error)


def test_a_forbidden_read_is_about_the_account_not_the_mode() -> None:
    error = raised(server_error(11, 403), writes=False)
    assert isinstance(error, SettingsError)
    assert "may not read" in str(error)


@pytest.mark.parametrize("kind", [NotSent, Lost, TimedOut, NotArango, CircuitOpen])
def test_no_answer_is_an_unavailable_store(kind: type[TransportError]) -> None:
    error = raised(kind("nothing listens at unix:/run/x.sock"), writes=False)
    assert isinstance(error, StoreUnavailable)
    assert "nothing listens at unix:/run/x.sock" in str(error)


def test_our_own_errors_pass_unchanged() -> None:
    refused = BadQuery("no such column")
    assert raised(refused, writes=True) is refused
