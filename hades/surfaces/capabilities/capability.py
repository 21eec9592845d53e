"""How a capability is declared: a function, whose parameters are the request, and where each
surface offers it.
"""

from __future__ import annotations

import inspect
import json
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, fields
from datetime import UTC, datetime
from types import ModuleType
from typing import Annotated, Any, Literal, cast, get_type_hints

import orjson
from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field, create_model
from pydantic.fields import FieldInfo

from hades.errors import SettingsError
from hades.retrieval.cached_answers import CachedTurn
from hades.surfaces.access.contexts import LIMITED, CallContext
from hades.surfaces.access.limits import LIMITED_NEXT, CallerRefused

AccessMode = Literal["ro", "rw", "admin"]
Document = Mapping[str, Any]
Reply = Document | CachedTurn


class Request(BaseModel):
    """The parameters of a capability. Unknown names are refused, so that a misspelling is
    noticed.
    """

    model_config = ConfigDict(
        extra="forbid",
        frozen=True,
        populate_by_name=True,
    )


@dataclass(frozen=True)
class Shell:
    """How a field is written on the command line, where that is not `--field-name VALUE`.

    `read` turns the text (or list of texts) into the value of the field. `parts` names the options
    of a nested model's fields.
    """

    flags: tuple[str, ...] = ()
    metavar: str | None = None
    read: Callable[[Any], Any] | None = None
    is_list: bool = False  # `read` takes a list of texts: the option may be repeated
    parts: tuple[tuple[str, str], ...] = ()  # (nested field, flag)
    help: str | None = None


@dataclass(frozen=True)
class Cli:
    """A command, in the words of the capability's name: its positional fields, and the option that
    names who answers.

    `options` are parameters of its view. `succeeds`: exit code 0, else 1.
    """

    arguments: str = ""
    options: type[Request] | None = None
    who: str | None = None
    succeeds: Callable[[Document], bool] = lambda document: True


@dataclass(frozen=True)
class Rest:
    """A route. Fields named in the path are read there, the others from the query string (GET) or
    the body (POST).

    `part` is the part of the reply that is sent as the body, where clients expect it without its
    envelope. A search may be sent both ways: as a POST, and as a GET with the same fields.
    """

    method: Literal["GET", "POST"]
    path: str
    summary: str
    status: int = 200
    part: str | None = None
    tag: str = ""
    is_also_get: bool = False
    reply: type[BaseModel] | None = None
    examples: tuple[Document, ...] = ()


@dataclass(frozen=True)
class Mcp:
    """A tool: its result class, and the field of it that a model reads in place of JSON.

    `null_when_unknown` is the field that is null when memory holds no such thing: to an agent that
    is no error.
    """

    name: str
    title: str
    reply: type[BaseModel]
    text: str | None = None
    is_idempotent: bool = True
    null_when_unknown: str | None = None


@dataclass(frozen=True, eq=False)
class Capability:
    """One thing that HADES can do. A surface that does not offer it is None; `task` names its
    Prefect task.
    """

    name: str
    mode: AccessMode
    request: type[Request]
    function: Callable[..., Any]
    cli: Cli | None = None
    rest: Rest | None = None
    mcp: Mcp | None = None
    task: str = ""

    @property
    def words(self) -> str:
        """The words of its command."""
        return self.name.replace(".", " ").replace("_", "-")

    @property
    def help(self) -> str:
        """What it does: the docstring of its function."""
        return inspect.cleandoc(self.function.__doc__ or "")

    def check(self, values: Mapping[str, Any]) -> Request:
        """The request of these values, or pydantic's `ValidationError`."""
        return self.request.model_validate(dict(values))

    def call(self, request: Request, context: CallContext) -> Reply:
        """Do it, for a caller who may."""
        if context.limit is not None and self.name not in LIMITED:
            raise CallerRefused(f"{self.name} speaks of the whole corpus; {LIMITED_NEXT}")

        reply: Reply = self.function(context, **dict(request))
        return reply


def capability(
    name: str,
    *offered: AccessMode | Cli | Rest | Mcp,
    task: str = "",
    base: type[Request] = Request,
    also: type[Request] = Request,
) -> Callable[[Callable[..., Any]], Capability]:
    """Declare a function as a capability: the parameters after the context become the fields of its
    request.

    `offered` are the mode that it needs (`ro` unless given) and the surfaces that offer it. `base`
    holds rules of several fields. The fields of `also` follow; the function takes them as `**`.
    """
    surfaces: dict[str, Any] = {}
    for surface in offered:
        surfaces[type(surface).__name__.lower()] = surface

    mode: AccessMode = surfaces.pop("str", "ro")

    def declare(function: Callable[..., Any]) -> Capability:
        hints = get_type_hints(function, include_extras=True)
        fields: dict[str, Any] = {}
        for field_name, parameter in list(inspect.signature(function).parameters.items())[1:]:
            if parameter.kind is inspect.Parameter.VAR_KEYWORD:
                continue

            if parameter.default is inspect.Parameter.empty:
                fields[field_name] = hints[field_name]
            else:
                fields[field_name] = (hints[field_name], parameter.default)

        fields |= {name: (field.annotation, field) for name, field in also.model_fields.items()}
        title = "".join(part.title() for part in name.replace("_", ".").split("."))
        request = create_model(
            f"{title}Request",
            __base__=base,
            __doc__=function.__doc__,
            **fields,
        )
        return Capability(
            name,
            mode,
            request,
            function,
            task=task,
            **surfaces,
        )

    return declare


