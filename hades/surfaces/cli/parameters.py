"""Commands made of what modules declare: capabilities, and functions of this machine alone."""

from __future__ import annotations

import getpass
import inspect
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from pathlib import Path
from types import ModuleType, NoneType, UnionType
from typing import Annotated, Any, Literal, Union, cast, get_args, get_origin

import typer
from pydantic import BaseModel, TypeAdapter, ValidationError
from pydantic.fields import FieldInfo
from typer.core import TyperCommand, TyperGroup
from typer.main import get_command, get_group

from hades.errors import plain_message
from hades.ports.store import Mode
from hades.settings.load import load_settings
from hades.snapshot.rights_file import OWNER, Readers, asker_of, rights_of
from hades.surfaces.access.contexts import LIMITED, CallContext
from hades.surfaces.capabilities.capability import (
    Capability,
    Cli,
    Request,
    Shell,
    declared_in,
    document_of,
    keyword,
)
from hades.surfaces.cli import output
from hades.surfaces.cli.output import Answer
from hades.surfaces.cli.views import VIEWS
from hades.telemetry.logs import Audit, CallMode

_WHO = "_who"
_AS_USER = "_as_user"
_GROUPS = "_groups"
AS_USER = "Who asks: nothing is shown that this person may not read."
GROUPS = "Groups of whoever asks, with commas between."
AS_OWNER = (
    "Asked as the owner: all documents were searched, whoever may read them. --as-user and "
    "--groups show what others see."
)
_CONTEXT = "_context"
_NOT_A_TIME = "not a time; write it as 2026-01-31 or 2026-01-31T12:00:00Z"
_MESSAGES = {
    "datetime_from_date_parsing": _NOT_A_TIME,
    "datetime_parsing": _NOT_A_TIME,
}
_FLAGS = {
    "as_json": output.JsonFlag,
    "quiet": output.QuietFlag,
    "debug": output.DebugFlag,
}


def command_of(
    name: str,
    modules: Sequence[ModuleType],
    group_help: str | None,
) -> TyperCommand | TyperGroup:
    """The command that these modules declare, or the group with all its commands; one may act
    without a command.
    """
    app = typer.Typer(
        name=name,
        help=group_help,
        no_args_is_help=True,
        add_completion=False,
    )
    for declaration in _declarations(name, modules):
        group, _, last = declaration.words.rpartition(" ")
        if declaration.words == name and group_help is not None:
            app.callback(
                invoke_without_command=True,
                no_args_is_help=False,
                help=declaration.help_text,
            )(declaration.function)
        elif name in (declaration.words, group):
            settings = {
                "ignore_unknown_options": True,
                "allow_extra_args": True,
            }
            app.command(
                last,
                help=declaration.help_text,
                context_settings=settings if declaration.takes_anything else None,
            )(declaration.function)

    if group_help is None:
        command = get_command(app)
    else:
        command = get_group(app)

    assert isinstance(command, TyperCommand | TyperGroup)
    return command


@dataclass(frozen=True)
class Declaration:
    """A command: its words, its help, and the function that typer reads."""

    words: str
    help_text: str
    function: Callable[..., None]
    takes_anything: bool = False


def _declarations(name: str, modules: Sequence[ModuleType]) -> Iterator[Declaration]:
    """The commands of this machine alone by their first word, then those of the modules'
    capabilities.
    """
    for words, run, mode in output.LOCAL_COMMANDS:
        if words.split()[0] == name:
            help_text = inspect.cleandoc(run.__doc__ or "")
            takes_anything = inspect.getfullargspec(run).varargs is not None
            yield Declaration(
                words,
                help_text,
                _local_function(words, run, mode),
                takes_anything,
            )

    for module in modules:
        for capability in declared_in(module):
            if capability.cli is not None:
                function = _capability_function(capability, capability.cli)
                yield Declaration(
                    capability.words,
                    capability.help,
                    function,
                )


def read_asker(as_user: str | None, groups: str | None) -> Readers:
    """The names that whoever asks reads by; the owner, where nobody is named."""
    if as_user is None and groups is None:
        return OWNER
    return asker_of(as_user, (groups or "").split(","))


def _local_function(
    words: str,
    function: Callable[..., Answer],
    mode: CallMode | None,
) -> Callable[..., None]:
    """The function behind a command of this machine alone; one that works on the graph is
    audited.
    """

    def run(arguments: Mapping[str, Any]) -> Answer:
        if mode is None:
            return function(**arguments)

        with Audit(load_settings().home / "logs").call(mode, words):
            return replace(function(**arguments), is_report=True)

    signature = inspect.signature(function, eval_str=True)
    parameters = [
        parameter
        for parameter in signature.parameters.values()
        if parameter.kind is not inspect.Parameter.VAR_POSITIONAL
    ]
    return _typer_function(words, parameters, run)


