"""The commands `hades ingest`, `forget`, `publish`, `init`, `completion`, `demo` and
`provision`.
"""

from __future__ import annotations

import inspect
import re
import sys
import sysconfig
import time
from collections.abc import Iterator, Sequence
from contextlib import closing, suppress
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Annotated, Any, Literal

import typer
import yaml
from rich.console import RenderableType
from rich.panel import Panel
from rich.text import Text
from typer.completion import get_completion_script  # type: ignore[attr-defined]

from hades.errors import HadesError, SettingsError
from hades.files import write_whole
from hades.ingest.forget import UnknownDocument
from hades.ingest.phases import Phase
from hades.ingest.sources.workspace import WorkspaceSource
from hades.memory.conversations import ingest_conversation
from hades.night.history import other_names
from hades.night.release.publish import publish_now
from hades.night.report import summary_lines
from hades.ports.services import utc_now
from hades.ports.store import Mode
from hades.settings.load import (
    FILE_NAME,
    branches,
    configuration_folder,
    for_branch,
    load_settings,
    read_file,
)
from hades.settings.tree import Settings, variable_of
from hades.settings.trust import fingerprint_of, guarded_values, set_trust
from hades.surfaces.capabilities.capability import keyword
from hades.surfaces.cli.output import Answer, argument, local_command, option, show_progress, table
from hades.wiring import hold_build, open_hades, open_memory, open_store
from schemas.answer import Retrieval
from schemas.catalogue import ALL
from schemas.record import JsonObject
from schemas.sources import FILE_FIELDS, SOURCES, CorpusFields, SourceDeclaration, SourceSpec

_LISTED = 12


def _declare_ingest(source: SourceDeclaration) -> None:
    """The command of one kind of corpus: where it is, the options that it reads, and which phases
    run.
    """

    def run(
        phase: str | None, no_edges: bool, edges: int, domain: str | None, **arguments: Any
    ) -> Answer:
        options = {
            name: not arguments[f"no_{name}"] if f"no_{name}" in arguments else arguments[name]
            for name in source.options
        }
        fields = {
            name: str(value) if isinstance(value, Path) else value
            for name, value in options.items()
            if value is not None  # a list that was left out
        }
        spec = SourceSpec(
            source=source.kind,
            path=str(arguments[source.argument]),
            domain=domain,
            **fields,
        )
        phases = list(Phase)

        if phase:
            phases = [Phase(phase)]
        elif no_edges or not edges:
            phases.remove(Phase.EDGES)

        with (
            show_progress() as progress,
            hold_build("hades ingest"),
            open_hades(progress=progress) as hades,
        ):
            report = hades.ingest.spec(spec, phases).as_dict()
            counts = {name: rows for name, rows in hades.store.counts().items() if rows}

        return Answer({**report, "counts": counts}, _report_view(report, counts))

    run.__signature__ = inspect.Signature(_ingest_parameters(source))  # type: ignore[attr-defined]
    run.__doc__ = source.about
    local_command(f"ingest {source.kind}", "RW")(run)


def _ingest_parameters(source: SourceDeclaration) -> list[inspect.Parameter]:
    """The argument and the options of the command of one kind of corpus."""
    argument_info = argument(source.argument_help, source.argument.upper())
    phases: Any = Literal["nodes", "chunks", "embeddings", "edges"] | None
    domain_help = (
        "A domain of every document, for `hades query --domain`, beside folder, category and "
        "language."
    )
    edges_info = option(
        "0 is the same as --no-edges.",
        "--edges",
        min=0,
        max=1,
    )
    parameters = [
        keyword(source.argument, Annotated[Path, argument_info]),
        keyword(
            "phase",
            Annotated[phases, option("Run one phase only.")],
            None,
        ),
        keyword(
            "no_edges",
            Annotated[bool, option("Stop before the edges phase.", "--no-edges")],
            False,
        ),
        keyword("edges", Annotated[int, edges_info], 1),
        keyword(
            "domain",
            Annotated[str | None, option(domain_help)],
            None,
        ),
    ]

    for name in source.options:
        field = CorpusFields.model_fields[name]
        description = field.description or ""
        info = option(f"{description[0].upper()}{description[1:]}.")

        if field.default is True:
            info = option(f"Do not {description}.", f"--no-{name}")
            parameters.append(keyword(f"no_{name}", Annotated[bool, info], False))
        elif name in FILE_FIELDS:
            parameters.append(keyword(name, Annotated[Path | None, info], None))
        else:
            parameters.append(
                keyword(
                    name,
                    Annotated[list[str] | None, info],
                    None,
                )
            )

    return parameters


