"""Commands of this machine."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any, Literal, Self

from pydantic import AfterValidator, Field, create_model, model_validator

from hades.surfaces.capabilities.capability import (
    READS_FILES,
    WRITES_HOME,
    AccessMode,
    Id,
    LocalCommand,
    Moment,
    Request,
    Shell,
)
from schemas.sources import SOURCES, CorpusFields, SourceDeclaration, is_file_field

# Commands of the machine that holds the graph: examine, ingest, forget, publish. Only the command line offers them.


Domain = Annotated[str, Field(min_length=1, max_length=200)]
Phase = Literal["nodes", "chunks", "embeddings", "edges"]


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


_INGEST = "hades.surfaces.cli.ingest"
LOCAL_COMMANDS = (
    LocalCommand(("demo",), DemoRequest, "hades.surfaces.cli.ingest:run_demo", "builds a demonstration graph here"),
    LocalCommand(("doctor",), DoctorRequest, "hades.surfaces.cli.doctor:examine", "examines this machine"),
    LocalCommand(("provision",), ProvisionRequest, "hades.surfaces.cli.ingest:provision_store",
                 "needs the admin credential, which services do not hold"),
    LocalCommand(("status",), StatusRequest, "hades.surfaces.cli.serve:show_status",
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
)  # fmt: skip
# Commands that build the graph on this machine: run a flow, build, repair.
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
FirstStageName = Literal["sources", "embeddings", "edges", "topics"]  # hades.build.night, which is not light


def read_parameters(pairs: Sequence[str]) -> dict[str, str]:
    """KEY=VALUE pairs; the flow reads the values."""
    return dict(_pair(pair) for pair in pairs)


def _pair(pair: str) -> tuple[str, str]:
    import typer

    name, equals, value = pair.partition("=")
    if not equals or not name:
        raise typer.BadParameter(f"{pair!r} is not KEY=VALUE")
    return name, value


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
        "auto", description="Topics: auto builds them when their inputs changed, full always."
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


BUILD_COMMANDS = (
    LocalCommand(("run",), RunRequest, "hades.surfaces.cli.build:run_flow_here", WRITES_HOME, ("flow",)),
    LocalCommand(("build",), BuildRequest, "hades.surfaces.cli.build:run_build", WRITES_HOME),
    LocalCommand(("repair",), RepairRequest, "hades.surfaces.cli.build:repair_contracts", WRITES_HOME,
                 ("names",)),
)  # fmt: skip


# Commands that write the graph of this machine to a folder and read it back: backup, restore, export, import.


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


BACKUP_COMMANDS = (
    LocalCommand(("backup",), BackupRequest, "hades.surfaces.cli.build:run_backup", WRITES_HOME, ("target",)),
    LocalCommand(("export",), ExportRequest, "hades.surfaces.cli.build:run_export", WRITES_HOME, ("target",)),
    LocalCommand(("import",), ImportRequest, "hades.surfaces.cli.build:run_import", WRITES_HOME, ("source",)),
    LocalCommand(("restore",), RestoreRequest, "hades.surfaces.cli.build:run_restore", WRITES_HOME,
                 ("source",)),
)  # fmt: skip


# Commands of a person at a terminal: settings and completion.


class InitRequest(Request):
    """Write hades.yaml after three questions; what is given as an option is not asked, nor without a terminal.

    The key of an endpoint is never written: set HADES_LLM_API_KEY.
    """

    path: Path | None = Field(None, description="Folder to read: documents or code.")
    home: Path | None = Field(None, description="Folder that the graph is kept in.")
    llm_url: str | None = Field(None, description="OpenAI-compatible endpoint that writes answers; '' for none.")
    llm_model: str | None = Field(None, description="Model of that endpoint.")
    force: bool = Field(False, description="Replace hades.yaml where there is one.")


class CompletionRequest(Request):
    """Print the completion script of a shell, for example `hades completion bash >> ~/.bashrc`."""

    shell: Annotated[Literal["bash", "zsh", "fish"], Shell(metavar="SHELL")] = Field(description="bash, zsh or fish.")


_TERMINAL = "for the person at this terminal"
FIRST_STEPS = (
    LocalCommand(("init",), InitRequest, "hades.surfaces.cli.ingest:run_init", _TERMINAL),
    LocalCommand(
        ("completion",), CompletionRequest, "hades.surfaces.cli.ingest:show_completion", _TERMINAL, ("shell",)
    ),
)
# Commands that start a process of this machine (serve, mcp, watch) and manage its tokens.
STARTS_A_PROCESS = "starts a process on this machine that runs until it is stopped"
OPENS_THE_SERVICE = "decides who may use the services, so only a user of this machine may call it"
MODES = "ro: read; rw: also judge, remember and roll back; admin: also erase."
Port = Annotated[int, Field(ge=0, le=65535)]


class ServeRequest(Request):
    """Serve REST and the explorer page until stopped; by default read-only on 127.0.0.1, for callers with a token."""

    uds: Annotated[Path | None, Shell(metavar="PATH")] = Field(
        None, description="Listen on a Unix socket, with file mode 0660 or 0600."
    )
    port: Port | None = Field(None, description="Listen on TCP; 0 takes a free port.")
    host: str = Field("127.0.0.1", description="Address for --port; with 0.0.0.0 other machines can connect.")
    mode: AccessMode = Field("ro", description=MODES)
    no_token: bool = Field(False, description="On TCP of this machine only: accept every local user without a token.")
    workers: Annotated[int, Field(ge=1, le=64)] = Field(
        1, description="Processes that answer; they share one memory-mapped snapshot."
    )

    @model_validator(mode="after")
    def a_socket_has_no_port(self) -> Self:
        """The rights of the socket's file decide who may connect."""
        if self.uds is not None and (self.port is not None or self.no_token):
            raise ValueError("--uds takes neither --port nor --no-token: the rights of its file decide who may connect")
        return self


