"""How a capability is declared."""

from __future__ import annotations

import inspect
import json
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import cached_property
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal, Protocol

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field

from hades.errors import SettingsError

if TYPE_CHECKING:
    from hades.api import Hades
    from hades.memory.memory import Memory
    from hades.ports.services import Embedder
    from hades.ports.store import GraphStore
    from hades.retrieval.answer.prompt import WindowSize
    from hades.retrieval.answers import Answers
    from hades.settings.tree import Settings
    from hades.surfaces.capabilities.questions import QueryRequest
    from schemas.telemetry import QueryLog


# How a capability is declared: its request, its call, and where each surface offers it. Declarations stay light:
# `hades --help` reads all of them. A call imports what it needs when it runs.


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


# What a call may use: the open graph, the stores, the memory, and who calls.


class CallContext(Protocol):
    """Opened by the surface: lazily for one command, once for all calls of a service."""

    @property
    def settings(self) -> Settings:
        """The settings of this graph."""
        ...

    @property
    def who(self) -> str:
        """The person or program responsible, for histories and audits."""
        ...

    @property
    def answers(self) -> Answers:
        """What answers questions."""
        ...

    @property
    def embedder(self) -> Embedder:
        """What turns text into vectors."""
        ...

    @property
    def readable(self) -> GraphStore:
        """The store, to read."""
        ...

    @property
    def writable(self) -> GraphStore:
        """The store, to write; only for a capability of mode `rw` or `admin`."""
        ...

    @property
    def memory(self) -> Memory:
        """The memory, opened for what the capability may do."""
        ...

    def open_hades(self) -> AbstractContextManager[Hades]:
        """The whole library, to ingest and build."""
        ...

    def ask(self, request: QueryRequest, version: str | None = None, window: WindowSize | None = None) -> JsonReply:
        """Answer a question and log the turn; `version` is the id of a snapshot or a time.

        With a `window`, the prompt holds the question and the paths that fit it.
        """
        ...

    def find_turn(self, query_id: str) -> QueryLog:
        """The log of a turn."""
        ...

    def flush_turns(self) -> None:
        """Wait until every logged turn can be read from the store."""
        ...


OpenContext = Callable[[], AbstractContextManager[CallContext]]
# Fields that several requests share: their types, limits and descriptions.
QUESTION_CHARACTERS = 40_000  # an issue report with its stack trace
ID_CHARACTERS = 320
CONTENT_CHARACTERS = 100_000
REASON_CHARACTERS = 500


def in_utc(moment: datetime) -> datetime:
    """A moment without a zone is UTC; one outside the years 1 to 9999 is refused."""
    aware = moment if moment.tzinfo is not None else moment.replace(tzinfo=UTC)
    try:
        return aware.astimezone(UTC)
    except OverflowError:
        raise ValueError("the time lies outside the years 1 to 9999 in UTC") from None


def check_storable(value: dict[str, Any]) -> dict[str, Any]:
    """An object that every store can keep: finite numbers below 2^64, Unicode texts."""
    import orjson

    try:
        json.dumps(value, allow_nan=False)
        orjson.dumps(value)
    except (ValueError, TypeError, RecursionError):
        raise ValueError("numbers must be finite and below 2^64, texts must be Unicode") from None
    return value


def read_object(text: str) -> dict[str, Any]:
    """A JSON object from the command line."""
    expected = 'give an object such as \'{"source": "review"}\''
    try:
        value = json.loads(text)
    except ValueError as error:
        raise SettingsError(f"--metadata is not JSON ({error}); {expected}") from error
    if not isinstance(value, dict):
        raise SettingsError(f"--metadata is {type(value).__name__}, not an object; {expected}")
    return value


def read_pairs(pairs: Sequence[str]) -> dict[str, Any]:
    """NAME=VALUE pairs from the command line; a value is JSON, or else plain text."""
    return dict(_read_pair(pair) for pair in pairs)


def _read_pair(pair: str) -> tuple[str, Any]:
    name, equals, value = pair.partition("=")
    if not equals or not name:
        raise SettingsError(f"{pair!r} is not NAME=VALUE; write for example name='Ada King' or aliases='[\"Ada\"]'")
    try:
        return name, json.loads(value)
    except ValueError:
        return name, value


def _date_text(value: Any) -> Any:
    """A bare number is not a time: `2026` must not be read as seconds since 1970."""
    if isinstance(value, int | float) or (isinstance(value, str) and value.strip().lstrip("-").isdigit()):
        raise ValueError("not a time; write it as 2026-01-31 or 2026-01-31T12:00:00Z")
    return value


Moment = Annotated[datetime, BeforeValidator(_date_text), AfterValidator(in_utc)]
FreeForm = Annotated[dict[str, Any], AfterValidator(check_storable)]
Id = Annotated[str, Field(min_length=1, max_length=ID_CHARACTERS)]
Share = Annotated[float, Field(ge=0.0, le=1.0)]
Reason = Annotated[str, Field(max_length=REASON_CHARACTERS)]
Metadata = Annotated[FreeForm, Shell(metavar="JSON", read=read_object)]
AS_OF = "Only what was true at this time, for example 2026-01-31; UTC when it has no zone."
KNOWN_AT = "Only what was known at this time; UTC when it has no zone."
