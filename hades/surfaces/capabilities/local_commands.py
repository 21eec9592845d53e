"""Commands of the machine that holds the graph: examine, ingest, forget, publish. Only the command line offers them."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import Field, create_model

from hades.surfaces.capabilities.capability import READS_FILES, WRITES_HOME, LocalCommand, Request, Shell
from hades.surfaces.capabilities.fields import Id
from schemas.source_kinds import SOURCES, CorpusFields, SourceDeclaration, is_file_field

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
)  # fmt: skip
