"""Commands made of what modules declare: capabilities, and functions of this machine alone."""

from __future__ import annotations

import getpass
import inspect
from collections.abc import Callable, Mapping, Sequence
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

from hades.ports.store import Mode
from hades.settings.load import load_settings
from hades.surfaces.access.contexts import CallContext
from hades.surfaces.capabilities.capability import Capability, Cli, Request, Shell, declared_in, document_of, keyword
from hades.surfaces.cli import output
from hades.surfaces.cli.output import Answer
from hades.surfaces.cli.views import VIEWS
from hades.telemetry.logs import Audit, CallMode

_WHO = "_who"
_CONTEXT = "_context"
_NOT_A_TIME = "not a time; write it as 2026-01-31 or 2026-01-31T12:00:00Z"
_MESSAGES = {"datetime_from_date_parsing": _NOT_A_TIME, "datetime_parsing": _NOT_A_TIME}
_FLAGS = {"as_json": output.JsonFlag, "quiet": output.QuietFlag, "debug": output.DebugFlag}


def command_of(name: str, modules: Sequence[ModuleType], group_help: str | None) -> TyperCommand | TyperGroup:
    """The command that these modules declare, or the group with all its commands; one may act without a command."""
    app = typer.Typer(name=name, help=group_help, no_args_is_help=True, add_completion=False)
    names = {module.__name__ for module in modules}
    local = [one for one in output.LOCAL_COMMANDS if one[1].__module__ in names]
    found = [(words, run, _local_function(words, run, mode)) for words, run, mode in local]
    offered = [(one, one.cli) for module in modules for one in declared_in(module) if one.cli is not None]
    found += [(one.words, one.function, _capability_function(one, cli)) for one, cli in offered]
    for words, declared, function in found:
        group, _, last = words.rpartition(" ")
        help_text = inspect.cleandoc(declared.__doc__ or "")
        if words == name and group_help is not None:
            app.callback(invoke_without_command=True, no_args_is_help=False, help=help_text)(function)
        elif words == name or group == name:
            app.command(last, help=help_text)(function)
    made = get_command(app) if group_help is None else get_group(app)
    assert isinstance(made, TyperCommand | TyperGroup)
    return made


def _local_function(words: str, function: Callable[..., Answer], mode: CallMode | None) -> Callable[..., None]:
    """The function behind a command of this machine alone; one that works on the graph is audited."""

    def run(given: Mapping[str, Any]) -> Answer:
        if mode is None:
            return function(**given)
        with Audit(load_settings().home / "logs").call(mode, words):
            return replace(function(**given), is_report=True)

    return _command(words, list(inspect.signature(function, eval_str=True).parameters.values()), run)


def _capability_function(capability: Capability, cli: Cli) -> Callable[..., None]:
    """The function behind the command of a capability."""
    inputs = _inputs(capability.request, cli.arguments.split())
    extra = [] if cli.options is None else _inputs(cli.options, [])

    def run(given: Mapping[str, Any]) -> Answer:
        """Call the capability in a context of its own, audited; the turn is logged."""
        request = _read(capability.request, inputs, given)
        options = {} if cli.options is None else dict(_read(cli.options, extra, given))
        mode: CallMode = "RO" if capability.mode == "ro" else "RW"
        who = given.get(_WHO) or getpass.getuser()
        with closing(CallContext(load_settings(), who, mode=Mode(capability.mode))) as context:
            with Audit(context.settings.home / "logs").call(mode, capability.words):
                document = document_of(capability.call(request, context))
            view: Callable[..., Any] = VIEWS.get(capability.name, output.show_document)
            shown = view(document, **options)
            return Answer(document, shown, ok=cli.succeeds(document), note=context.flush_turns())

    parameters = [_parameter(one) for one in (*inputs, *extra)]
    if cli.who is not None:
        option = typer.Option(cli.who, metavar="NAME", help="Who is responsible; by default the user of this session.")
        parameters.append(keyword(_WHO, Annotated[str | None, option], None))
    return _command(capability.words, parameters, run)


def _command(
    name: str, parameters: list[inspect.Parameter], run: Callable[[Mapping[str, Any]], Answer]
) -> Callable[..., None]:
    """A function with the signature that typer reads: it answers as every command does."""

    def command(**given: Any) -> None:
        as_json, quiet, debug = (given.pop(flag) for flag in _FLAGS)
        context = given.pop(_CONTEXT)
        if context.invoked_subcommand is not None:
            return
        output.QUIET.set(quiet or context.find_root().params["quiet"])
        output.answer_with(lambda: run(given), as_json=as_json, debug=debug)

    flags = [keyword(flag, annotation, False) for flag, annotation in _FLAGS.items()]
    plain = [one.replace(kind=inspect.Parameter.KEYWORD_ONLY) for one in parameters]
    context = keyword(_CONTEXT, typer.Context)
    command.__signature__ = inspect.Signature([context, *plain, *flags])  # type: ignore[attr-defined]
    command.__annotations__ = {}
    command.__name__ = name.replace(" ", "_")
    return command


