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

from hades.errors import HadesError
from hades.ingest import manifest
from hades.ingest.forget import remove_documents
from hades.ingest.manifest import IngestReport, known, remember, unremember
from hades.ingest.phases import IngestContext, Phase, ingest, keep_rights, work_from_store
from hades.ingest.sources.documents import DocumentsSource
from hades.ingest.sources.material import Source
from hades.ingest.sources.remote.ledger import ledger_of_mirror
from hades.ingest.sources.remote.remotes import RemoteSources
from hades.ingest.stated_rights import SourceRights
from hades.ports.services import utc_now
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
        return self.spec(
            SourceSpec(
                source=SourceKind.WORKSPACE,
                path=str(path),
                **options,
            ),
            phases,
        )

    def documents(
        self, path: Path | str, phases: Sequence[Phase] = ALL_PHASES, **options: Any
    ) -> IngestReport:
        """Markdown, text, HTML and PDF."""
        return self.spec(
            SourceSpec(
                source=SourceKind.DOCUMENTS,
                path=str(path),
                **options,
            ),
            phases,
        )

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

        return self.spec(
            SourceSpec(
                source=SourceKind.ARXIV,
                path=str(papers),
                **options,
            ),
            phases,
        )

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
            SourceSpec(
                source=SourceKind.PASSAGES,
                path=str(corpus),
                **options,
            ),
            phases,
        )

    def spec(self, spec: SourceSpec, phases: Sequence[Phase] = ALL_PHASES) -> IngestReport:
        """A corpus by its description, for callers that learn it at run time."""
        source = self._open(spec)
        with self._context.hold("ingest"):
            # Before it is read: a question may come, and a run may be stopped, in the middle.
            if Phase.NODES in phases:
                remember(self._context.store, _absolute(spec))

            report = ingest(
                self._context,
                source,
                phases,
                domain=spec.domain or "",
            )

        if ledger := ledger_of_mirror(Path(source.place)):
            ledger.record_corpus(source.corpus)

        return report

    @property
    def remotes(self) -> RemoteSources:
        """The remote sources of this home."""
        if self._context.remotes is None:
            raise HadesError("this graph was opened without remote sources; use `open_hades`")
        return self._context.remotes

    def sync(
        self,
        names: Sequence[str] = (),
        phases: Sequence[Phase] = (Phase.NODES, Phase.CHUNKS),
        *,
        accept: bool = False,
        due: bool = False,
    ) -> list[JsonObject]:
        """Bring remote sources in step, all or these, and read what changed; with `due` only those
        whose interval is over. One that fails says so in its report, and keeps what it had.

        Others may build while a source is listed and read, which can take long.
        """
        now = utc_now()
        states = {state.name: state for state in self.remotes.states()}

        reports = []
        for name in names or list(states):
            if due and name in states and not states[name].is_due(now):
                continue

            was_read = self.remotes.is_read(name)
            report = self.remotes.sync(
                name,
                accept=accept,
                progress=self._context.progress,
            )
            document = report.as_dict()

            if not report.problem:
                spec = self._mirror_spec(name)
                self._keep_mirror_rights(spec)
                with self._context.hold("sync"):
                    remember(self._context.store, spec)
                    # A sync that was killed may have left copies that were not read.
                    if phases and not self.remotes.is_read(name):
                        only = frozenset(report.paths) if was_read else None
                        document["graph"] = self._read_mirror(spec, phases, only).as_dict()

            reports.append(document)

        return reports

    def _keep_mirror_rights(self, spec: SourceSpec) -> None:
        """Let the rights that a sync found hold for what the graph has read, changed or not."""
        context = self._context
        if context.rights is None:
            return

        ledger = ledger_of_mirror(Path(spec.path))
        if context.rights.restrict_any() or (ledger is not None and ledger.rights()):
            rights = SourceRights(spec.path)
            origins = manifest.origins_of_place(
                context.store,
                str(spec.source),
                spec.path,
            )

            readers = {}
            for document, origin in origins.items():
                readers[document] = rights.of_origin(origin)

            keep_rights(context, readers)

    def _read_mirror(
        self,
        spec: SourceSpec,
        phases: Sequence[Phase],
        only: frozenset[str] | None,
    ) -> IngestReport:
        """Read a mirror, or only these files of it: links from the others, and what is a copy of
        them, are brought up to date by the build, which reads everything.
        """
        if only is None:
            return self.spec(spec, phases)

        context = replace(self._context, restores=False)
        source = DocumentsSource(
            Path(spec.path),
            context.workers,
            only,
        )
        report = ingest(
            context,
            source,
            phases,
            domain=spec.domain or "",
            only=only,
        )
        self.remotes.ledger(Path(spec.path).name).record_corpus(source.corpus)
        return report

    def _mirror_spec(self, name: str) -> SourceSpec:
        """The corpus that the mirror of a source is."""
        domain = self.remotes.source(name).domain
        mirror = str(self.remotes.mirror(name).resolve())
        return SourceSpec(
            source=SourceKind.DOCUMENTS,
            path=mirror,
            domain=domain,
        )

    def remove_remote(self, name: str) -> int:
        """Forget a remote source with its documents; how many they were."""
        with self._context.hold("remove"):
            store = self._context.store
            place = str(self.remotes.mirror(name).resolve())
            self.remotes.remove(name)
            keys = sorted(
                manifest.keys_of_place(
                    store,
                    str(SourceKind.DOCUMENTS),
                    place,
                )
            )
            remove_documents(store, keys)
            unremember(store, SourceSpec(source=SourceKind.DOCUMENTS, path=place))

        return len(keys)

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

    def _past(
        self,
        spec: SourceSpec,
        phases: Sequence[Phase],
        as_of: datetime,
    ) -> IngestReport:
        """A corpus as it was: a folder as its repository held it, and nothing that is dated
        later.
        """
        from hades.ingest.sources.git import check_out_past  # loads the parsers of code

        folder = Path(spec.path)
        self._context.scratch.mkdir(parents=True, exist_ok=True)

        with TemporaryDirectory(prefix="past-", dir=self._context.scratch) as into:
            if folder.is_dir():
                past = check_out_past(folder, as_of, Path(into))
            else:
                past = None

            source = self._open(spec.model_copy(update={"path": str(past or folder)}))
            source.place = str(folder.resolve()) if past else source.place
            return ingest(
                self._context,
                source,
                phases,
                domain=spec.domain or "",
                until=as_of,
            )

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
            spec,
            history=self._context.history,
            workers=self._context.workers,
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
    files = {}
    for name in FILE_FIELDS:
        files[name] = getattr(spec, name)

    absolute = {}
    for name, path in files.items():
        if path is not None:
            absolute[name] = str(Path(path).resolve())

    return spec.model_copy(update=absolute)
