"""Ingest, forget, publish, init, demo."""

from __future__ import annotations

import sys
import sysconfig
import time
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer
import yaml
from rich.console import RenderableType
from rich.panel import Panel
from rich.table import Table
from rich.text import Text

from hades.build.release.publish import publish_now
from hades.build.report import summary_lines
from hades.errors import SettingsError
from hades.ingest.phases import Phase
from hades.ingest.sources.workspace import WorkspaceSource
from hades.memory.conversations import ingest_conversation
from hades.ports.services import utc_now
from hades.ports.store import Mode
from hades.reports.page import answer_picture
from hades.settings.load import FILE_NAME, load_settings
from hades.settings.tree import Settings
from hades.surfaces.cli.output import Answer, show_progress, to_text
from hades.surfaces.cli.show_answers import show_passage
from hades.wiring import open_hades, open_memory, open_store
from schemas.answer import Retrieval
from schemas.catalogue import ALL
from schemas.sources import SourceSpec

if TYPE_CHECKING:
    from schemas.sources import SourceDeclaration


# `hades ingest`, `hades forget` and `hades publish`.


_LISTED = 12


def ingest_corpus(
    source: SourceDeclaration, phase: str | None, no_edges: bool, domain: str | None, **given: Any
) -> Answer:
    """Ingest a corpus of any kind and show the report."""
    options = {name: not given[f"no_{name}"] if f"no_{name}" in given else given[name] for name in source.options}
    texts = {name: str(value) if isinstance(value, Path) else value for name, value in options.items()}
    spec = SourceSpec(source=source.kind, path=str(given[source.argument]), domain=domain, **texts)
    wanted = [Phase(phase)] if phase else [one for one in Phase if not (no_edges and one is Phase.EDGES)]
    with show_progress() as progress, open_hades(progress=progress) as hades:
        report = hades.ingest.spec(spec, wanted).as_dict()
        counts = {name: rows for name, rows in hades.store.counts().items() if rows}
    return Answer({**report, "counts": counts}, _report_view(report, counts))


def run_conversation(file: Path, name: str | None) -> Answer:
    """Put a chat log into memory and show what was new."""
    with open_memory() as memory:
        report = ingest_conversation(memory, file, name).as_dict()
    told = f"{report['turns']:,} turns in {report['sessions']:,} sessions: {report['added']:,} new"
    told += f", {report['changed']:,} changed, {report['unchanged']:,} known, {report['skipped']:,} left out (no text)"
    return Answer(report, (Text(told), Text(f"topics begin with {report['prefix']}")))


def run_triples(max_calls: int | None) -> Answer:
    """Estimate the cost of reading with a language model; with a cap, also read."""
    with show_progress() as progress, open_hades(progress=progress) as hades:
        guess = hades.estimate_triples().as_dict()
        bill = hades.read_triples(max_calls).as_dict() if max_calls is not None else None
    told = f"{guess['calls']:,} texts to read: about {guess['prompt_tokens']:,} tokens to send"
    lines = [told + f", at most {guess['completion_tokens_at_most']:,} to receive"]
    if bill is None:
        lines.append("nothing was asked; give --max-calls to go ahead")
    else:
        rest = f"{bill['unusable']} unusable, {bill['not_asked']:,} left for later"
        lines.append(f"asked {bill['calls']:,} times, {rest}")
    return Answer({"estimate": guess, "asked": bill}, (Text("\n".join(lines)),))


def run_forget(ids: Sequence[str]) -> Answer:
    """Forget documents and show the certificate, with what outside the store may still tell of them."""
    with open_hades() as hades:
        certificate = hades.forget(ids).as_dict()
        holding = sorted(path.name for path in (hades.home / "snapshots").glob("*/") if path.is_dir())
        pages = sorted(path.name for path in (hades.home / "reports").glob("*") if path.is_file())
    document = {**certificate, "snapshots_from_before": holding, "reports_from_before": pages}
    lines = [
        *(f"forgotten: {one['id']} (sha256 {one['sha256'][:16]})" for one in certificate["documents"]),
        f"removed: {_count(certificate['removed']) or 'nothing'}",
        *([f"corrected: {_count(certificate['corrected'])}"] if certificate["corrected"] else []),
        f"entities that only it supported: {', '.join(certificate['entities_removed'][:12]) or 'none'}",
        *(f"kept: {one['name']} ({one['why']})" for one in certificate["entities_kept"][:12]),
        f"cached answers deleted: {certificate['answers_removed']:,}",
        "nothing in the store names or quotes it"
        if certificate["complete"]
        else f"LEFT BEHIND: {_count(certificate['left_behind'])}; their keys are in the certificate (--json)",
        *(
            f"still in {place}: take it out there too, or the next build reads it again"
            for place in certificate["read_again"][:12]
        ),
    ]
    if holding:
        told = f"{len(holding)} published snapshots are from before and hold it"
        lines.append(f"{told}: `hades publish --prune 1` publishes without it and removes them")
    if pages:
        lines.append(f"{len(pages)} pages in reports/ are from before and may name its topics; delete those you mind")
    return Answer(document, (Text("\n".join(lines)),), ok=certificate["complete"])


