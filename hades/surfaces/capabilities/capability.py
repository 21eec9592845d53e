"""How a capability is declared: its request, its call, and where each surface offers it.

Declarations stay light: `hades --help` reads all of them. A call imports what it needs when it runs.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar, Literal

from pydantic import BaseModel, ConfigDict

if TYPE_CHECKING:
    from hades.surfaces.capabilities.context import CallContext

AccessMode = Literal["ro", "rw", "admin"]
Document = Mapping[str, Any]
READS_FILES = "reads files of this machine and may run for hours"
WRITES_HOME = "changes the store and the files of HADES_HOME on this machine"
COMPUTED = "RAID5"  # the slowest tier of the cache: the graph itself


class Request(BaseModel):
    """The parameters of a capability. Unknown names are refused, so that a misspelling is noticed."""

    model_config = ConfigDict(extra="forbid", frozen=True, defer_build=True, populate_by_name=True)

    required_text: ClassVar[str] = ""  # the field whose absence is refused with its own sentence, where there is one

    def arguments(self) -> dict[str, Any]:
        """The values by field name, nested models included as they are."""
        return {name: getattr(self, name) for name in type(self).model_fields}


class Nothing(Request):
    """A request without parameters."""


@dataclass(frozen=True)
class JsonReply:
    """A reply that is JSON text already: a cached answer need not be parsed and written again."""

    text: bytes
    query_id: str
    tier: str = COMPUTED

    @property
    def is_cached(self) -> bool:
        """Whether the cache gave it."""
        return self.tier != COMPUTED

    @cached_property
    def document(self) -> dict[str, Any]:
        """The reply as plain values."""
        import orjson

        document: dict[str, Any] = orjson.loads(self.text)
        return document


Reply = Document | JsonReply
Call = Callable[[Any, "CallContext"], Reply]


@dataclass(frozen=True)
class Shell:
    """How a field is written on the command line, where that is not `--field-name VALUE`.

    `read` turns the text (or list of texts) into the value of the field. `parts` names the options of a nested model's
    fields.
    """

    flags: tuple[str, ...] = ()
    metavar: str | None = None
    read: Callable[[Any], Any] | None = None
    is_list: bool = False  # `read` takes a list of texts: the option may be repeated
    parts: tuple[tuple[str, str], ...] = ()  # (nested field, flag)
    help: str | None = None


@dataclass(frozen=True)
class OmittedSurface:
    """A surface that does not offer the capability, and why."""

    reason: str


@dataclass(frozen=True)
class Cli:
    """A command: its path, its positional fields, and what only a terminal needs.

    `view` names the function that renders the reply for a person (`module:function`, imported when it runs). `options`
    are parameters of the view. `who` is the option that names the person responsible. `succeeds`: exit code 0, else 1.
    """

    path: tuple[str, ...]
    arguments: tuple[str, ...] = ()
    view: str | None = None
    options: type[Request] | None = None
    who: str | None = None
    succeeds: Callable[[Document], bool] = field(default=lambda document: True)
    is_audited: bool = False


@dataclass(frozen=True)
class Rest:
    """A route. Fields named in the path are read there, the others from the query string (GET) or the body (POST).

    `part` is the part of the reply that is sent as the body, where clients expect it without its envelope. A search may
    be sent both ways: as a POST, and as a GET with the same fields.
    """

    method: Literal["GET", "POST"]
    path: str
    tag: str
    summary: str
    status: int = 200
    part: str | None = None
    is_also_get: bool = False
    reply: str | None = None  # module:class of the reply, for the description of the service
    examples: tuple[Document, ...] = ()


@dataclass(frozen=True)
class Mcp:
    """A tool. `reply` names its result class (`module:class`); `text` the field a model reads in place of JSON.

    `null_when_unknown` is the field that is null when memory holds no such thing: to an agent that is no error.
    """

    name: str
    title: str
    reply: str
    text: str | None = None
    is_idempotent: bool = True
    null_when_unknown: str | None = None


@dataclass(frozen=True)
class Task:
    """A Prefect task of `tasks/` with this name. `is_snapshot_bound`: the reply depends on the snapshot alone."""

    name: str
    is_snapshot_bound: bool = False


@dataclass(frozen=True, eq=False)
class Capability:
    """One thing that HADES can do, for every surface."""

    name: str
    mode: AccessMode
    request: type[Request]
    call: Call
    cli: Cli | OmittedSurface
    rest: Rest | OmittedSurface
    mcp: Mcp | OmittedSurface
    task: Task | OmittedSurface

    @property
    def help(self) -> str:
        """What it does: the docstring of the request."""
        return inspect.cleandoc(self.request.__doc__ or "")

    @property
    def task_name(self) -> str:
        """The name of its Prefect task."""
        assert isinstance(self.task, Task)
        return self.task.name

    def check(self, values: Mapping[str, Any]) -> Request:
        """The request of these values, or pydantic's `ValidationError`."""
        return self.request.model_validate(dict(values))


@dataclass(frozen=True, eq=False)
class LocalCommand:
    """A command that only the machine of the graph offers, and why.

    `run` names the function that does the work and renders it (`module:function`); it takes the fields of the request
    by name, and `fixed` beside them.
    """

    path: tuple[str, ...]
    request: type[Request]
    run: str
    reason: str
    arguments: tuple[str, ...] = ()
    fixed: Mapping[str, Any] = field(default_factory=dict)

    @property
    def help(self) -> str:
        """What it does: the docstring of the request."""
        return inspect.cleandoc(self.request.__doc__ or "")


def document_of(reply: Reply) -> dict[str, Any]:
    """The reply as plain values."""
    return reply.document if isinstance(reply, JsonReply) else dict(reply)


def load(name: str) -> Any:
    """The object that `module:attribute` names."""
    import importlib

    module, _, attribute = name.partition(":")
    return getattr(importlib.import_module(module), attribute)
