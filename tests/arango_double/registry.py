"""The table of AQL functions: name, how many arguments, and the Python that computes it."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from tests.arango_double.context import QueryContext

Implementation = Callable[..., Any]


@dataclass(frozen=True, slots=True)
class Function:
    """A function of the language; `call` takes the query context, then the evaluated arguments."""

    name: str
    minimum: int
    maximum: int | None
    call: Implementation


FUNCTIONS: dict[str, Function] = {}


def function(names: str, minimum: int, maximum: int | None = -1) -> Callable[[Implementation], Implementation]:
    """Register an implementation under one or more names; `maximum` defaults to `minimum`, None is unlimited."""

    def register(call: Implementation) -> Implementation:
        for name in names.split():
            FUNCTIONS[name] = Function(name, minimum, minimum if maximum == -1 else maximum, call)
        return call

    return register


def invalid_argument(context: "QueryContext", name: str) -> None:
    """Warn as the server does when an argument has the wrong type; the call then gives null."""
    context.warn(1542, f"invalid argument type in call to function '{name}()'")
