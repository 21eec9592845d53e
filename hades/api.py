"""The library as one object: ingest, forget, publish, ask. What a notebook, a task and the command line all call."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import datetime
from functools import cached_property
from pathlib import Path
from typing import Any, Self

from hades.build.context import BuildContext, Mode
from hades.build.report import build
from hades.build.stage import begin
from hades.cache.tiers import CachePlace
from hades.errors import SettingsError
from hades.ingest.edges import derive_edges
from hades.ingest.forget import Certificate, forget_documents
from hades.ingest.ingest import Ingest
from hades.ingest.phases import IngestContext, Phase
from hades.ingest.stated_edges import estimate, extract
from hades.memory.memory import Memory
from hades.ports.services import Embedder, LanguageModel, Tokenizer, utc_now
from hades.ports.store import GraphStore
from hades.retrieval.answers import Answers
from hades.retrieval.pipeline import Tools
from hades.retrieval.turn_result import TurnLog, log_of
from hades.snapshot.manifest import served
from hades.snapshot.open import open_snapshot, retire_snapshots
from hades.snapshot.publish import PublishReport, publish
from hades.snapshot.view import GraphView
from schemas.answer import Retrieval


class Hades:
    """An open graph. Use it as a context manager, so that files and connections are given back."""

    def __init__(
        self,
        store: GraphStore,
        embedder: Embedder,
        tokenizer: Tokenizer,
        home: Path,
        language_model: LanguageModel | None = None,
        answers: Callable[[], Answers] | None = None,
        build_context: BuildContext | None = None,
        **reading: Any,
    ) -> None:
        """`reading` are the options of an `IngestContext`: progress, history, workers, hold."""
        self._store, self.embedder, self.home, self._language_model = store, embedder, home, language_model
        self._context = IngestContext(store, embedder, tokenizer, home / "cache", **reading)
        self.ingest = Ingest(self._context)
        self._build_context = build_context
        plain = Tools(tokenizer, embedder)
        self._open_answers = answers or (lambda: Answers(self.view, lambda: served(home), plain))

    @property
    def store(self) -> GraphStore:
        """The store, with the log of every question that was answered."""
        if "_turns" in self.__dict__:
            self._turns.flush()
        return self._store

    def estimate_triples(self) -> dict[str, int]:
        """What reading every text with the language model would cost."""
        return estimate(self.store, self._context.tokenizer, self._ask().model)

    def read_triples(self, max_calls: int) -> dict[str, int]:
        """Let the language model read texts it has not read yet, at most `max_calls`, and derive what follows."""
        with self._context.hold("ingest"):
            bill = extract(self.store, self._ask(), max_calls, self._context.progress)
            derive_edges(self.store, self.embedder, self._context.progress)
        return bill

    def _ask(self) -> LanguageModel:
        if self._language_model is None:
            raise SettingsError("no language model is set; set HADES_LLM_BASE_URL and HADES_LLM_MODEL")
        return self._language_model

    def forget(self, ids: Sequence[str]) -> Certificate:
        """Remove documents, every fact that only they support, and every answer that is kept anywhere."""
        with self._context.hold("forget"):
            certificate = forget_documents(self.store, self.embedder, ids)
            retire_snapshots(self.home, utc_now())
        place = self._build_context.answer_cache if self._build_context is not None else CachePlace.under(self.home)
        return replace(certificate, answers_removed=place.forget_everything())

    def publish(self) -> PublishReport:
        """Write the read index from the store and let readers see it at once; `build` checks the contracts first."""
        with self._context.hold("publish"):
            return publish(self.store, self.home)

    def build(self, *, as_of: datetime | None = None, mode: Mode = "auto", keep: int = 7) -> dict[str, Any]:
        """Everything a night does: read again what is known, embed, derive, group, weigh, bridge, check, publish."""
        with self._context.hold("build"):
            return build(self.build_context, self.ingest, begin(as_of, mode=mode, keep=keep))

    def refresh_folder(
        self, path: Path, kind: str, when_ready: Callable[[float], None] = lambda seconds: None
    ) -> dict[str, Any]:
        """Ingest a folder as `documents` or as `workspace`, build and publish, as `hades watch` does.

        Where nothing is published yet its words are, first; `when_ready` hears how long that took.
        """
        began, is_first = time.perf_counter(), not served(self.home)
        read = self.ingest.workspace if kind == "workspace" else self.ingest.documents
        with self._context.hold("refresh"):
            report = read(path, [Phase.NODES, Phase.CHUNKS]).as_dict()
            if is_first:
                self.publish()
                when_ready(time.perf_counter() - began)
            night = begin(keep=1) if is_first else begin()
            night = replace(night, sources=(), learns=False)  # it was read just now, and a person waits
            built = build(self.build_context, self.ingest, night)
        return {**report, "snapshot": built["released"]["snapshot"]}

    @property
    def build_context(self) -> BuildContext:
        """What the stages of a build work with."""
        if self._build_context is None:
            raise SettingsError("this graph was opened without a registry; open it with `open_hades` to build it")
        if "_turns" in self.__dict__:
            self._turns.flush()
        return self._build_context

    @cached_property
    def answers(self) -> Answers:
        """What answers questions; loaded with the first one, so that a build does not pay for it."""
        return self._open_answers()

    @cached_property
    def _turns(self) -> TurnLog:
        return TurnLog(self._store, self._store, may_drop=False)

    @cached_property
    def memory(self) -> Memory:
        """What an agent or a team remembers, kept in the same store."""
        return Memory(self.store, self.embedder, utc_now, self._language_model, self._context.tokenizer, self.home)

    def view(self) -> GraphView:
        """The published graph, as questions read it."""
        return open_snapshot(self.home)

    def retrieve(self, text: str, **options: Any) -> Retrieval:
        """Answer a question from the published graph; the turn is logged beside the next question.

        `options` are those of `Answers.retrieve`: recipe, plan, as_of, known_at, max_paths, mode, near, domain, only,
        level and anyway.
        """
        answer = self.answers.retrieve(text, **options)
        self._turns.add(log_of(answer, utc_now()))
        return answer

    def close(self) -> None:
        """Give back files and connections."""
        if "_turns" in self.__dict__:
            self._turns.close()
        if "answers" in self.__dict__:
            self.answers.close()
        self._store.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
