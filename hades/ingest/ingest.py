"""Entry point of ingestion: one method for each source. A corpus that was read once is recorded,
and a nightly build reads it again.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime
from importlib import import_module
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from hades.ingest import manifest
from hades.ingest.manifest import IngestReport, known, remember
from hades.ingest.phases import IngestContext, Phase, ingest, work_from_store
from hades.ingest.sources.material import Source
from schemas.record import JsonObject
from schemas.sources import FILE_FIELDS, SourceKind, SourceSpec

ALL_PHASES = tuple(Phase)


class Ingest:
    """One method for each source; each runs all phases by default."""

    def __init__(self, context: IngestContext) -> None:
        self._context = context
        self.embedder = context.embedder

    def workspace(
        self, path: Path | str, phases: Sequence[Phase] = ALL_PHASES, **options: Any
    ) -> IngestReport:
        """Code by its functions and classes, the pages beside it and, of a git repository, its
        commits.

        Options are `history`, `exclude` (patterns of paths in the form of `.gitignore`, such as
        `test/fixtures/`) and, as of every source, `domain`.
        """
        return self.spec(SourceSpec(source=SourceKind.WORKSPACE, path=str(path), **options), phases)

    def documents(
        self, path: Path | str, phases: Sequence[Phase] = ALL_PHASES, **options: Any
    ) -> IngestReport:
        """Markdown, text, HTML and PDF."""
        return self.spec(SourceSpec(source=SourceKind.DOCUMENTS, path=str(path), **options), phases)

    def arxiv(
        self,
        papers: Path | str,
        citations: Path | str | None = None,
        code_links: Path | str | None = None,
        phases: Sequence[Phase] = ALL_PHASES,
        **options: Any,
    ) -> IngestReport:
        """Papers by their metadata, with who cites whom and which code belongs to which paper."""
        for name, path in (("citations", citations), ("code_links", code_links)):
            if path:
                options[name] = str(path)
        return self.spec(SourceSpec(source=SourceKind.ARXIV, path=str(papers), **options), phases)

    def passages(
        self,
        corpus: Path | str,
        triples: Path | str | None = None,
        phases: Sequence[Phase] = ALL_PHASES,
        **options: Any,
    ) -> IngestReport:
        """Passages with ready-made triples."""
        options |= {"triples": str(triples)} if triples else {}
        return self.spec(
            SourceSpec(source=SourceKind.PASSAGES, path=str(corpus), **options), phases
        )

    def spec(self, spec: SourceSpec, phases: Sequence[Phase] = ALL_PHASES) -> IngestReport:
        """A corpus by its description, for callers that learn it at run time."""
        source = self._open(spec)
        with self._context.hold("ingest"):
            # Before it is read: a question may come, and a run may be stopped, in the middle.
            if Phase.NODES in phases:
                remember(self._context.store, _absolute(spec))
            return ingest(self._context, source, phases, domain=spec.domain or "")

    def again(
        self,
        specs: Sequence[SourceSpec] | None,
        phases: Sequence[Phase] = ALL_PHASES,
        as_of: datetime | None = None,
    ) -> list[JsonObject]:
        """These corpora, or all that were ingested before, as they are or as they were at a moment.

        One that is gone is named, and its documents are kept. Lost rows are left to the contracts.
        """
        reader = Ingest(replace(self._context, restores=False))
        reports = []
        for spec in known(self._context.store) if specs is None else specs:
            report: JsonObject = {"path": spec.path}
            if not Path(spec.path).exists():
                report["note"] = "not there any more; its documents are kept"
                corpus_report = IngestReport(str(spec.source))
            elif as_of is None:
                corpus_report = reader.spec(spec, phases)
            else:
                corpus_report = self._past(spec, phases, as_of)
            reports.append({**report, **corpus_report.as_dict()})
        return reports

    def _past(self, spec: SourceSpec, phases: Sequence[Phase], as_of: datetime) -> IngestReport:
        """A corpus as it was: a folder as its repository held it, and nothing that is dated
        later.
        """
        from hades.ingest.sources.git import check_out_past  # loads the parsers of code

        folder = Path(spec.path)
        self._context.scratch.mkdir(parents=True, exist_ok=True)
        with TemporaryDirectory(prefix="past-", dir=self._context.scratch) as into:
            past = check_out_past(folder, as_of, Path(into)) if folder.is_dir() else None
            source = self._open(spec.model_copy(update={"path": str(past or folder)}))
            source.place = str(folder.resolve()) if past else source.place
            return ingest(self._context, source, phases, domain=spec.domain or "", until=as_of)

    def rewrite(self) -> list[str]:
        """Read every known corpus and write all of its documents again; the paths of corpora that
        are gone.
        """
        specs = known(self._context.store)
        gone = [spec.path for spec in specs if not Path(spec.path).exists()]
        manifest.forget_phases(self._context.store, nodes=not gone)
        for spec in specs:
            if spec.path not in gone:
                self.spec(spec, (Phase.NODES, Phase.CHUNKS))
        self.run_from_store([Phase.CHUNKS])
        return gone

    def _open(self, spec: SourceSpec) -> Source:
        """The source of a corpus; each module loads parsers that the others do not need."""
        module = import_module(f"hades.ingest.sources.{SourceKind(spec.source)}")
        source: Source = module.open_source(
            spec, history=self._context.history, workers=self._context.workers
        )
        return source

    def source(self, source: Source, phases: Sequence[Phase] = ALL_PHASES) -> IngestReport:
        """Any other source; nightly builds do not read it again."""
        with self._context.hold("ingest"):
            return ingest(self._context, source, phases)

    def run_from_store(self, phases: Sequence[Phase]) -> IngestReport:
        """No source: phases that work from the store alone. Lost rows are left to the contracts."""
        with self._context.hold("ingest"):
            return work_from_store(replace(self._context, restores=False), phases)


def _absolute(spec: SourceSpec) -> SourceSpec:
    """The same corpus for a process that runs elsewhere."""
    files = {name: getattr(spec, name) for name in FILE_FIELDS}
    absolute = {name: str(Path(path).resolve()) for name, path in files.items() if path is not None}
    return spec.model_copy(update=absolute)
