"""Capability -> command; the entry point."""

from __future__ import annotations

import gc
import inspect
import sys
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from types import NoneType, UnionType
from typing import TYPE_CHECKING, Annotated, Any, Literal, Union, cast, get_args, get_origin

import typer
from pydantic import BaseModel, ValidationError
from pydantic.fields import FieldInfo
from typer.completion import completion_init  # type: ignore[attr-defined]

from hades.errors import HadesError
from hades.settings.load import multiply_in_one_thread
from hades.surfaces.capabilities.capability import (
    READS_FILES,
    WRITES_HOME,
    Capability,
    Cli,
    JsonReply,
    LocalCommand,
    OmittedSurface,
    Request,
    Shell,
    load,
)
from hades.surfaces.capabilities.registry import declared_under
from hades.surfaces.cli.output import (
    QUIET,
    Answer,
    DebugFlag,
    JsonFlag,
    QuietFlag,
    answer_with,
    show_document,
    show_progress,
)
from hades.telemetry.logs import Audit, CallMode

if TYPE_CHECKING:
    from hades.surfaces.cli.output import ViewPart


# Commands made from capabilities: a field of the request becomes an argument or an option.


_WHO = "_who"
_NOT_A_TIME = "not a time; write it as 2026-01-31 or 2026-01-31T12:00:00Z"
_MESSAGES = {"datetime_from_date_parsing": _NOT_A_TIME, "datetime_parsing": _NOT_A_TIME}


def add_commands(app: typer.Typer, declared: Sequence[Capability | LocalCommand], groups: Mapping[str, str]) -> None:
    """Add the command of everything declared that has one; `groups` are the help texts of command groups."""
    opened: dict[str, typer.Typer] = {}
    for one in declared:
        cli = one.cli if isinstance(one, Capability) else one
        if isinstance(cli, OmittedSurface):
            continue
        *group, name = cli.path
        target = app
        if group:
            if group[0] not in opened:
                opened[group[0]] = typer.Typer(help=groups[group[0]])
                app.add_typer(opened[group[0]], name=group[0], no_args_is_help=True)
            target = opened[group[0]]
        made = make_command(one, cli) if isinstance(one, Capability) and isinstance(cli, Cli) else None
        target.command(name, help=one.help)(made or make_local_command(cast(LocalCommand, one)))


def make_local_command(local: LocalCommand) -> Callable[..., None]:
    """The function behind a command of this machine alone."""

    def run(request: Request, _options: Request | None, _who: str | None, _is_viewed: bool) -> Answer:
        answer: Answer = load(local.run)(**request.arguments(), **local.fixed)
        return replace(answer, is_report=local.reason in (READS_FILES, WRITES_HOME))

    return _command(local.request, local.arguments, None, None, run, "_".join(local.path))


def make_command(capability: Capability, cli: Cli) -> Callable[..., None]:
    """The function behind the command of a capability."""

    def run(request: Request, options: Request | None, who: str | None, is_viewed: bool) -> Answer:
        return perform(capability, cli, request, options, who, is_viewed=is_viewed)

    return _command(capability.request, cli.arguments, cli.options, cli.who, run, "_".join(cli.path))


Run = Callable[[Request, Request | None, str | None, bool], Answer]


def _command(
    model: type[Request], arguments: tuple[str, ...], view: type[Request] | None, who: str | None, run: Run, name: str
) -> Callable[..., None]:
    """A function with the signature that typer reads: it makes the request and answers as every command does."""
    inputs = [*_inputs(model, arguments), *(_inputs(view, ()) if view else ())]

    def command(**given: Any) -> None:
        as_json, debug = given.pop("as_json"), given.pop("debug")
        QUIET.set(given.pop("quiet") or QUIET.get())
        person = given.pop(_WHO, None)
        problem: HadesError | None = None
        request = options = None
        try:
            request = _read(model, inputs, given)
            options = _read(view, inputs, given) if view else None
        except HadesError as error:
            problem = error

        def body() -> Answer:
            if problem is not None or request is None:
                raise problem or HadesError("no request")
            return run(request, options, person, not as_json)

        answer_with(body, as_json=as_json, debug=debug)

    parameters = [_parameter(one) for one in inputs]
    if who is not None:
        option = typer.Option(who, metavar="NAME", help="Who is responsible; by default the user of this session.")
        parameters.append(_keyword(_WHO, Annotated[str | None, option], None))
    flags = {"as_json": JsonFlag, "quiet": QuietFlag, "debug": DebugFlag}
    parameters += [_keyword(name, flag, False) for name, flag in flags.items()]
    command.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    command.__annotations__ = {}
    command.__name__ = name
    return command