class McpRequest(Request):
    """Serve the tools of the Model Context Protocol, over stdio or streamable HTTP at /mcp; read-only by default."""

    mode: Literal["ro", "rw", "admin"] = Field(
        "ro", description="ro: only tools that read; rw: also tools that write; admin: also memory_erase."
    )
    port: Port | None = Field(None, description="Streamable HTTP on this port; by default stdin and stdout.")
    host: str = Field("127.0.0.1", description="With --port: the address to listen on.")
    no_token: bool = Field(
        False, description="With --port, on this machine only: accept every local user without a token."
    )


class WatchRequest(Request):
    """Keep a folder up to date: ingest, build and publish now and after each change, until Ctrl-C."""

    path: Path = Field(description="Folder of documents or code.")
    kind: Literal["auto", "documents", "workspace"] = Field(
        "auto", description="documents, workspace, or auto: workspace where there is code."
    )
    quiet_seconds: Annotated[float, Field(ge=0.1, le=600)] = Field(
        1.0, description="Update when nothing has changed for this time."
    )
    once: bool = Field(False, description="Update once and stop.")


class AddTokenRequest(Request):
    """Create a token and show it; it cannot be shown again."""

    name: str = Field(description="Whose token it is; recorded in the audit log.")
    mode: AccessMode = Field("ro", description=MODES)


class ListTokensRequest(Request):
    """List the tokens: name, mode and id. The text of a token is not stored."""


class RevokeTokenRequest(Request):
    """Revoke a token; running services refuse it from the next request on."""

    name: str = Field(description="Name or id of the token.")


_SERVE = "hades.surfaces.cli.serve"
SERVICE_COMMANDS = (
    LocalCommand(("serve",), ServeRequest, f"{_SERVE}:run_serve", STARTS_A_PROCESS),
    LocalCommand(("mcp",), McpRequest, f"{_SERVE}:run_mcp", STARTS_A_PROCESS),
    LocalCommand(("watch",), WatchRequest, "hades.surfaces.cli.build:run_watch", STARTS_A_PROCESS, ("path",)),
    LocalCommand(("token", "add"), AddTokenRequest, f"{_SERVE}:add_token", OPENS_THE_SERVICE, ("name",)),
    LocalCommand(("token", "list"), ListTokensRequest, f"{_SERVE}:list_tokens", OPENS_THE_SERVICE),
    LocalCommand(("token", "revoke"), RevokeTokenRequest, f"{_SERVE}:revoke_token", OPENS_THE_SERVICE, ("name",)),
)
# `hades eval`: measure retrieval on a corpus with known answers. Only the command line offers it.
RUNS_LONG = "builds a graph of its own from files of this machine and may run for hours"


def read_depths(text: str) -> tuple[int, ...]:
    """Ranks at which recall is measured, from text such as 2,5,10."""
    try:
        depths = tuple(sorted({int(part) for part in text.split(",")}))
    except ValueError:
        depths = ()
    if not depths or depths[0] < 1:
        raise ValueError(f"{text!r} is not a list of depths; write positive numbers such as 2,5,10")
    return depths


def _check_depths(text: str) -> str:
    read_depths(text)
    return text


Depths = Annotated[str, AfterValidator(_check_depths), Shell(flags=("-k",))]
Seed = Annotated[int, Field(ge=0)]
Count = Annotated[int, Field(ge=1)]