def run_publish(prune: int | None) -> Answer:
    """Check every contract, publish the store and say what readers now see."""
    with show_progress() as progress, open_hades(progress=progress) as hades:
        document = publish_now(hades.build_context, utc_now(), prune).as_dict()
    told = f"published {document['snapshot']} in {document['path']}; readers see it from now on"
    return Answer(document, (Text(told),))


def _report_view(report: dict[str, Any], counts: dict[str, int]) -> tuple[Table | Text, ...]:
    documents = report["documents"]
    told = ", ".join(f"{count:,} {name}" for name, count in documents.items() if count) or "nothing read"
    lines = [f"documents: {told}", f"chunks cut: {report['chunks']:,}, embedded: {report['embedded']:,}"]
    if report["quarantined"]:
        reasons = ", ".join(f"{count} {reason}" for reason, count in report["quarantined"].items())
        lines.append(f"set aside: {reasons}")
        lines += [f"  {one['uri']}: {one['detail'] or one['reason']}" for one in report["set_aside"][:_LISTED]]
        if sum(report["quarantined"].values()) > _LISTED:
            lines.append("  ... all of them: `hades status --json`")
    changes = Table(box=None, pad_edge=False)
    for heading in ("collection", "rows", "added", "changed", "removed"):
        changes.add_column(heading, justify="left" if heading == "collection" else "right")
    for name, rows in counts.items():
        change = report["derived"].get(name, {})
        changes.add_row(
            name,
            f"{rows:,}",
            *(f"{change[part]:,}" if change.get(part) else "" for part in ("added", "changed", "removed")),
        )
    seconds = ", ".join(f"{phase} {value:.1f} s" for phase, value in report["seconds"].items())
    return (Text("\n".join(lines)), changes, Text(f"{seconds}\nnext: hades build"))


def _count(counts: dict[str, int]) -> str:
    return ", ".join(f"{count:,} {name}" for name, count in counts.items())


# `hades init`: three questions, one file.


def run_init(
    path: Path | None, home: Path | None, llm_url: str | None, llm_model: str | None, *, force: bool
) -> Answer:
    """Ask for what was not given, write the file, check that it is read as it was meant."""
    file = Path.cwd() / FILE_NAME
    if file.exists() and not force:
        raise SettingsError(f"{FILE_NAME} exists in this folder; edit it, or replace it with --force")
    default_home = str(Settings.model_fields["home"].default)
    path = path if path is not None else Path(_ask("Which folder shall be read?", "."))
    home = home if home is not None else Path(_ask("Where shall the graph be kept?", default_home))
    if llm_url is None:
        llm_url = _ask("OpenAI-compatible endpoint that writes answers (empty for none)?", "")
    if llm_url and not llm_model:
        llm_model = _ask("Its model?", "")
        if not llm_model:
            raise SettingsError(f"the endpoint {llm_url} needs a model; give --llm-model NAME")
    if not path.is_dir():
        raise SettingsError(f"{path} is not a folder; give the folder to read with --path")
    values = {"home": str(home), **({"llm_base_url": llm_url, "llm_model": llm_model} if llm_url else {})}
    before = file.read_text(encoding="utf-8") if file.exists() else None
    file.write_text(_HEAD + yaml.safe_dump(values, sort_keys=False), encoding="utf-8")
    try:
        load_settings({})
    except SettingsError:
        _put_back(file, before)
        raise
    steps = [f"hades watch {path}", 'hades answer "..."', "hades serve --no-token"]
    document = {"file": str(file), "settings": values, "next": steps}
    lines = [f"wrote {file}", *(f"next: {step}" for step in steps)]
    return Answer(document, tuple(Text(line) for line in lines))


_HEAD = "# Settings of HADES; environment variables win. Every key: docs/reference/settings.md.\n"


def _ask(question: str, default: str) -> str:
    """The answer of a person; the default where nobody is asked."""
    if not sys.stdin.isatty():
        return default
    return str(typer.prompt(question, default=default, err=True)).strip()


def _put_back(file: Path, before: str | None) -> None:
    if before is None:
        file.unlink()
    else:
        file.write_text(before, encoding="utf-8")


