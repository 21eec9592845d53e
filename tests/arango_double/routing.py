"""Requests, responses and the table of HTTP routes."""

import json
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from tests.arango_double.documents import Database
from tests.arango_double.errors import ServerError
from tests.arango_double.transactions import Transaction
from tests.arango_double.users import Access

if TYPE_CHECKING:
    from tests.arango_double.state import State

_MISSING: Any = object()


@dataclass(slots=True)
class Response:
    """Status, JSON body (or none) and extra headers."""

    status: int
    body: Any = None
    headers: dict[str, str] = field(default_factory=dict)


@dataclass(slots=True)
class Request:
    """A parsed request, already authenticated and bound to a database."""

    state: "State"
    method: str
    path: str
    params: dict[str, str]
    headers: dict[str, str]
    raw: bytes
    database: Database
    access: Access
    _json: Any = _MISSING

    def allow(self, *names: str) -> None:
        """Refuse query parameters that the route does not know; a server would ignore them."""
        unknown = set(self.params) - set(names)
        if unknown:
            raise ServerError(10, f"the test double knows no query parameter {', '.join(sorted(unknown))} here")

    def flag(self, name: str, default: bool = False) -> bool:
        value = self.params.get(name)
        return default if value is None else value.lower() in ("1", "true", "yes", "on", "y")

    def json(self) -> Any:
        """The body; anything that is not JSON is error 600."""
        if self._json is _MISSING:
            try:
                self._json = json.loads(self.raw, parse_float=_number, parse_constant=_refuse)
            except ValueError as error:
                raise ServerError(600, "VPackError error: invalid JSON object") from error
        return self._json

    def object(self, *names: str) -> dict[str, Any]:
        """The body as an object with only the given attributes (any, when none are given)."""
        body = self.json()
        if not isinstance(body, dict):
            raise ServerError(10, "expecting a JSON object")
        unknown = set(body) - set(names)
        if names and unknown:
            raise ServerError(10, f"the test double knows no attribute {', '.join(sorted(unknown))} here")
        return body

    def changes_structure(self) -> None:
        """Databases, collections, indexes: database rights, and never inside a stream transaction."""
        self.access.require_database(self.database.name, "rw")
        if "x-arango-trx-id" in self.headers:
            raise ServerError(1653, "disallowed operation inside transaction")

    @contextmanager
    def transaction(self, refreshes: bool = False) -> Iterator[Transaction]:
        """The stream transaction named in the header, or one for this request that commits at the end."""
        wanted = self.headers.get("x-arango-trx-id")
        if wanted is not None:
            with self.state.transactions.lease(self.database, wanted) as leased:
                yield leased
            return
        own = Transaction(self.database, self.access, refreshes)
        try:
            yield own
        except BaseException:
            own.abort()
            raise
        own.commit()


Handler = Callable[..., Response]


class Router:
    """Finds the handler for a method and a path such as `/_api/index/{collection}/{id}`."""

    def __init__(self) -> None:
        self._routes: list[tuple[str, re.Pattern[str], Handler]] = []

    def route(self, methods: str, pattern: str) -> Callable[[Handler], Handler]:
        compiled = re.compile(re.sub(r"\{(\w+)\}", r"(?P<\1>[^/]+)", pattern))

        def register(handler: Handler) -> Handler:
            for method in methods.split():
                self._routes.append((method, compiled, handler))
            return handler

        return register

    def find(self, method: str, path: str) -> tuple[Handler, dict[str, str]]:
        known = False
        for wanted, pattern, handler in self._routes:
            match = pattern.fullmatch(path)
            if match is not None:
                if wanted == method:
                    return handler, match.groupdict()
                known = True
        if known:
            raise ServerError(405, "method not supported")
        raise ServerError(404, f"unknown path '{path}' in the test double")


ROUTER = Router()


def _number(text: str) -> int | float:
    """Whole doubles come back as integers, as they do from a server."""
    value = float(text)
    return int(value) if value.is_integer() and abs(value) < 2**53 else value


def _refuse(text: str) -> None:
    raise ValueError(text)
