"""The library as one object: ingest, forget, publish. What a notebook, a task and the command line all call."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from types import TracebackType
from typing import Self

from hades.errors import SettingsError
from hades.ingest.edges import derive_edges
from hades.ingest.entities.rules import EntityRules
from hades.ingest.forget import Certificate, forget_documents
from hades.ingest.material import Material, Rejected, Source
from hades.ingest.openie import Estimate, Extracted, estimate, extract
from hades.ingest.phases import Phase, Workshop, ingest
from hades.ingest.report import IngestReport, Progress, silent
from hades.ingest.sources.arxiv import ArxivSource
from hades.ingest.sources.documents import DocumentsSource
from hades.ingest.sources.passages import PassagesSource
from hades.ingest.sources.workspace import WorkspaceSource
from hades.ports.store import GraphStore
from hades.ports.text import Embedder, LanguageModel, Tokenizer
from hades.ports.view import GraphView
from hades.snapshot.open import open_snapshot
from hades.snapshot.publish import Published, publish
from schemas.nodes import SourceKind

ALL_PHASES = tuple(Phase)


class Hades:
    """An open graph. Use it as a context manager, so that files and connections are given back."""

    def __init__(
        self,
        store: GraphStore,
        embedder: Embedder,
        tokenizer: Tokenizer,
        home: Path,
        language_model: LanguageModel | None = None,
        progress: Progress = silent,
    ) -> None:
        self.store = store
        self.embedder = embedder
        self.home = home
        self._language_model = language_model
        self._workshop = Workshop(store, embedder, tokenizer, home / "cache", EntityRules(), progress)
        self.ingest = Ingest(self._run)

    def embed_again(self) -> IngestReport:
        """Every vector by the embedder in use, and what is derived from vectors."""
        return ingest(self._workshop, NoSource(), [Phase.EMBEDDINGS, Phase.EDGES])

    def estimate_triples(self) -> Estimate:
        """What reading every text with the language model would cost."""
        return estimate(self.store, self._workshop.tokenizer, self._asked().model)

    def read_triples(self, max_calls: int) -> Extracted:
        """Let the language model read texts it has not read yet, at most so many, and derive what follows."""
        bill = extract(self.store, self._asked(), max_calls, self._workshop.progress)
        derive_edges(self.store, self.embedder, self._workshop.rules, self._workshop.progress)
        return bill

    def _asked(self) -> LanguageModel:
        if self._language_model is None:
            raise SettingsError("no language model is set; set HADES_LLM_BASE_URL and HADES_LLM_MODEL")
        return self._language_model

    def forget(self, ids: Sequence[str]) -> Certificate:
        """Remove documents and every fact that only they support."""
        return forget_documents(self.store, self.embedder, self._workshop.rules, ids)

    def publish(self) -> Published:
        """Write the read index from the store and let readers see it at once."""
        return publish(self.store, self.home)

    def view(self) -> GraphView:
        """The published graph, as questions read it."""
        return open_snapshot(self.home)

    def close(self) -> None:
        """Give back files and connections."""
        self.store.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _run(self, source: Source, phases: Sequence[Phase]) -> IngestReport:
        return ingest(self._workshop, source, phases)


class NoSource:
    """Nothing to read: for phases that work from the store alone."""

    kind = SourceKind.DOCUMENTS
    corpus = ""
    place = ""
    mirrors = False

    def read(self) -> Iterator[Material | Rejected]:
        """Nothing."""
        return iter(())

    def estimate(self) -> int | None:
        """None at all."""
        return 0


class Ingest:
    """One method a source; each runs all phases unless told which."""

    def __init__(self, run: Callable[[Source, Sequence[Phase]], IngestReport]) -> None:
        self._run = run

    def workspace(self, path: Path | str, phases: Sequence[Phase] = ALL_PHASES) -> IngestReport:
        """Code: files, functions, docstrings, comments and the pages beside them."""
        return self._run(WorkspaceSource(Path(path)), phases)

    def documents(self, path: Path | str, phases: Sequence[Phase] = ALL_PHASES) -> IngestReport:
        """Markdown, text, HTML and PDF."""
        return self._run(DocumentsSource(Path(path)), phases)

    def arxiv(
        self,
        papers: Path | str,
        citations: Path | str | None = None,
        code_links: Path | str | None = None,
        phases: Sequence[Phase] = ALL_PHASES,
    ) -> IngestReport:
        """Papers by their metadata, with who cites whom and which code belongs to which paper."""
        return self._run(ArxivSource(Path(papers), _path(citations), _path(code_links)), phases)

    def passages(
        self, corpus: Path | str, triples: Path | str | None = None, phases: Sequence[Phase] = ALL_PHASES
    ) -> IngestReport:
        """Passages with ready-made triples."""
        return self._run(PassagesSource(Path(corpus), _path(triples)), phases)

    def corpus(
        self,
        kind: SourceKind,
        path: Path | str,
        *,
        citations: Path | str | None = None,
        code_links: Path | str | None = None,
        triples: Path | str | None = None,
        phases: Sequence[Phase] = ALL_PHASES,
    ) -> IngestReport:
        """A corpus of the kind named, for callers that learn the kind at run time."""
        read = {
            SourceKind.WORKSPACE: lambda: self.workspace(path, phases),
            SourceKind.DOCUMENTS: lambda: self.documents(path, phases),
            SourceKind.ARXIV: lambda: self.arxiv(path, citations, code_links, phases),
            SourceKind.PASSAGES: lambda: self.passages(path, triples, phases),
        }
        return read[kind]()

    def source(self, source: Source, phases: Sequence[Phase] = ALL_PHASES) -> IngestReport:
        """Any other source."""
        return self._run(source, phases)


def _path(path: Path | str | None) -> Path | None:
    return Path(path) if path is not None else None
