"""`hades ingest`, `hades forget` and `hades publish`."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rich.table import Table
from rich.text import Text

from hades.ports.clock import utc_now
from hades.surfaces.cli.output import Answer
from hades.surfaces.cli.progress import show_progress
from hades.wiring import open_hades

if TYPE_CHECKING:
    from schemas.source_kinds import SourceDeclaration

_LISTED = 12


def ingest_corpus(
    source: SourceDeclaration, phase: str | None, no_edges: bool, domain: str | None, **given: Any
) -> Answer:
    """Ingest a corpus of any kind and show the report."""
    from hades.ingest.phases import Phase
    from schemas.sources import SourceSpec

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
    from hades.memory.conversations import ingest_conversation
    from hades.wiring import open_memory

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
    from hades.stages.release.publish_snapshot import publish_now

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