def show_completion(shell: str) -> Answer:
    """The script that lets a shell complete `hades`."""
    from typer.completion import get_completion_script  # type: ignore[attr-defined]

    script = get_completion_script(prog_name="hades", complete_var="_HADES_COMPLETE", shell=shell)
    return Answer({"shell": shell, "script": script}, (Text(script, no_wrap=True, overflow="ignore"),))


# `hades demo`: the standard library as a graph, built as a nightly does, and asked three questions.


PACKAGES = (
    "asyncio", "collections", "concurrent", "email", "html", "http", "importlib", "json", "logging",
    "multiprocessing", "sqlite3", "tomllib", "urllib", "wsgiref", "xmlrpc", "zoneinfo",
)  # fmt: skip
QUESTIONS = (
    "where is the date in an email header parsed?",
    "how is a cookie header parsed?",
    "TypeError: Object of type set is not JSON serializable",
)
PATHS, PASSAGES = 2, 3


def run_demo() -> Answer:
    """Build and ask a graph of its own under HADES_HOME/demo, always in the embedded store."""
    asked = load_settings()
    settings = asked.model_copy(update={"home": asked.home / "demo", "store": "sqlite", "view": "snapshot"})
    began = time.perf_counter()
    with show_progress() as progress, open_hades(settings, progress=progress) as hades:
        report = hades.ingest.source(WorkspaceSource(Path(sysconfig.get_paths()["stdlib"]), PACKAGES)).as_dict()
        night = hades.build()
        answers = [hades.retrieve(question) for question in QUESTIONS]
        counts = {name: rows for name, rows in hades.store.counts().items() if rows}
    picture = settings.home / "reports" / "answer.svg"
    picture.write_text(answer_picture(next((one for one in answers if one.paths), answers[0])), encoding="utf-8")
    document = {
        "home": str(settings.home),
        "picture": str(picture),
        "explorer": f"http://127.0.0.1:{settings.serve_port}/",
        "seconds": round(time.perf_counter() - began, 1),
        "report": report,
        "night": night,
        "counts": counts,
        "snapshot": night["released"]["snapshot"],
        "answers": [answer.model_dump(mode="json") for answer in answers],
    }
    return Answer(
        document, (*_build(document), *(part for answer in answers for part in _ask_demo(answer)), _next(document))
    )


def _build(document: dict[str, Any]) -> tuple[RenderableType, ...]:
    counts, report = document["counts"], document["report"]
    told_counts = ", ".join(
        f"{counts.get(name, 0):,} {name}" for name in ("files", "doc_chunks", "entities", "relations", "clusters")
    )
    phases = ", ".join(f"{phase} {value:.0f} s" for phase, value in report["seconds"].items())
    night = "\n".join(summary_lines(document["night"]))
    return (Text(f"{told_counts}\ningested in {phases}; then one night:\n"), Text(night), Text())


def _ask_demo(answer: Retrieval) -> tuple[RenderableType, ...]:
    """Where the answer stands (path, line, symbol) with its code, then paths that explain it, then what it cost."""
    lines = Text()
    for passage in answer.passages[:PASSAGES]:
        for part in show_passage(passage.model_dump(mode="json")):
            lines.append_text(to_text(part)).append("\n")
    for path in answer.paths[:PATHS]:
        lines.append(f"{path.rank}. {path.text}\n", style="bold")
    budget, spent = answer.plan.budget, answer.telemetry
    cost = f"{spent.reads} of {budget.docs_max} reads, {spent.ms:.0f} of {budget.latency_ms} ms"
    lines.append(f"spent {cost}, {answer.tokens.prompt} prompt tokens", style="dim")
    return (Panel(lines, title=f"{answer.query}  ({answer.recipe})", title_align="left"),)


def _next(document: dict[str, Any]) -> RenderableType:
    home = document["home"]
    return Text(
        f"{document['seconds']:.0f} s in all; report with pictures: {document['night']['report']}\n"
        f"ask your own: HADES_HOME={home} hades query 'how is a cookie parsed?'\n"
        f"picture of one answer: {document['picture']}\n"
        f"explorer: HADES_HOME={home} hades serve --no-token, then open {document['explorer']}"
    )


# `hades provision`.


def provision_store(only: str | None = None) -> Answer:
    """Create what the catalogue, or a part of it, declares and is not there."""
    settings = load_settings()
    with closing(open_store(settings, Mode.ADMIN)) as store:
        report = store.provision(only)
        where = store.describe()
    document = {
        "store": where,
        "tenant": settings.tenant,
        "holds": where.get("holds", ALL),
        "created": list(report.created),
        "notes": list(report.notes),
    }
    if report.created:
        head = f"created {len(report.created)} objects"
        listing = "\n".join(f"  {name}" for name in report.created)
    else:
        head, listing = "everything was there already; nothing to create", ""
    lines = [head, listing, *report.notes]
    return Answer(document, tuple(Text(line) for line in lines if line))