for _source in SOURCES:
    _declare_ingest(_source)


@local_command("ingest conversation", "RW")
def run_conversation(
    file: Annotated[
        Path,
        argument(
            "Chat log: JSONL or JSON of messages, an export of ChatGPT, Claude, Slack (folder or "
            ".zip), Telegram or "
            "Discord, LoCoMo; also .gz, or a folder of such files.",
            "FILE",
        ),
    ],
    name: Annotated[
        str | None, option("Name of the conversation; by default the file's name.")
    ] = None,
) -> Answer:
    """Ingest a conversation into memory, one state a turn, with speaker, time and session; repeat
    to add new turns.
    """
    with open_memory() as memory:
        report = ingest_conversation(memory, file, name)

    counts = (
        f"{report['turns']:,} turns in {report['sessions']:,} sessions: {report['added']:,} new"
    )
    counts += (
        f", {report['changed']:,} changed, {report['unchanged']:,} known, {report['skipped']:,} "
        "left out (no text)"
    )
    return Answer(report, (counts, f"topics begin with {report['prefix']}"))


@local_command("ingest triples", "RW")
def run_triples(
    max_calls: Annotated[
        int | None,
        option(
            "Maximum number of calls; without it only the cost is estimated.",
            min=1,
        ),
    ] = None,
) -> Answer:
    """Extract facts from the texts with the language model of HADES_LLM_BASE_URL; prints the cost
    first.
    """
    with (
        show_progress() as progress,
        hold_build("hades ingest"),
        open_hades(progress=progress) as hades,
    ):
        guess = hades.estimate_triples()
        if max_calls is not None:
            bill = hades.read_triples(max_calls)
        else:
            bill = None

    cost = f"{guess['calls']:,} texts to read: about {guess['prompt_tokens']:,} tokens to send"
    lines = [f"{cost}, at most {guess['completion_tokens_at_most']:,} to receive"]
    if bill is None:
        lines.append("nothing was asked; give --max-calls to go ahead")
    else:
        unread = f"{bill['unusable']} unusable, {bill['not_asked']:,} left for later"
        lines.append(f"asked {bill['calls']:,} times, {unread}")

    return Answer({"estimate": guess, "asked": bill}, lines)


@local_command("forget", "RW")
def run_forget(
    ids: Annotated[
        list[str] | None,
        argument(
            "Document ids as they came in, or document keys.",
            "[DOCUMENT_ID]...",
        ),
    ] = None,
    query: Annotated[
        list[str] | None,
        option("Id of a logged question to remove with its answer; may be repeated."),
    ] = None,
    publish: Annotated[
        bool,
        option("Publish without them at once and remove every older snapshot."),
    ] = False,
) -> Answer:
    """Remove documents and every fact that only they support, or logged questions; print a
    certificate.

    The graph that serves answers from a document until the next one is published: give --publish.
    """
    if not ids and not query:
        raise HadesError("nothing was named; give a document id, or --query with a question's id")

    with hold_build("hades forget"), open_hades() as hades:
        names = other_names(hades.home, ids or ())
        questions = hades.forget_questions(query) if query else []
        if ids:
            certificate = hades.forget(ids).as_dict()
        else:
            certificate = {"complete": True}

        if publish:
            published = publish_now(hades.build_context, utc_now(), 1)
        else:
            published = None

        snapshots = sorted(
            path.name for path in (hades.home / "snapshots").glob("*/") if path.is_dir()
        )
        pages = sorted(path.name for path in (hades.home / "reports").glob("*") if path.is_file())

    in_branches = _forget_in_branches(names if ids else (), publish)
    document = {
        **certificate,
        "questions_removed": questions,
        "published": published["snapshot"] if published else "",
        "snapshots_from_before": [] if published else snapshots,
        "reports_from_before": pages,
        "branches": in_branches,
    }
    return Answer(
        document,
        _forget_lines(document),
        ok=certificate["complete"],
    )


def _forget_in_branches(ids: Sequence[str], publish: bool) -> list[str]:
    """Forget documents in every branch of the home as well; the branches that had one."""
    settings = load_settings()

    names = []
    for name in branches(settings.home):
        own_settings = for_branch(settings, name)
        with hold_build("hades forget", own_settings), open_hades(own_settings) as hades:
            had_one = False
            for identifier in other_names(own_settings.home, ids):
                with suppress(UnknownDocument):
                    hades.forget([identifier])
                    had_one = True

            if had_one and publish:
                publish_now(hades.build_context, utc_now(), 1)

            names += [name] if had_one else []

    return names