def perform(
    capability: Capability,
    cli: Cli,
    request: Request,
    options: Request | None = None,
    who: str | None = None,
    *,
    is_viewed: bool = True,
) -> Answer:
    """Call the capability in a context of its own; the turn is logged once it is shown.

    The view for people is made where it `is_viewed`: a program that reads the document does not wait for it.
    """
    from hades.surfaces.access.contexts import local_context

    with ExitStack() as opened, show_progress() as progress:
        context = opened.enter_context(local_context(who, progress=progress))
        if cli.is_audited:
            mode: CallMode = "RO" if capability.mode == "ro" else "RW"
            with Audit(context.settings.home / "logs").call(mode, " ".join(cli.path)):
                reply = capability.call(request, context)
        else:
            reply = capability.call(request, context)
        document = reply.document if isinstance(reply, JsonReply) else reply
        view = _view(cli, document, options) if is_viewed else ()
        answer = Answer(document, view, ok=cli.succeeds(document))
        later = opened.pop_all()

    def finish() -> str:
        with later:
            return context.log_turns()

    return replace(answer, finish=finish)


def _view(cli: Cli, document: Mapping[str, Any], options: Request | None) -> tuple[ViewPart, ...]:
    if cli.view is None:
        return show_document(document)
    render = load(cli.view)
    parts: tuple[ViewPart, ...] = tuple(render(document, options) if options is not None else render(document))
    return parts


@dataclass(frozen=True)
class Input:
    """One argument or option: the model and field it fills (`part` of a nested model), and how it is written."""

    model: type[BaseModel]
    name: str
    part: str | None
    field: FieldInfo
    kind: Any
    is_list: bool
    shell: Shell
    limits: Mapping[str, Any]
    flag: str | None
    is_argument: bool

    @property
    def key(self) -> str:
        """The name of the function's parameter."""
        return f"{self.name}__{self.part}" if self.part else self.name


def _inputs(model: type[BaseModel] | None, arguments: tuple[str, ...]) -> list[Input]:
    """The inputs of a request: positional fields in their order, then required options, then the others as declared."""
    assert model is not None
    found: list[Input] = []
    for name, field in model.model_fields.items():
        shell = _shell(field)
        if shell.parts:
            nested, _, _ = _shape(field)
            found += [_input(model, name, part, nested.model_fields[part], flag, False) for part, flag in shell.parts]
        else:
            found.append(_input(model, name, None, field, None, name in arguments))
    return sorted(found, key=lambda one: _place(one, arguments))


def _place(one: Input, arguments: tuple[str, ...]) -> int:
    if one.is_argument:
        return arguments.index(one.name)
    return len(arguments) + (0 if one.field.is_required() else 1)


def _input(
    model: type[BaseModel], name: str, part: str | None, field: FieldInfo, flag: str | None, is_argument: bool
) -> Input:
    kind, is_list, limits = _shape(field)
    return Input(model, name, part, field, kind, is_list, _shell(field), limits, flag, is_argument)


def _shell(field: FieldInfo) -> Shell:
    found = [one for one in _metadata(field) if isinstance(one, Shell)]
    return found[-1] if found else Shell()


def _metadata(field: FieldInfo) -> list[Any]:
    """The metadata of a field, also of the type inside `X | None`."""
    return [*_inner(field.annotation), *field.metadata]


def _inner(annotation: Any) -> list[Any]:
    if get_origin(annotation) in (Union, UnionType):
        return [one for part in get_args(annotation) if part is not NoneType for one in _inner(part)]
    if get_origin(annotation) is Annotated:
        base, *rest = get_args(annotation)
        spread = [part for one in rest for part in (one.metadata if isinstance(one, FieldInfo) else [one])]
        return [*_inner(base), *spread]
    return []


def _shape(field: FieldInfo) -> tuple[Any, bool, dict[str, Any]]:
    """The plain type of a value, whether there are several, and the limits of a number."""
    kind = _bare(field.annotation)
    limits = {name: value for one in _metadata(field) for name, value in _limit(one).items()}
    if get_origin(kind) in (tuple, list):
        item = get_args(kind)[0]
        limits = {name: value for one in _inner(item) for name, value in _limit(one).items()}
        return _bare(item), True, limits
    return kind, False, limits


def _bare(annotation: Any) -> Any:
    while True:
        origin = get_origin(annotation)
        if origin is Annotated:
            annotation = get_args(annotation)[0]
        elif origin in (Union, UnionType):
            annotation = next(part for part in get_args(annotation) if part is not NoneType)
        else:
            return annotation


