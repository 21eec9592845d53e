"""The library as one object: ingest, forget, publish, ask. What a notebook, a task and the command
line all call.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from datetime import date, datetime
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

from hades.cache.tiers import CachePlace
from hades.errors import HadesError, SettingsError
from hades.ingest.edges import derive_edges
from hades.ingest.forget import (
    Certificate,
    UnknownDocument,
    find_own_words,
    forget_documents,
    resolve,
)
from hades.ingest.ingest import Ingest
from hades.ingest.manifest import entries
from hades.ingest.phases import IngestContext, Phase
from hades.ingest.sources.remote.freshness import remove_copies, with_origins
from hades.ingest.sources.remote.remotes import RemoteSources
from hades.ingest.stated_edges import estimate, extract
from hades.memory.memory import Memory
from hades.night.context import BuildContext, Mode
from hades.night.contracts.check import (
    CHUNK_VECTORS,
    check_contract,
    check_contracts,
    require_contracts,
)
from hades.night.history import past_documents
from hades.night.keep_history import forget_history, keep_history
from hades.night.plan.folder import remove_plans
from hades.night.report import build
from hades.night.stage import begin
from hades.night.standing import STANDING
from hades.night.text_places import find_files, remove_files
from hades.ports.graph import DocumentFilter
from hades.ports.services import Embedder, LanguageModel, Tokenizer, utc_now
from hades.ports.store import GraphStore
from hades.reports.frames import read_frame
from hades.retrieval.answer.write_answer import AnswerLimits
from hades.retrieval.answers import Answers
from hades.retrieval.core.types import DEFAULT, MODES, PASSAGE
from hades.retrieval.pipeline import Tools
from hades.retrieval.turn_result import QUERY_LOGS, TurnLog, log_of
from hades.retrieval.written_answers import write_events
from hades.snapshot.open import open_snapshot
from hades.snapshot.pointer import discard, newer_documents, retire_snapshots, served
from hades.snapshot.publish import PublishReport, publish
from hades.snapshot.rights_file import OWNER, Readers, asker_of, rights_of, within_rights
from hades.snapshot.view import GraphView
from schemas.answer import Retrieval, WrittenAnswer, as_pandas
from schemas.builds import ManifestEntry
from schemas.ids import node_id
from schemas.plan import Plan

if TYPE_CHECKING:
    import pandas as pd

_BEFORE_EDGES = (Phase.NODES, Phase.CHUNKS, Phase.EMBEDDINGS)


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
        remote_options: Mapping[str, Any] | None = None,
        **ingest_options: Any,
    ) -> None:
        """`ingest_options` are those of an `IngestContext`: progress, history, workers, hold;
        `remote_options` those of `RemoteSources`.
        """
        rights = rights_of(home)
        ingest_options["rights"] = rights
        remotes = RemoteSources(home, **(remote_options or {}))
        ingest_options["remotes"] = remotes
        self._store = store
        self.embedder = embedder
        self.home = home
        self._language_model = language_model
        self._context = IngestContext(
            store,
            embedder,
            tokenizer,
            home / "cache",
            **ingest_options,
        )
        self.ingest = Ingest(self._context)
        self._build_context = build_context
        default_tools = Tools(tokenizer, embedder)
        self._open_answers = answers or (
            lambda: Answers(
                self.view,
                lambda: served(home),
                default_tools,
                rights=rights,
            )
        )

    @property
    def store(self) -> GraphStore:
        """The store, with the log of every question that was answered."""
        if "_turns" in self.__dict__:
            self._turns.flush()
        return self._store

    def estimate_triples(self) -> dict[str, int]:
        """What reading every text with the language model would cost."""
        language_model = self._require_language_model()
        return estimate(
            self.store,
            self._context.tokenizer,
            language_model.model,
        )

    def read_triples(self, max_calls: int) -> dict[str, int]:
        """Let the language model read texts it has not read yet, at most `max_calls`, and derive
        what follows.
        """
        with self._context.hold("ingest"):
            language_model = self._require_language_model()
            bill = extract(
                self.store,
                language_model,
                max_calls,
                self._context.progress,
            )
            derive_edges(
                self.store,
                self.embedder,
                self._context.progress,
            )

        return bill

    def _require_language_model(self) -> LanguageModel:
        if self._language_model is None:
            raise SettingsError(
                "no language model is set; set HADES_LLM_BASE_URL and HADES_LLM_MODEL"
            )

        return self._language_model

    def forget(self, ids: Sequence[str]) -> Certificate:
        """Remove documents, every fact that only they support, and every answer and file of the
        home that holds their words.

        The graph that serves answers from them until the next one is published.
        """
        with self._context.hold("forget"):
            past = past_documents(self.home, ids)
            stored = []
            for identifier in ids:
                if not self._is_past(identifier, past):
                    stored.append(identifier)

            words = find_own_words(self.store, stored)
            certificate = forget_documents(self.store, self.embedder, stored)

            forgotten = []
            for row in certificate.documents:
                forgotten.append(node_id("documents", row["key"]))

            forget_history(
                self.home,
                [*forgotten, *past.values()],
                words,
            )
            retire_snapshots(self.home, utc_now())
            self.store.compact()
            removed = [*remove_plans(self.home)]
            removed += remove_copies(self.home, certificate.read_again)
            removed += remove_files(self.home, words)

        return replace(
            certificate,
            answers_removed=self._answer_cache.forget_everything(),
            files_removed=removed,
            files_left=find_files(self.home, words),
        )

    def _is_past(self, identifier: str, past: Mapping[str, str]) -> bool:
        """Whether a document went long ago and only the history still has sentences of it."""
        try:
            resolve(self.store, identifier)
        except UnknownDocument:
            if identifier not in past:
                raise
            return True

        return False

    def forget_questions(self, ids: Sequence[str]) -> list[str]:
        """Remove questions from the log, with what was answered and judged; the ids that went."""
        keys = sorted({identifier.removeprefix(f"{QUERY_LOGS}/") for identifier in ids})
        logged_keys = self.store.get(QUERY_LOGS, keys, columns=["_key"]).column("_key").to_pylist()

        if missing := sorted(set(keys).difference(logged_keys)):
            raise HadesError(
                f"no question of the log has the id {', '.join(missing)}; `hades queries` shows "
                "those there are"
            )

        self._store.delete(QUERY_LOGS, keys=keys)
        self._store.compact()
        self._answer_cache.forget_everything()
        remove_plans(self.home)
        return keys

    def publish(self) -> PublishReport:
        """Write the read index from the store and let readers see it at once; `build` checks the
        contracts first.
        """
        with self._context.hold("publish"):
            if self._build_context is None:
                return publish(self.store, self.home)

            with keep_history(self._build_context):
                return publish(self.store, self.home)

    def build(
        self,
        *,
        as_of: datetime | None = None,
        mode: Mode = "auto",
        keep: int = 7,
    ) -> dict[str, Any]:
        """Everything a night does: read again what is known, embed, derive, group, weigh, bridge,
        check, publish.
        """
        with self._context.hold("build"):
            return build(
                self.build_context,
                self.ingest,
                begin(
                    as_of,
                    mode=mode,
                    keep=keep,
                ),
            )

    def refresh_folder(
        self,
        path: Path,
        kind: str,
        when_ready: Callable[[float], None] = lambda seconds: None,
    ) -> dict[str, Any]:
        """Ingest a folder as `documents` or as `workspace`, build and publish, as `hades watch`
        does.

        Pages are published before the graph that follows from them: the words of a folder where
        nothing is published yet, else words and vectors. `when_ready` hears how long that took.
        """
        began = time.perf_counter()
        is_first = not served(self.home)
        ingest_folder = self.ingest.workspace if kind == "workspace" else self.ingest.documents
        phases = [Phase.NODES, Phase.CHUNKS] if is_first else _BEFORE_EDGES
        # A person waits: Arrow finds the same broken rows as Great Expectations, sooner.
        context = replace(self.build_context, engine="arrow")

        with self._context.hold("refresh"):
            known = entries(self._store)
            report = ingest_folder(path, phases).as_dict()
            pages = "" if is_first else self._publish_pages(context, known)

            if is_first:
                self.publish()
            if is_first or pages:
                when_ready(time.perf_counter() - began)

            night = begin(keep=1) if is_first else begin()
            # The folder was read just now.
            short_night = replace(
                night,
                sources=(),
                learns=False,
            )
            snapshot = build(context, self.ingest, short_night)["released"]["snapshot"]

            if pages not in ("", snapshot):
                discard(self.home, pages)  # no graph to go back to

        return {**report, "snapshot": snapshot}

    def _publish_pages(
        self,
        context: BuildContext,
        known: Mapping[str, ManifestEntry],
    ) -> str:
        """Publish the texts of the store with the graph as it was; the snapshot's id, empty where
        no document differs from the known ones.

        Standing questions are compared from one whole graph to the next, so with them there is
        nothing between.
        """
        now = entries(self._store)

        newer = set()
        for key, entry in now.items():
            if key not in known or known[key].sha256 != entry.sha256:
                newer.add(entry.document)

        if not (newer or known.keys() - now.keys()) or self._store.count(STANDING):
            return ""

        check_contracts(context, ("nodes", "chunks", CHUNK_VECTORS)).require()

        def approve(folder: Path) -> None:
            check = check_contract(
                self._store,
                "snapshot",
                snapshot=folder,
                engine=context.engine,
            )
            require_contracts([check])

        newer |= newer_documents(self.home)
        return publish(
            self._store,
            self.home,
            approve=approve,
            newer=newer,
        ).snapshot

    @property
    def build_context(self) -> BuildContext:
        """What the stages of a build work with."""
        if self._build_context is None:
            raise SettingsError(
                "this graph was opened without a registry; open it with `open_hades` to build it"
            )

        if "_turns" in self.__dict__:
            self._turns.flush()

        return self._build_context

    @property
    def _answer_cache(self) -> CachePlace:
        if self._build_context is None:
            return CachePlace.under(self.home)
        return self._build_context.answer_cache

    @cached_property
    def answers(self) -> Answers:
        """What answers questions; loaded with the first one, so that a build does not pay for
        it.
        """
        return self._open_answers()

    @cached_property
    def _turns(self) -> TurnLog:
        return TurnLog(self._store, self._store, may_drop=False)

    @cached_property
    def memory(self) -> Memory:
        """What an agent or a team remembers, kept in the same store."""
        return Memory(
            self.store,
            self.embedder,
            language_model=self._language_model,
            tokenizer=self._context.tokenizer,
            home=self.home,
        )

    def view(self) -> GraphView:
        """The published graph, as questions read it."""
        return open_snapshot(self.home)

    def retrieve(
        self,
        text: str,
        *,
        recipe: str = DEFAULT,
        plan: Plan | Mapping[str, Any] | None = None,
        as_of: str | date | None = None,
        known_at: str | date | None = None,
        near: Sequence[str] = (),
        domain: str | None = None,
        only: DocumentFilter | None = None,
        level: str = PASSAGE,
        max_paths: int | None = None,
        mode: str = MODES[0],
        anyway: bool = False,
        as_user: str | None = None,
        groups: Sequence[str] = (),
        as_owner: bool = False,
    ) -> Retrieval:
        """Answer a question from the published graph with passages and paths; the turn is logged
        beside the next question.

        `only` limits it to some documents, `near` asks from some documents or nodes, `level` also
        ranks files or symbols, `mode` is that of the recipe nexus, `anyway` does not abstain.
        `as_user` and `groups` say who asks: where sources state rights, only documents are shown
        that are public or name one of them; the owner sees all.
        """
        answer = self.answers.retrieve(
            text,
            recipe=recipe,
            plan=plan,
            as_of=as_of,
            known_at=known_at,
            near=near,
            domain=domain,
            only=only,
            level=level,
            max_paths=max_paths,
            mode=mode,
            anyway=anyway,
            asker=_asker(as_user, groups, as_owner),
        )
        self._turns.add(log_of(answer, utc_now()))
        return with_origins(self.home, answer, utc_now())

    def answer(
        self,
        text: str,
        *,
        recipe: str = DEFAULT,
        plan: Plan | Mapping[str, Any] | None = None,
        as_of: str | date | None = None,
        known_at: str | date | None = None,
        domain: str | None = None,
        only: DocumentFilter | None = None,
        max_sources: int = AnswerLimits.sources,
        max_tokens: int = AnswerLimits.completion_tokens,
        token_cap: int = AnswerLimits.total_tokens,
        quote: bool = False,
        as_user: str | None = None,
        groups: Sequence[str] = (),
        as_owner: bool = False,
    ) -> WrittenAnswer:
        """Answer a question in sentences, each with the numbers of the sources that state it: by
        the language model of the settings, else (or to `quote`) in sentences of the passages.
        `as_user`, `groups` and `as_owner` are those of `retrieve`.
        """
        if only is None and domain is not None:
            only = DocumentFilter(domain)

        only = within_rights(
            rights_of(self.home),
            only,
            _asker(as_user, groups, as_owner),
        )
        retrieval = self.retrieve(
            text,
            recipe=recipe,
            plan=plan,
            as_of=as_of,
            known_at=known_at,
            only=only,
            as_user=as_user,
            groups=groups,
            as_owner=as_owner,
        )
        *_, last = write_events(
            self.answers,
            retrieval,
            lambda: self.store,
            only=only,
            model=None if quote else self._language_model,
            limits=AnswerLimits(max_sources, max_tokens, token_cap),
        )
        answer: WrittenAnswer = last.value
        return answer

    def frame(self, name: str) -> pd.DataFrame:
        """A part of the graph as a pandas frame: passages, documents, entities, relations, topics,
        mentions, memory, questions, or any collection; needs pandas, which the extra `flows`
        brings.
        """
        return as_pandas(read_frame(self.store, name))

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


def _asker(
    user: str | None,
    groups: Sequence[str],
    as_owner: bool,
) -> Readers:
    """The names that whoever asks reads by."""
    return OWNER if as_owner else asker_of(user, groups)