def field(about: str | None = None, default: Any = ..., *flags: str, **options: Any) -> Any:
    """A parameter of a capability: its description and default; `options` are fields of `Shell`
    and pydantic's limits.
    """
    names = []
    for part in fields(Shell):
        if part.name in options:
            names.append(part.name)

    shell = Shell(flags, **{name: options.pop(name) for name in names})
    if about is not None:
        options["description"] = about

    info: FieldInfo = Field(default, **options)
    if shell != Shell():
        info.metadata.append(shell)

    return info


def declared_in(module: ModuleType) -> list[Capability]:
    """The capabilities that a module declares, in its order."""
    return [
        value
        for value in vars(module).values()
        if isinstance(value, Capability) and value.function.__module__ == module.__name__
    ]


def keyword(
    name: str,
    annotation: Any,
    default: Any = inspect.Parameter.empty,
) -> inspect.Parameter:
    """A parameter of the function that a surface makes of a capability."""
    return inspect.Parameter(
        name,
        inspect.Parameter.KEYWORD_ONLY,
        default=default,
        annotation=annotation,
    )


def field_parameter(
    name: str,
    field: FieldInfo,
    description: Any,
) -> inspect.Parameter:
    """A field of a request as a parameter; `description` is that of the surface's framework."""
    annotation = cast(Any, Annotated)[(field.annotation, *field.metadata, description)]
    if field.is_required():
        default = inspect.Parameter.empty
    else:
        default = field.get_default(call_default_factory=True)

    return keyword(name, annotation, default)


def document_of(reply: Reply) -> dict[str, Any]:
    """The reply as plain values."""
    if isinstance(reply, CachedTurn):
        return reply.document
    return dict(reply)


# Fields that several requests share: their types, limits and descriptions.
QUESTION_CHARACTERS = 40_000  # an issue report with its stack trace
ID_CHARACTERS = 320
REASON_CHARACTERS = 500


def in_utc(moment: datetime) -> datetime:
    """A moment without a zone is UTC; one outside the years 1 to 9999 is refused."""
    if moment.tzinfo is not None:
        aware = moment
    else:
        aware = moment.replace(tzinfo=UTC)

    try:
        return aware.astimezone(UTC)
    except OverflowError:
        raise ValueError("the time lies outside the years 1 to 9999 in UTC") from None


def check_storable(value: dict[str, Any]) -> dict[str, Any]:
    """An object that every store can keep: finite numbers below 2^64, Unicode texts."""
    try:
        json.dumps(value, allow_nan=False)
        orjson.dumps(value)
    except (ValueError, TypeError, RecursionError):
        raise ValueError("numbers must be finite and below 2^64, texts must be Unicode") from None

    return value


def read_pairs(pairs: Sequence[str]) -> dict[str, Any]:
    """NAME=VALUE pairs from the command line; a value is JSON, or else plain text."""
    values: dict[str, Any] = {}
    for pair in pairs:
        name, equals, value = pair.partition("=")
        if not equals or not name:
            raise SettingsError(
                f"{pair!r} is not NAME=VALUE; write for example name='Ada King' or "
                "aliases='[\"Ada\"]'"
            )

        values[name] = value
        with suppress(ValueError):
            values[name] = json.loads(value)

    return values


def _refuse_bare_number(value: Any) -> Any:
    """A bare number is not a time: `2026` must not be read as seconds since 1970."""
    if isinstance(value, int | float) or (
        isinstance(value, str) and value.strip().lstrip("-").isdigit()
    ):
        raise ValueError("not a time; write it as 2026-01-31 or 2026-01-31T12:00:00Z")

    return value


Moment = Annotated[datetime, BeforeValidator(_refuse_bare_number), AfterValidator(in_utc)]
FreeForm = Annotated[dict[str, Any], AfterValidator(check_storable)]
Id = Annotated[str, Field(min_length=1, max_length=ID_CHARACTERS)]
Share = Annotated[float, Field(ge=0.0, le=1.0)]
Reason = Annotated[str, Field(max_length=REASON_CHARACTERS)]
# An empty question is refused by the turn itself.
Question = Annotated[str, Field(max_length=QUESTION_CHARACTERS)]
AsOf = Annotated[
    Moment | None,
    Field(
        description="Only what was true at this time, for example 2026-01-31; UTC when it has no "
        "zone."
    ),
]
KnownAt = Annotated[
    Moment | None, Field(description="Only what was known at this time; UTC when it has no zone.")
]


class AtMoment(Request):
    """The moment that a question stands at."""

    as_of: AsOf = None
    known_at: KnownAt = None