def _forget_lines(document: JsonObject) -> Iterator[str]:
    """What was removed, of the log and of the documents, and what serves now."""
    for question in document["questions_removed"]:
        yield f"removed from the log: question {question}"

    if "documents" in document:
        yield from _certificate_lines(document)
    if document["published"]:
        yield f"published {document['published']}; every older snapshot was removed"

    for name in document["branches"]:
        if document["published"]:
            step = ""
        else:
            step = f"; `hades --branch {name} publish --prune 1` there"

        yield f"forgotten in the branch {name} too{step}"


def _certificate_lines(document: JsonObject) -> Iterator[str]:
    """What was removed, and what outside the store may still tell of it."""
    for forgotten in document["documents"]:
        yield f"forgotten: {forgotten['id']} (sha256 {forgotten['sha256'][:16]})"

    yield f"removed: {_list_counts(document['removed']) or 'nothing'}"
    if document["corrected"]:
        yield f"corrected: {_list_counts(document['corrected'])}"

    yield (
        "entities that only it supported: "
        f"{', '.join(document['entities_removed'][:_LISTED]) or 'none'}"
    )
    for entity in document["entities_kept"][:_LISTED]:
        yield f"kept: {entity['name']} ({entity['why']})"

    yield f"cached answers deleted: {document['answers_removed']:,}"
    if removed := document["files_removed"]:
        yield f"files removed that held its words: {', '.join(removed)}"

    for name in document["files_left"]:
        yield f"still in the file {name}: words that only it wrote; remove the file if you mind"

    if document["complete"]:
        yield "nothing in the store names or quotes it"
    else:
        yield (
            f"LEFT BEHIND: {_list_counts(document['left_behind'])}; their keys are in the "
            "certificate (--json)"
        )

    for place in document["read_again"][:_LISTED]:
        yield f"still in {place}: take it out there too, or the next build reads it again"

    if snapshot_count := len(document["snapshots_from_before"]):
        step = "`hades publish --prune 1` publishes without it and removes them"
        yield (
            f"QUESTIONS ARE STILL ANSWERED FROM IT: {snapshot_count} published snapshots are from "
            f"before and hold it; {step}"
        )


@local_command("publish", "RW")
def run_publish(
    prune: Annotated[
        int | None,
        option(
            "Number of newest snapshots to keep; older ones are removed.",
            min=1,
        ),
    ] = None,
) -> Answer:
    """Write the read index from the store and let readers use it at once."""
    with (
        show_progress() as progress,
        hold_build("hades publish"),
        open_hades(progress=progress) as hades,
    ):
        document = publish_now(hades.build_context, utc_now(), prune)

    return Answer(
        document,
        (f"published {document['snapshot']} in {document['path']}; readers see it from now on",),
    )


def _report_view(
    report: JsonObject,
    counts: dict[str, int],
) -> Iterator[RenderableType]:
    documents = {name: count for name, count in report["documents"].items() if count}
    yield f"documents: {_list_counts(documents) or 'nothing read'}"
    yield f"chunks cut: {report['chunks']:,}, embedded: {report['embedded']:,}"

    if report["quarantined"]:
        reasons = []
        for reason, count in report["quarantined"].items():
            reasons.append(f"{count} {reason}")

        yield f"set aside: {', '.join(reasons)}"
        for row in report["set_aside"][:_LISTED]:
            yield f"  {row['uri']}: {row['detail'] or row['reason']}"

        if sum(report["quarantined"].values()) > _LISTED:
            yield "  ... all of them: `hades status --json`"

    changes = ("added", "changed", "removed")
    rows = []
    for name, row_count in counts.items():
        derived = report["derived"].get(name, {})
        rows.append((name, row_count, *(derived.get(change) or "" for change in changes)))

    yield table(("collection", "rows", *changes), rows)
    yield ", ".join(f"{phase} {value:.1f} s" for phase, value in report["seconds"].items())
    yield "next: hades build"


def _list_counts(counts: dict[str, int]) -> str:
    return ", ".join(f"{count:,} {name}" for name, count in counts.items())


