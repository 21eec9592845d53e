"""Commands of the machine that holds the graph: build, ingest, back up, serve. Only the command line offers them."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any, Literal, Self

from pydantic import Field, create_model, model_validator

from hades.surfaces.capabilities.capability import READS_FILES, WRITES_HOME, LocalCommand, Request, Shell
from hades.surfaces.capabilities.fields import Id, Moment
from schemas.source_kinds import SOURCES, CorpusFields, SourceDeclaration, is_file_field

FLOWS = (
    "nightly",
    "ingest",
    "embed",
    "build_hierarchy",
    "weigh_edges",
    "build_bridges",
    "train_ranker",
    "publish",
    "check_contracts",
    "consolidate_memory",
    "evaluate",
    "rollback",
    "reembed",
    "provision",
)
Domain = Annotated[str, Field(min_length=1, max_length=200)]
FirstStageName = Literal["sources", "embeddings", "edges", "topics"]  # hades.stages.night, which is not light
Phase = Literal["nodes", "chunks", "embeddings", "edges"]


def read_parameters(pairs: Sequence[str]) -> dict[str, str]:
    """KEY=VALUE pairs; the flow reads the values."""
    return dict(_pair(pair) for pair in pairs)


def _pair(pair: str) -> tuple[str, str]:
    import typer

    name, equals, value = pair.partition("=")
    if not equals or not name:
        raise typer.BadParameter(f"{pair!r} is not KEY=VALUE")
    return name, value


class DemoRequest(Request):
    """Build a small graph from the standard library and ask it three questions; no key, no network.

    Writes only to `demo/` under HADES_HOME; your own graph is not touched.
    """


class DoctorRequest(Request):
    """Check versions, settings, disk, store, model and snapshot. Changes nothing.

    Exit code 1 when a check fails; each failed check names the next step.
    """

    deep: bool = Field(False, description="Also read the whole store and check every page.")


class ProvisionRequest(Request):
    """Create the collections, indexes and views of the catalogue; safe to repeat.

    The only command that needs the admin endpoint or credential. A database keeps its part of the catalogue unless
    --only changes it. With HADES_TENANT the tenant's own database is provisioned.
    """

    only: Literal["memory", "all"] | None = Field(
        None, description="memory: a smaller database for memory alone; all: everything."
    )


class StatusRequest(Request):
    """Count the rows of each collection, what is quarantined, what is stale, and the last runs."""


class IngestPart(Request):
    """Which phases of an ingest run."""

    phase: Phase | None = Field(None, description="Run one phase only.")
    no_edges: bool = Field(False, description="Stop before the edges phase.")
    domain: Domain | None = Field(
        None,
        description="A domain of every document, for `hades query --domain`, beside folder, category and language.",
    )


def ingest_request(source: SourceDeclaration) -> type[Request]:
    """The request of one kind of corpus: where it is, the options that it reads, and which phases run."""
    fields: dict[str, Any] = {source.argument: (Path, Field(description=source.argument_help))}
    for name in source.options:
        declared = CorpusFields.model_fields[name]
        about = f"{(declared.description or '')[:1].upper()}{(declared.description or '')[1:]}."
        if declared.default is True:
            fields[f"no_{name}"] = (bool, Field(False, description=f"Do not {declared.description}."))
        elif is_file_field(name):
            fields[name] = (Path | None, Field(None, description=about))
        else:
            fields[name] = (declared.annotation, Field(declared.default, max_length=64, description=about))
    title = f"Ingest{source.kind.capitalize()}Request"
    return create_model(title, __base__=IngestPart, __doc__=source.about, __module__=__name__, **fields)


class IngestConversationRequest(Request):
    """Ingest a conversation into memory, one state a turn, with speaker, time and session; repeat to add new turns."""

    file: Path = Field(
        description="Chat log: JSONL or JSON of messages, an export of ChatGPT, Claude, Slack (folder or .zip), "
        "Telegram or Discord, LoCoMo; also .gz, or a folder of such files."
    )
    name: str | None = Field(None, description="Name of the conversation; by default the file's name.")


class IngestTriplesRequest(Request):
    """Extract facts from the texts with the language model of HADES_LLM_BASE_URL; prints the cost first."""

    max_calls: Annotated[int, Field(ge=1)] | None = Field(
        None, description="Maximum number of calls; without it only the cost is estimated."
    )


class ForgetRequest(Request):
    """Remove documents and every fact that only they support; print a certificate."""

    ids: Annotated[tuple[Id, ...], Shell(metavar="DOCUMENT_ID...")] = Field(
        min_length=1, description="Document ids as they came in, or document keys."
    )


class PublishRequest(Request):
    """Write the read index from the store and let readers use it at once."""

    prune: Annotated[int, Field(ge=1)] | None = Field(
        None, description="Number of newest snapshots to keep; older ones are removed."
    )


class RunRequest(Request):
    """Run a flow here: without a server, or recorded on the Prefect server of PREFECT_API_URL."""

    flow: Annotated[Literal[FLOWS], Shell(metavar="FLOW")] = Field(  # type: ignore[valid-type]
        description=f"One of {', '.join(FLOWS)}."
    )
    parameters: Annotated[
        dict[str, Any],
        Shell(flags=("-p", "--param"), metavar="KEY=VALUE", read=read_parameters, is_list=True,
              help="A parameter of the flow, as JSON or plain text; may be repeated."),
    ] = Field(default_factory=dict, description="Parameters of the flow.")  # fmt: skip


class BuildRequest(Request):
    """Bring the graph up to date and publish it: the nightly build, here and now, without a server.

    Work that is done is not repeated: an unchanged stage is skipped. With --until one build is made for each day, each
    with its own snapshot.
    """

    from_stage: Annotated[FirstStageName, Shell(flags=("--from",))] = Field(
        "sources", description="First stage to run; earlier ones are left out."
    )
    as_of: Moment | None = Field(None, description="The moment the build stands at; by default the beginning of today.")
    until: Moment | None = Field(None, description="Backfill: one build a day from --as-of to this day.")
    mode: Literal["auto", "full", "incremental"] = Field(
        "auto", description="Topics: rebuild them, or place what changed."
    )
    keep: Annotated[int, Field(ge=1)] = Field(7, description="Number of newest snapshots to keep.")
    dry_run: bool = Field(False, description="Only say which stages would run, and how long they took last time.")

    @model_validator(mode="after")
    def until_follows_as_of(self) -> Self:
        """A range has two ends in order."""
        if self.until is not None and (self.as_of is None or self.until < self.as_of):
            raise ValueError("--until needs an earlier --as-of, for example --as-of 2026-01-01 --until 2026-01-03")
        return self


class RepairRequest(Request):
    """Recompute what a contract names as damaged: broken rows are removed and rebuilt, then published."""

    names: Annotated[tuple[str, ...], Shell(metavar="[CONTRACT]...")] = Field(
        (), description="Contracts to repair; by default every contract."
    )


class BackupRequest(Request):
    """Write the store, the snapshots, the registry and the reports to a folder, each file with its hash.

    Services may keep running. Caches are left out: they are rebuilt from content.
    """

    target: Annotated[Path, Shell(metavar="TARGET")] = Field(description="Folder to write; it must be empty.")
    rows: bool = Field(False, description="Write rows as Parquet, which any store can load; ArangoDB always does.")
    logs: bool = Field(False, description="Also the audit and alert logs.")
    dated: bool = Field(False, description="Write to a folder inside TARGET named by the time.")
    keep: Annotated[int, Field(ge=1)] | None = Field(
        None, description="With --dated: number of newest backups to keep."
    )

    @model_validator(mode="after")
    def keep_counts_dated_backups(self) -> Self:
        """Only dated backups are counted."""
        if self.keep is not None and not self.dated:
            raise ValueError("--keep counts dated backups; add --dated")
        return self


class RestoreRequest(Request):
    """Restore HADES_HOME and the store from a backup; every file is checked before anything is changed.

    Stop the services of this home first.
    """

    source: Annotated[Path, Shell(metavar="SOURCE")] = Field(description="Folder that `hades backup` wrote.")
    force: bool = Field(False, description="Also where a graph exists: its parts are set aside, not deleted.")


class ExportRequest(Request):
    """Write memory and graph as text that other tools can read: one file for each collection, without loss."""

    target: Annotated[Path, Shell(metavar="TARGET")] = Field(description="Folder to write; it must be empty.")
    form: Literal["jsonl", "markdown"] = Field("jsonl", description="JSON Lines for programs, Markdown for people.")
    only: Literal["all", "memory", "graph"] = Field("all", description="What is written.")


class ImportRequest(Request):
    """Write the rows of an export into the store; rows with the same key are replaced. Then run `hades publish`.

    Every file is checked against its hash before the first row is written.
    """

    source: Annotated[Path, Shell(metavar="SOURCE")] = Field(description="Folder that `hades export` wrote.")
    seal: bool = Field(False, description="Accept files that were edited: count and hash them again first.")


_INGEST = "hades.surfaces.cli.ingest_views"
LOCAL_COMMANDS = (
    LocalCommand(("demo",), DemoRequest, "hades.surfaces.cli.demo:run_demo", "builds a demonstration graph here"),
    LocalCommand(("doctor",), DoctorRequest, "hades.surfaces.cli.doctor_views:examine", "examines this machine"),
    LocalCommand(("provision",), ProvisionRequest, "hades.surfaces.cli.store_views:provision_store",
                 "needs the admin credential, which services do not hold"),
    LocalCommand(("status",), StatusRequest, "hades.surfaces.cli.status_views:show_status",
                 "REST offers /ready, /v1/runs and /metrics"),
    *(
        LocalCommand(("ingest", source.kind), ingest_request(source), f"{_INGEST}:ingest_corpus", READS_FILES,
                     (source.argument,), {"source": source})
        for source in SOURCES
    ),
    LocalCommand(("ingest", "conversation"), IngestConversationRequest, f"{_INGEST}:run_conversation", READS_FILES,
                 ("file",)),
    LocalCommand(("ingest", "triples"), IngestTriplesRequest, f"{_INGEST}:run_triples", READS_FILES),
    LocalCommand(("forget",), ForgetRequest, f"{_INGEST}:run_forget", WRITES_HOME, ("ids",)),
    LocalCommand(("publish",), PublishRequest, f"{_INGEST}:run_publish", WRITES_HOME),
    LocalCommand(("run",), RunRequest, "hades.surfaces.cli.build_views:run_flow_here", WRITES_HOME, ("flow",)),
    LocalCommand(("build",), BuildRequest, "hades.surfaces.cli.build_command:run_build", WRITES_HOME),
    LocalCommand(("repair",), RepairRequest, "hades.surfaces.cli.build_views:repair_contracts", WRITES_HOME,
                 ("names",)),
    LocalCommand(("backup",), BackupRequest, "hades.surfaces.cli.backup_views:run_backup", WRITES_HOME, ("target",)),
    LocalCommand(("export",), ExportRequest, "hades.surfaces.cli.export_views:run_export", WRITES_HOME, ("target",)),
    LocalCommand(("import",), ImportRequest, "hades.surfaces.cli.export_views:run_import", WRITES_HOME, ("source",)),
    LocalCommand(("restore",), RestoreRequest, "hades.surfaces.cli.backup_views:run_restore", WRITES_HOME,
                 ("source",)),
)  # fmt: skip