def _limit(one: Any) -> dict[str, Any]:
    return {name: getattr(one, source) for source, name in (("ge", "min"), ("le", "max")) if hasattr(one, source)}


def _parameter(one: Input) -> inspect.Parameter:
    kind: Any = one.kind if one.shell.read is None and one.kind in (int, float, bool) else str
    if get_origin(one.kind) is Literal and one.shell.read is None:
        kind = one.kind
    several = one.is_list or one.shell.is_list
    annotation: Any = list[kind] if several else kind
    is_required = one.field.is_required()
    help_text = one.shell.help or one.field.description or ""
    limits = dict(one.limits) if kind in (int, float) else {}
    if one.is_argument:
        info: Any = typer.Argument(metavar=one.shell.metavar or one.name.upper(), help=help_text, **limits)
    else:
        flags = (one.flag,) if one.flag else one.shell.flags or (f"--{one.name.replace('_', '-')}",)
        metavar = None if kind is bool else one.shell.metavar or ("PATH" if one.kind is Path else None)
        info = typer.Option(*flags, metavar=metavar, help=help_text, **limits)
    if is_required and one.part is None:
        return _keyword(one.key, Annotated[annotation, info], inspect.Parameter.empty)
    default = None if several or one.shell.read is not None else one.field.get_default(call_default_factory=True)
    if default is None:
        annotation = annotation | None
    return _keyword(one.key, Annotated[annotation, info], default)


def _keyword(name: str, annotation: Any, default: Any) -> inspect.Parameter:
    return inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=annotation)


def _read(model: type[Request], inputs: list[Input], given: Mapping[str, Any]) -> Request:
    """The request of what was typed; a value outside its limits is bad usage (exit code 2)."""
    values: dict[str, Any] = {}
    for one in inputs:
        value = given[one.key]
        if one.model is not model or value is None or value == []:
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
            flags = (one.flag,) if one.flag else one.shell.flags
            return one.name.upper() if one.is_argument else (flags or (f"--{one.name.replace('_', '-')}",))[0]
    return None


# The command `hades`, made from what is declared. Bodies are imported when they run, so `--help` stays light, and a
# command that is named reads no other declaration.


GROUPS = {
    "ingest": "Turn material into nodes, chunks, embeddings and edges; safe to stop and to repeat.",
    "memory": "Memory through time: versions, edges, and what was known when.",
    "token": "Tokens for the service on TCP; only their hashes are stored.",
    "eval": "Evaluate retrieval, compared with BM25, dense and hybrid baselines.",
    "graph": "Look at the published graph: nodes, neighbours, topics.",
    "entity": "Correct entities by hand: idempotent, reviewed where it matters, kept by builds, undoable.",
}


def main() -> None:
    """Entry point of the console script."""
    completion_init()  # the shell asks through the environment which words may follow
    word = next((one for one in sys.argv[1:] if not one.startswith("-")), None)  # none when the shell asks
    declared = declared_under(word)
    if all(isinstance(one, Capability) for one in declared):
        multiply_in_one_thread()
    try:
        make_app(declared)(prog_name="hades")
    finally:
        gc.freeze()  # the end of the process looks for garbage among all that is left: a seventh of a question's time


@cache
def whole_app() -> typer.Typer:
    """Every command, for documentation and tests."""
    return make_app(declared_under(None))


def make_app(declared: Sequence[Capability | LocalCommand]) -> typer.Typer:
    """The command line of these declarations."""
    app = typer.Typer(
        name="hades",
        help="Documents, papers and code as a knowledge graph that answers with short, cited paths.",
        no_args_is_help=True,
        add_completion=False,
        pretty_exceptions_enable=False,
        context_settings={"help_option_names": ["-h", "--help"]},
        callback=root,
    )
    add_commands(app, declared, GROUPS)
    return app


def _version(wanted: bool) -> None:
    if wanted:
        from importlib.metadata import version

        typer.echo(f"hades {version('hades-graphrag')}")
        raise typer.Exit


def root(
    version: Annotated[
        bool, typer.Option("--version", help="Print the version and stop.", callback=_version, is_eager=True)
    ] = False,
    quiet: Annotated[
        bool, typer.Option("--quiet", help="No progress and no report of work done, whichever command follows.")
    ] = False,
) -> None:
    """Documents, papers and code as a knowledge graph that answers with short, cited paths."""
    QUIET.set(quiet)


if __name__ == "__main__":
    main()