@local_command("init")
def run_init(
    path: Annotated[Path | None, option("Folder to read: documents or code.")] = None,
    home: Annotated[Path | None, option("Folder that the graph is kept in.")] = None,
    llm_url: Annotated[
        str | None, option("OpenAI-compatible endpoint that writes answers; '' for none.")
    ] = None,
    llm_model: Annotated[str | None, option("Model of that endpoint.")] = None,
    force: Annotated[bool, option("Replace hades.yaml where there is one.", "--force")] = False,
) -> Answer:
    """Write hades.yaml after three questions; what is given as an option is not asked, nor without
    a terminal.

    The key of an endpoint is never written: set HADES_LLM_API_KEY.
    """
    file = Path.cwd() / FILE_NAME
    if file.exists() and not force:
        raise SettingsError(
            f"{FILE_NAME} exists in this folder; edit it, or replace it with --force"
        )

    default_home = str(Settings.model_fields["home"].default)
    path = path if path is not None else Path(_ask_person("Which folder shall be read?", "."))
    home = (
        home
        if home is not None
        else Path(_ask_person("Where shall the graph be kept?", default_home))
    )

    if llm_url is None:
        llm_url = _ask_person(
            "OpenAI-compatible endpoint that writes answers (empty for none)?",
            "",
        )

    if llm_url and not llm_model:
        llm_model = _ask_person("Its model?", "")
        if not llm_model:
            raise SettingsError(f"the endpoint {llm_url} needs a model; give --llm-model NAME")

    if not path.is_dir():
        raise SettingsError(f"{path} is not a folder; give the folder to read with --path")

    values = {"home": str(home)}
    if llm_url and llm_model:
        values |= {
            "llm_base_url": llm_url,
            "llm_model": llm_model,
        }

    text = _HEAD + yaml.safe_dump(values, sort_keys=False)
    with TemporaryDirectory() as scratch:  # what cannot be read replaces nothing
        scratch_file = write_whole(Path(scratch) / FILE_NAME, text)
        load_settings({variable_of("trust_folder"): "1"}, scratch_file.parent)

    write_whole(file, text)
    guarded = guarded_values(read_file(file), file.parent)
    if guarded:  # the person who runs this names these values
        set_trust(
            file.parent,
            fingerprint_of(guarded),
            configuration_folder(),
        )

    steps = [f"hades watch {path}", 'hades answer "..."', "hades serve --no-token"]
    document = {
        "file": str(file),
        "settings": values,
        "next": steps,
    }
    return Answer(document, [f"wrote {file}", *(f"next: {step}" for step in steps)])


_HEAD = "# Settings of HADES; environment variables win. Every key: docs/reference/settings.md.\n"


def _ask_person(question: str, default: str) -> str:
    """The answer of a person; the default where nobody is asked."""
    if not sys.stdin.isatty():
        return default
    return str(
        typer.prompt(
            question,
            default=default,
            err=True,
        )
    ).strip()


@local_command("completion")
def show_completion(
    shell: Annotated[Literal["bash", "zsh", "fish"], argument("bash, zsh or fish.", "SHELL")],
) -> Answer:
    """Print the completion script of a shell, for example `hades completion bash >> ~/.bashrc`."""
    script = get_completion_script(
        prog_name="hades",
        complete_var="_HADES_COMPLETE",
        shell=shell,
    )
    return Answer(
        {"shell": shell, "script": script},
        (
            Text(
                script,
                no_wrap=True,
                overflow="ignore",
            ),
        ),
    )


PACKAGES = (
    "asyncio",
    "collections",
    "concurrent",
    "email",
    "html",
    "http",
    "json",
    "logging",
    "sqlite3",
    "tomllib",
    "urllib",
    "zoneinfo",
)
QUESTIONS = (
    "where is the date in an email header parsed?",
    "which function runs a blocking call in a separate thread?",
    "TypeError: Object of type set is not JSON serializable",
)
PATHS = 1
PASSAGES = 3
_DOCSTRING = re.compile(r'(?:"""|\'\'\')\s*(.+?)(?:\n\s*\n|"""|\'\'\')', re.DOTALL)