@dataclass(frozen=True)
class Input:
    """One argument or option: the field it fills (`part` of a nested model), and how it is written."""

    name: str
    part: str | None
    field: FieldInfo
    shell: Shell
    flags: tuple[str, ...]
    place: int  # of an argument; -1: an option

    @property
    def key(self) -> str:
        """The name of the function's parameter."""
        return f"{self.name}__{self.part}" if self.part else self.name


def _inputs(model: type[BaseModel], arguments: list[str]) -> list[Input]:
    """The inputs of a request: positional fields in their order, then required options, then the others as declared."""
    found: list[Input] = []
    for name, field in model.model_fields.items():
        shell = shell_of(field)
        place = arguments.index(name) if name in arguments else -1
        if shell.parts:
            nested = _bare(field.annotation).model_fields
            found += [Input(name, part, nested[part], Shell(), (flag,), -1) for part, flag in shell.parts]
        else:
            flags = shell.flags or (f"--{name.replace('_', '-')}",)
            found.append(Input(name, None, field, shell, flags, place))
    many = len(arguments)
    return sorted(found, key=lambda one: one.place if one.place >= 0 else many + (not one.field.is_required()))


def shell_of(field: FieldInfo) -> Shell:
    """How the field is written on the command line; what its parameter says comes before what its type says."""
    return next((one for one in field.metadata if isinstance(one, Shell)), Shell())


def _bare(annotation: Any) -> Any:
    """The type inside `X | None` and `Annotated`."""
    while get_origin(annotation) in (Annotated, Union, UnionType):
        annotation = next(part for part in get_args(annotation) if part is not NoneType)
    return annotation


def _limits(annotation: Any, metadata: list[Any]) -> dict[str, Any]:
    """The least and the greatest number, also inside `X | None`."""
    whole = cast(Any, Annotated)[(annotation, "", *metadata)]  # a mark, where there is none
    shape = TypeAdapter(whole).json_schema()
    number = next(one for one in shape.get("anyOf", [shape]) if one["type"] != "null")
    return {name: number[limit] for limit, name in (("minimum", "min"), ("maximum", "max")) if limit in number}


def _parameter(one: Input) -> inspect.Parameter:
    annotation: Any = one.field.annotation
    is_list = get_origin(_bare(annotation)) in (tuple, list)
    item = get_args(_bare(annotation))[0] if is_list else annotation
    bare, read = _bare(item), one.shell.read
    is_plain = read is None and (bare in (int, float, bool) or get_origin(bare) is Literal)
    kind: Any = bare if is_plain else str
    limits = _limits(item, [] if is_list else one.field.metadata) if kind in (int, float) else {}
    help_text = one.shell.help or one.field.description or ""
    if one.place >= 0:
        info: Any = typer.Argument(metavar=one.shell.metavar or one.name.upper(), help=help_text, **limits)
    else:
        metavar = None if kind is bool else one.shell.metavar or ("PATH" if bare is Path else None)
        info = typer.Option(*one.flags, metavar=metavar, help=help_text, **limits)
    several = is_list or one.shell.is_list
    typed: Any = list[kind] if several else kind
    if one.field.is_required() and one.part is None:
        return keyword(one.key, Annotated[typed, info])
    default = None if several or read is not None else one.field.get_default(call_default_factory=True)
    return keyword(one.key, Annotated[typed | None if default is None else typed, info], default)


def _read(model: type[Request], inputs: list[Input], given: Mapping[str, Any]) -> Request:
    """The request of what was typed; a value outside its limits is bad usage (exit code 2)."""
    values: dict[str, Any] = {}
    for one in inputs:
        value = given[one.key]
        if value is None or value == []:
            continue
        if one.shell.read is not None:
            value = one.shell.read(value)
        if one.part is None:
            values[one.name] = value
        else:
            values.setdefault(one.name, {})[one.part] = value
    try:
        return model.model_validate(values)
    except ValidationError as error:
        first = error.errors()[0]
        message = _MESSAGES.get(str(first["type"])) or str(first["msg"]).removeprefix("Value error, ")
        raise typer.BadParameter(message, param_hint=_hint(inputs, first["loc"])) from None


def _hint(inputs: list[Input], place: tuple[int | str, ...]) -> str | None:
    for one in inputs:
        if place and one.name == place[0] and (one.part is None or one.part in place[1:2]):
            return one.name.upper() if one.place >= 0 else one.flags[0]
    return None
