"""The commands `hades sources add`, `list`, `sync` and `remove`."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any

from pydantic import ValidationError
from rich.console import RenderableType

from hades.errors import SettingsError, explain_problems
from hades.ingest.phases import Phase
from hades.ingest.sources.remote.remotes import RemoteSources, default_name, whole_address
from hades.ingest.stated_rights import read_rules, split_names
from hades.ports.services import utc_now
from hades.settings.load import load_settings
from hades.surfaces.cli.output import (
    Answer,
    argument,
    list_records,
    local_command,
    option,
    show_progress,
)
from hades.surfaces.cli.serve import source_rows
from hades.wiring import open_hades, remote_options
from schemas.record import JsonObject
from schemas.sources import RemoteSource

_LISTED = 5
_NONE = "there is no remote source; add one with `hades sources add URL`, see docs/sources.md"


def _about(field: str) -> Any:
    """An option as the record describes it."""
    description = RemoteSource.model_fields[field].description or ""
    return option(f"{description[0].upper()}{description[1:]}.")


@local_command("sources add", "RW")
def add_source(
    url: Annotated[
        str,
        argument(
            "https://SITE, s3://BUCKET/FOLDER, file:///FOLDER, postgresql://HOST/DB, "
            "dlt:module:resource, ...; credentials as ${VARIABLE}.",
            "URL",
        ),
    ],
    name: Annotated[str | None, option("Name of the source; by default from the URL.")] = None,
    domain: Annotated[str | None, _about("domain")] = None,
    every_hours: Annotated[float | None, _about("every_hours")] = None,
    min_documents: Annotated[int | None, _about("min_documents")] = None,
    max_gone: Annotated[float | None, _about("max_gone")] = None,
    include: Annotated[list[str] | None, _about("include")] = None,
    exclude: Annotated[list[str] | None, _about("exclude")] = None,
    delay_seconds: Annotated[float | None, _about("delay_seconds")] = None,
    table: Annotated[str | None, _about("table")] = None,
    query: Annotated[str | None, _about("query")] = None,
    key: Annotated[str | None, _about("key")] = None,
    cursor: Annotated[str | None, _about("cursor")] = None,
    title: Annotated[str | None, _about("title")] = None,
    required: Annotated[list[str] | None, _about("required")] = None,
    rights: Annotated[
        list[str] | None,
        option(
            "Who may read the documents whose path fits, such as 'hr/=hr,user:anna' or '*=public'; "
            "the last that fits counts.",
            metavar="PATTERN=READERS",
        ),
    ] = None,
    readers: Annotated[list[str] | None, _about("readers")] = None,
) -> Answer:
    """Add a place elsewhere as a source of documents; the same name again replaces it.

    Nothing is read before `hades sources sync`. Nightly builds sync every source whose interval is
    over.
    """
    given = {
        "domain": domain,
        "every_hours": every_hours,
        "min_documents": min_documents,
        "max_gone": max_gone,
        "include": include,
        "exclude": exclude,
        "delay_seconds": delay_seconds,
        "table": table,
        "query": query,
        "key": key,
        "cursor": cursor,
        "title": title,
        "required": required,
        "rights": _read_rights(rights or []) or None,
        "readers": readers,
    }

    fields = {}
    for field, value in given.items():
        if value is not None:
            fields[field] = value

    try:
        source = RemoteSource.model_validate({"url": whole_address(url), **fields})
    except ValidationError as error:
        # The address may hold the very password that is refused.
        problems = explain_problems({**problem, "input": "..."} for problem in error.errors())
        raise SettingsError(f"this source cannot be added: {problems}") from None

    settings = load_settings()
    remotes = RemoteSources(settings.home, **remote_options(settings))
    state = remotes.add(name or default_name(source.url), source)
    document = {
        **state.as_dict(utc_now()),
        "source": source.model_dump(mode="json"),
    }
    line = f"added {state.name}; next: hades sources sync {state.name}"
    return Answer(document, (line,), is_report=True)


def _read_rights(pairs: list[str]) -> dict[str, list[str]]:
    """Readers by pattern."""
    rights = {}
    for pair in pairs:
        pattern, equals, names = pair.rpartition("=")
        if not equals:
            raise SettingsError(
                f"--rights {pair!r} is not PATTERN=READERS; write for example 'hr/=hr,user:anna'"
            )

        rights[pattern] = list(split_names(names))

    read_rules(rights, Path(), "--rights")
    return rights


@local_command("sources list")
def list_sources() -> Answer:
    """List the remote sources: documents, when each was last in step, and what went wrong."""
    rows = source_rows(load_settings())
    columns = "name url documents last_sync last_success overdue failures"

    problems = []
    for row in rows:
        if row["problem"]:
            problems.append(row["problem"])

    if rows:
        view = [list_records(rows, columns), *problems]
    else:
        view = [_NONE]

    return Answer({"sources": rows}, view)


@local_command("sources sync", "RW")
def sync_sources(
    names: Annotated[
        list[str] | None, argument("Names of sources; by default all.", "[NAME]...")
    ] = None,
    accept: Annotated[
        bool, option("Accept that more documents or columns are gone than the contract allows.")
    ] = False,
    due: Annotated[bool, option("Only sources whose interval is over.")] = False,
) -> Answer:
    """Bring sources in step: read what is new or changed, remove what is gone.

    A source whose contract does not hold, or that fails on the way, keeps what it had; the others
    are synced. The next `hades build` publishes what changed.
    """
    with show_progress() as progress, open_hades(progress=progress) as hades:
        phases = (Phase.NODES, Phase.CHUNKS)
        reports = hades.ingest.sync(
            list(names or ()),
            phases,
            accept=accept,
            due=due,
        )

    is_done = not any(report["problem"] for report in reports)
    return Answer(
        {"synced": reports},
        _sync_view(reports, due),
        ok=is_done,
        is_report=True,
    )


def _sync_view(reports: list[JsonObject], due: bool) -> Iterator[RenderableType]:
    if not reports:
        yield "no source is due" if due else _NONE
        return

    yield list_records(
        reports,
        "name listed new changed unchanged removed read bytes seconds",
    )
    for report in reports:
        for row in report["set_aside"][:_LISTED]:
            yield f"  {row['uri']}: {row['detail'] or row['reason']}"

        if report["problem"]:
            yield f"not synced: {report['problem']}"

    if any(report["new"] or report["changed"] or report["removed"] for report in reports):
        yield "next: hades build"


@local_command("sources remove", "RW")
def remove_source(
    name: Annotated[str, argument("Name of the source.", "NAME")],
) -> Answer:
    """Remove a source, its copies and its documents in the graph."""
    with open_hades() as hades:
        count = hades.ingest.remove_remote(name)

    line = f"removed {name} with {count:,} documents; next: hades build"
    return Answer(
        {"removed": name, "documents": count},
        (line,),
        is_report=True,
    )