@local_command("demo")
def run_demo() -> Answer:
    """Build a small graph from the standard library and ask it three questions; no key, no network.

    Writes only to `demo/` under HADES_HOME; your own graph is not touched.
    """
    own_settings = load_settings()
    settings = own_settings.model_copy(
        update={
            "home": own_settings.home / "demo",
            "store": "sqlite",
            "view": "snapshot",
        }
    )
    began = time.perf_counter()

    with (
        show_progress() as bars,
        hold_build("hades demo", settings),
        open_hades(settings, progress=bars) as hades,
    ):
        patterns = ["/*", *(f"!/{name}/" for name in PACKAGES)]
        library = WorkspaceSource(
            Path(sysconfig.get_paths()["stdlib"]),
            exclude=patterns,
        )
        report = hades.ingest.source(library).as_dict()
        night = hades.build()
        answers = [hades.retrieve(question) for question in QUESTIONS]
        counts = {name: rows for name, rows in hades.store.counts().items() if rows}

    document = {
        "home": str(settings.home),
        "explorer": f"http://127.0.0.1:{settings.serve_port}/",
        "seconds": round(time.perf_counter() - began, 1),
        "report": report,
        "night": night,
        "counts": counts,
        "snapshot": night["released"]["snapshot"],
        "answers": [answer.model_dump(mode="json") for answer in answers],
    }
    return Answer(document, _show_demo(document, answers))


def _show_demo(
    document: JsonObject,
    answers: list[Retrieval],
) -> Iterator[RenderableType]:
    counts = document["counts"]
    home = document["home"]
    names = ("files", "doc_chunks", "entities", "relations", "clusters")
    phases = ", ".join(
        f"{phase} {value:.0f} s" for phase, value in document["report"]["seconds"].items()
    )
    yield ", ".join(f"{counts.get(name, 0):,} {name}" for name in names)
    yield f"ingested in {phases}; then one night:\n"
    yield "\n".join([*summary_lines(document["night"]), ""])
    yield from map(_ask_demo, answers)
    yield (
        f"{document['seconds']:.0f} s in all; report with pictures: {document['night']['report']}\n"
        f"ask your own: HADES_HOME={home} hades answer 'how is a cookie parsed?'\n"
        f"explorer: HADES_HOME={home} hades serve --no-token, then open {document['explorer']}"
    )


def _ask_demo(answer: Retrieval) -> Panel:
    """Where the answer stands and what is said there in a line, then a path that explains it, then
    what it cost.
    """
    lines = Text()
    for passage in answer.passages[:PASSAGES]:
        place = passage.document
        if passage.path and passage.lines:
            place = f"{passage.path}:{passage.lines[0]}"

        lines.append(f"{place}  {passage.symbol}\n", style="bold")
        lines.append(f"    {_first_words(passage.text)}\n")

    for path in answer.paths[:PATHS]:
        lines.append(f"why: {path.text}\n", style="dim")

    budget = answer.plan.budget
    spent = answer.telemetry
    cost = f"{spent.reads} of {budget.docs_max} reads, {spent.ms:.0f} of {budget.latency_ms} ms"
    lines.append(
        f"spent {cost}, {answer.tokens.prompt} prompt tokens",
        style="dim",
    )
    return Panel(
        lines,
        title=f"{answer.query}  ({answer.recipe})",
        title_align="left",
    )


def _first_words(code: str) -> str:
    """What a unit of code says of itself: the first paragraph of its docstring, else its first
    line.
    """
    docstring = _DOCSTRING.search(code)
    if docstring:
        text = docstring.group(1)
    else:
        text = code.strip().partition("\n")[0]

    words = " ".join(text.split())
    if len(words) <= 160:
        return words

    return f"{words[:160].rsplit(' ', 1)[0]} …"


@local_command("provision", "RW")
def provision_store(
    only: Annotated[
        Literal["memory", "all"] | None,
        option("memory: a smaller database for memory alone; all: everything."),
    ] = None,
    replicas: Annotated[
        int | None,
        option(
            "On how many servers of a cluster each row of a new database is.",
            min=1,
            max=10,
        ),
    ] = None,
) -> Answer:
    """Create the collections, indexes and views of the catalogue; safe to repeat.

    The only command that needs the admin endpoint or credential. A database keeps its part of the
    catalogue unless
    --only changes it. With HADES_TENANT the tenant's own database is provisioned.
    """
    settings = load_settings()
    with closing(open_store(settings, Mode.ADMIN)) as store:
        report = store.provision(only, replicas=replicas)
        where = store.describe()

    document = {
        "store": where,
        "tenant": settings.tenant,
        "holds": where.get("holds", ALL),
        "created": list(report.created),
        "notes": list(report.notes),
    }
    head = "everything was there already; nothing to create"
    if report.created:
        head = f"created {len(report.created)} objects"

    return Answer(
        document,
        [head, *(f"  {name}" for name in report.created), *report.notes],
    )