def _capability_function(capability: Capability, cli: Cli) -> Callable[..., None]:
    """The function behind the command of a capability."""
    inputs = _inputs(capability.request, cli.arguments.split())
    if cli.options is None:
        view_inputs = []
    else:
        view_inputs = _inputs(cli.options, [])

    def run(arguments: Mapping[str, Any]) -> Answer:
        """Call the capability in a context of its own, audited; the turn is logged."""
        request = _read_request(capability.request, inputs, arguments)
        if cli.options is None:
            options = {}
        else:
            options = dict(_read_request(cli.options, view_inputs, arguments))

        mode: CallMode = "RO" if capability.mode == "ro" else "RW"
        who = arguments.get(_WHO) or getpass.getuser()
        settings = load_settings()
        asker = read_asker(arguments.get(_AS_USER), arguments.get(_GROUPS))

        with closing(
            CallContext(
                settings,
                who,
                mode=Mode(capability.mode),
                asker=asker,
            )
        ) as context:
            with Audit(context.settings.home / "logs").call(mode, capability.words):
                document = document_of(capability.call(request, context))

            view: Callable[..., Any] = VIEWS.get(capability.name, output.show_document)
            renderables = view(document, **options)
            note = context.flush_turns()

            if (
                capability.name in LIMITED
                and asker == OWNER
                and rights_of(settings.home).restrict_any()
            ):
                note = f"{AS_OWNER} {note}".strip()

            return Answer(
                document,
                renderables,
                ok=cli.succeeds(document),
                note=note,
            )

    parameters = []
    for field_input in (*inputs, *view_inputs):
        parameters.append(_parameter(field_input))

    if cli.who is not None:
        option = typer.Option(
            cli.who,
            metavar="NAME",
            help="Who is responsible; by default the user of this session.",
        )
        parameters.append(keyword(_WHO, Annotated[str | None, option], None))

    if capability.name in LIMITED:
        parameters += [
            keyword(
                _AS_USER,
                Annotated[str | None, output.option(AS_USER, "--as-user")],
                None,
            ),
            keyword(
                _GROUPS,
                Annotated[str | None, output.option(GROUPS, "--groups")],
                None,
            ),
        ]

    return _typer_function(capability.words, parameters, run)


def _typer_function(
    name: str,
    parameters: list[inspect.Parameter],
    run: Callable[[Mapping[str, Any]], Answer],
) -> Callable[..., None]:
    """A function with the signature that typer reads: it answers as every command does."""

    def command(**arguments: Any) -> None:
        as_json, quiet, debug = (arguments.pop(flag) for flag in _FLAGS)
        context = arguments.pop(_CONTEXT)
        if context.invoked_subcommand is not None:
            return

        output.QUIET.set(quiet or context.find_root().params["quiet"])
        output.answer_with(
            lambda: run(arguments),
            as_json=as_json,
            debug=debug,
        )

    flags = []
    for flag, annotation in _FLAGS.items():
        flags.append(keyword(flag, annotation, False))

    keyword_only = []
    for parameter in parameters:
        keyword_only.append(parameter.replace(kind=inspect.Parameter.KEYWORD_ONLY))

    context = keyword(_CONTEXT, typer.Context)
    signature = inspect.Signature([context, *keyword_only, *flags])
    command.__signature__ = signature  # type: ignore[attr-defined]
    command.__annotations__ = {}
    command.__name__ = name.replace(" ", "_")
    return command


@dataclass(frozen=True)
class Input:
    """One argument or option: the field it fills (`part` of a nested model), and how it is
    written.
    """

    name: str
    field: FieldInfo
    shell: Shell
    flags: tuple[str, ...]
    part: str | None = None
    place: int = -1  # of an argument; -1: an option

    @property
    def is_argument(self) -> bool:
        """Whether it is positional."""
        return self.place >= 0

    @property
    def key(self) -> str:
        """The name of the function's parameter."""
        if self.part:
            return f"{self.name}__{self.part}"
        return self.name