class EvaluationRequest(Request):
    """What every evaluation takes."""

    recipes: str | None = Field(
        None, description="Recipes, separated by commas; `ladder` for all of them, each also with one part left out."
    )
    home: Path | None = Field(
        None, description="Build in this folder and keep it, so that a second run does not embed again."
    )
    out: Path | None = Field(None, description="Folder for the results and the chart.")


class RankedEvaluationRequest(EvaluationRequest):
    """An evaluation that measures recall at several depths."""

    k: Depths = Field("2,5,10", description="Depths at which recall is measured, separated by commas.")


class ArxivFilesRequest(Request):
    """The files of an evaluation on papers."""

    papers: Path | None = Field(None, description="Rows of id, title and abstract; by default HADES_DATA/arxiv.")
    citations: Path | None = Field(None, description="Rows of src and dst; by default HADES_DATA/arxiv.")
    code_links: Path | None = Field(None, description="Rows of id and repo; by default HADES_DATA/arxiv.")
    seed: Seed = Field(1, description="Seed of the sample.")


class EvalMultihopRequest(RankedEvaluationRequest):
    """Build a graph of a corpus, ask every question, and compare recall with the baselines."""

    corpus: Path = Field(description="Rows of id, title and text.")
    questions: Path = Field(description="Rows of question and gold (ids of the corpus).")
    triples: Path | None = Field(None, description="Rows of id, entities and triples.")
    published: Path | None = Field(
        None, description="Rows of question, ground_truth and what other systems retrieved, by title."
    )


class EvalCitationsRequest(ArxivFilesRequest, RankedEvaluationRequest):
    """Ask each citation sentence for the paper it cites; the citations asked for are left out of the graph."""

    contexts: Path | None = Field(None, description="Rows of src, dst and context; by default HADES_DATA/arxiv.")
    sample: Count = Field(500, description="Number of sentences to ask.")
    ask: Literal["sentence", "paper"] = Field(
        "sentence", description="sentence: the sentence alone; paper: also the title of the citing paper."
    )


class EvalBridgesRequest(ArxivFilesRequest, EvaluationRequest):
    """Search the path from a paper to its repository, with the edge between them and without it."""

    pairs: Count = Field(500, description="Number of pairs to ask.")
    hops: Annotated[int, Field(ge=1, le=5), Shell(flags=("-L", "--hops"))] = Field(
        4, description="Maximum number of edges in a path."
    )
    paths: Annotated[int, Field(ge=1), Shell(flags=("-M", "--paths"))] = Field(
        6, description="Maximum number of paths in an answer."
    )
    ask: Literal["pair", "title"] = Field(
        "pair", description="pair: the question names both ends; title: only the paper."
    )


class EvalMemoryRequest(RankedEvaluationRequest):
    """Ask about what was said in long conversations, or about paragraphs of dated articles."""

    folder: Path = Field(
        description="Folder of turns, sessions and qa, or of passages and questions (all as .jsonl.gz)."
    )


class EvalCodeRequest(EvaluationRequest):
    """Find the files and functions that an issue is about, at its own commit; or the function that answers a question.

    Give --repo and --cases for issues, or --files and --questions for single functions.
    """

    repo: Path | None = Field(None, description="A git repository, or a folder with the repositories of the cases.")
    cases: Path | None = Field(None, description="Rows of id, repo, commit, question, gold (paths) and gold_symbols.")
    at: str | None = Field(None, description="Ask every case at this commit instead of its own.")
    limit: Count | None = Field(None, description="Maximum number of cases, spread evenly over the file.")
    files: Path | None = Field(None, description="Single functions: rows of id, name and text.")
    questions: Path | None = Field(None, description="Rows of id, question and gold (ids of functions).")
    dense: bool = Field(False, description="Also run the baselines that embed every function; slow.")

    @model_validator(mode="after")
    def one_form_is_complete(self) -> Self:
        """Issues need a repository and cases; single functions need files and questions."""
        if (self.repo is None or self.cases is None) == (self.files is None or self.questions is None):
            raise ValueError("give --repo and --cases, or --files and --questions")
        return self


_VIEWS = "hades.surfaces.cli.evaluation"
EVALUATIONS = (
    LocalCommand(("eval", "multihop"), EvalMultihopRequest, f"{_VIEWS}:run_multihop", RUNS_LONG),
    LocalCommand(("eval", "citations"), EvalCitationsRequest, f"{_VIEWS}:run_citations", RUNS_LONG),
    LocalCommand(("eval", "bridges"), EvalBridgesRequest, f"{_VIEWS}:run_bridges", RUNS_LONG),
    LocalCommand(("eval", "memory"), EvalMemoryRequest, f"{_VIEWS}:run_memory", RUNS_LONG, ("folder",)),
    LocalCommand(("eval", "code"), EvalCodeRequest, "hades.surfaces.cli.evaluation:run_code", RUNS_LONG),
)