def _inputs(model: type[BaseModel], arguments: list[str]) -> list[Input]:
    """The inputs of a request: positional fields in their order, then required options, then the
    others as declared.
    """
    inputs: list[Input] = []
    for name, field in model.model_fields.items():
        shell = shell_of(field)
        place = arguments.index(name) if name in arguments else -1
        if shell.parts:
            nested = _unwrap_type(field.annotation).model_fields
            for part, flag in shell.parts:
                inputs.append(
                    Input(
                        name,
                        nested[part],
                        Shell(),
                        (flag,),
                        part=part,
                    )
                )
        else:
            flags = shell.flags or (f"--{name.replace('_', '-')}",)
            inputs.append(Input(name, field, shell, flags, place=place))

    def order(field_input: Input) -> int:
        if field_input.is_argument:
            return field_input.place
        return len(arguments) + (not field_input.field.is_required())

    return sorted(inputs, key=order)


def shell_of(field: FieldInfo) -> Shell:
    """How the field is written on the command line; what its parameter says comes before what its
    type says.
    """
    return next((mark for mark in field.metadata if isinstance(mark, Shell)), Shell())


def _unwrap_type(annotation: Any) -> Any:
    """The type inside `X | None` and `Annotated`."""
    while get_origin(annotation) in (Annotated, Union, UnionType):
        annotation = next(part for part in get_args(annotation) if part is not NoneType)

    return annotation


def _limits(annotation: Any, metadata: list[Any]) -> dict[str, Any]:
    """The least and the greatest number, also inside `X | None`."""
    annotated = cast(Any, Annotated)[(annotation, "", *metadata)]  # a mark, where there is none
    shape = TypeAdapter(annotated).json_schema()
    number = next(part for part in shape.get("anyOf", [shape]) if part["type"] != "null")
    names = {"minimum": "min", "maximum": "max"}

    limits = {}
    for limit, name in names.items():
        if limit in number:
            limits[name] = number[limit]

    return limits


def _parameter(field_input: Input) -> inspect.Parameter:
    """The parameter that typer reads: what it takes, its limits, its help and its default."""
    field = field_input.field
    shell = field_input.shell
    annotation: Any = field.annotation
    is_list = get_origin(_unwrap_type(annotation)) in (tuple, list)

    if is_list:
        value_type = get_args(_unwrap_type(annotation))[0]
    else:
        value_type = annotation

    bare = _unwrap_type(value_type)
    is_plain = bare in (int, float, bool) or get_origin(bare) is Literal
    kind: Any = bare if is_plain and shell.read is None else str
    limits = {}

    if kind in (int, float):
        limits = _limits(value_type, [] if is_list else field.metadata)

    help_text = shell.help or field.description or ""
    metavar = shell.metavar
    if field_input.is_argument:
        metavar = metavar or field_input.name.upper()
        info: Any = typer.Argument(
            metavar=metavar,
            help=help_text,
            **limits,
        )
    else:
        if kind is bool:
            metavar = None
        elif metavar is None and bare is Path:
            metavar = "PATH"

        info = typer.Option(
            *field_input.flags,
            metavar=metavar,
            help=help_text,
            **limits,
        )

    is_repeated = is_list or shell.is_list
    typed: Any = list[kind] if is_repeated else kind
    if field.is_required() and field_input.part is None:
        return keyword(field_input.key, Annotated[typed, info])

    default = None
    if not is_repeated and shell.read is None:
        default = field.get_default(call_default_factory=True)
    if default is None:
        typed = typed | None

    return keyword(
        field_input.key,
        Annotated[typed, info],
        default,
    )


def _read_request(
    model: type[Request],
    inputs: list[Input],
    arguments: Mapping[str, Any],
) -> Request:
    """The request of what was typed; a value outside its limits is bad usage (exit code 2)."""
    values: dict[str, Any] = {}
    for field_input in inputs:
        value = arguments[field_input.key]
        if value is None or value == []:
            continue
        if field_input.shell.read is not None:
            value = field_input.shell.read(value)

        if field_input.part is None:
            values[field_input.name] = value
        else:
            values.setdefault(field_input.name, {})[field_input.part] = value

    try:
        return model.model_validate(values)
    except ValidationError as error:
        problem = error.errors()[0]
        message = _MESSAGES.get(str(problem["type"])) or plain_message(str(problem["msg"]))
        raise typer.BadParameter(
            message,
            param_hint=_typed_name(inputs, problem["loc"]),
        ) from None


def _typed_name(inputs: list[Input], place: tuple[int | str, ...]) -> str | None:
    """What a person typed for the field at a place of the request."""
    for field_input in inputs:
        if field_input.name not in place[:1]:
            continue

        if field_input.part is None or field_input.part in place[1:2]:
            is_argument = field_input.is_argument
            if is_argument:
                return field_input.name.upper()
            return field_input.flags[0]

    return None
