"""Memory as one object."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import datetime
from itertools import chain
from pathlib import Path
from typing import Any, TypeVar

from hades.memory.history import edges as edge_history
from hades.memory.history import erase, facts, states
from hades.memory.history.edges import EdgeChange, NewEdge
from hades.memory.history.erase import Certificate
from hades.memory.history.facts import Change, ConflictRecord, Fact, FactResult, change_fact
from hades.memory.history.rows import (
    LATEST,
    NEWEST,
    MemoryRefused,
    aware,
    check_relation,
    check_share,
    check_topic,
    in_unit,
    is_state_key,
    key_of,
    scan,
    state_id,
    topic_key,
)
from hades.memory.history.states import Act, NewState, Overtaken, named
from hades.memory.recall import context, graph, search
from hades.memory.recall.index import Reader, Window
from hades.memory.recall.search import FOR_SEARCH, MemoryMatch
from hades.memory.recall.working_set import WorkingMemory
from hades.memory.upkeep import consolidate, maintain, promote
from hades.memory.upkeep.promote import Promotion
from hades.ports.services import Embedder, LanguageModel, Tokenizer, Vectors, utc_now
from hades.ports.store import Direction, GraphStore, RowStore, Term, scan_values
from schemas.ids import Mask
from schemas.memory import MemoryAudit, MemoryEdge, MemoryState, MemoryTrace
from schemas.record import JsonObject

Result = TypeVar("Result")
_TRIES = 20


@dataclass(eq=False)
class Memory:
    """The memory kept in a store. Every write is one transaction and says who did it and why."""

    store: GraphStore
    embedder: Embedder | None = None
    now: Callable[[], datetime] = utc_now
    language_model: LanguageModel | None = None
    tokenizer: Tokenizer | None = None
    home: Path | None = None

    # States

    def add(
        self, topic: str, content: str, *, who: str = "", why: str = "", **fields: Any
    ) -> MemoryState:
        """Say something new about a topic: its next version. `fields` are other fields of
        `NewState`.
        """
        return self.add_many(
            [NewState(topic, content, **fields)],
            who=who,
            why=why,
        )[0]

    def add_many(
        self,
        new: Iterable[NewState],
        *,
        who: str = "",
        why: str = "",
    ) -> list[MemoryState]:
        """Write versions in the order given, all in one transaction: what a bulk load calls."""
        prepared = self.prepared(list(new))
        return self.in_act(
            who,
            why,
            lambda rows, act: states.append(rows, prepared, act),
            is_one=False,
        )

    def latest(self, topic: str, *, mask: Mask | None = None) -> MemoryState | None:
        """The version of a topic that holds now, or as the mask says; None where none does."""
        key = topic_key(check_topic(topic))
        versions = states.states_at(
            self.store,
            [key],
            mask or Mask(),
            self.now(),
        )
        return versions[0] if versions else None

    def state(self, state_id: str) -> MemoryState | None:
        """One version by its id, or None when there is none or it was erased."""
        return next(iter(self.states([state_id])), None)

    def states(self, state_ids: Sequence[str]) -> list[MemoryState]:
        """Versions by their ids, in key order; those that are not there are left out."""
        return states.by_keys(
            self.store,
            [state_id.rpartition("/")[2] for state_id in state_ids],
        )

    def history(
        self,
        topic: str,
        *,
        limit: int | None = None,
        mask: Mask = Mask(),
    ) -> list[MemoryState]:
        """The versions of a topic, oldest first; of more than `limit`, the newest."""
        return states.history(
            self.store,
            topic,
            limit=limit,
            mask=mask,
        )

    def at(
        self,
        topic: str,
        moment: datetime,
        *,
        known_at: datetime | None = None,
    ) -> MemoryState | None:
        """What was true of a topic at a moment, as known now or at `known_at`; None before the
        first version.
        """
        known = aware("known_at", known_at or NEWEST)
        return states.state_at(
            self.store,
            topic,
            aware("moment", moment),
            known,
        )

    query_at_time = at

    def topics(self, prefix: str = "") -> list[str]:
        """The topics whose names begin so, sorted."""
        if prefix:
            where = [Term("topic", "starts_with", prefix)]
        else:
            where = []

        return sorted(
            scan_values(
                self.store,
                LATEST,
                "topic",
                where=where,
            )
        )

    def trace(self, topic: str) -> MemoryTrace:
        """All versions of a topic by id, oldest first."""
        return states.trace(self.store, topic)

    # Edges

    def link(
        self,
        source: str,
        target: str,
        relation: str,
        *,
        who: str = "",
        why: str = "",
        **fields: Any,
    ) -> MemoryEdge:
        """Join two states; a topic stands for its newest version. `fields` are other fields of
        `NewEdge`.
        """
        check_relation(relation)

        def work(rows: RowStore, act: Act) -> MemoryEdge:
            tail = state_id(named(rows, source, act.at).key)
            head = state_id(named(rows, target, act.at).key)
            return edge_history.draw(
                rows,
                NewEdge(tail, head, relation, **fields),
                act,
            )

        return self.in_act(who, why, work)

    def link_many(
        self,
        new: Iterable[NewEdge],
        *,
        who: str = "",
        why: str = "",
    ) -> list[MemoryEdge]:
        """Join many pairs in one transaction; ends are given as topics or states."""
        links = list(new)
        for link in links:
            check_relation(link.relationship_type)

        def work(rows: RowStore, act: Act) -> list[MemoryEdge]:
            names = chain.from_iterable((link.source, link.target) for link in links)
            ids = states.resolve_ids(rows, list(names), act.at)

            resolved = []
            for link in links:
                resolved.append(
                    replace(
                        link,
                        source=ids[link.source],
                        target=ids[link.target],
                    )
                )

            return edge_history.draw_many(rows, resolved, act)

        return self.in_act(who, why, work, is_one=False)

    def close(
        self,
        edge_id: str,
        *,
        at: datetime | None = None,
        superseded_by: str | None = None,
        who: str = "",
        why: str = "",
    ) -> MemoryEdge:
        """Say that an edge stopped being true (now, or at a moment), and which edge took its
        place.
        """

        def work(rows: RowStore, act: Act) -> MemoryEdge:
            return edge_history.end(
                rows,
                edge_id,
                act,
                at=at,
                superseded_by=superseded_by,
            )

        return self.in_act(who, why, work)

    def edges(
        self,
        topic_or_state: str,
        *,
        mask: Mask | None = None,
        direction: Direction = Direction.ANY,
        types: Sequence[str] | None = None,
        everything: bool = False,
    ) -> list[MemoryEdge]:
        """Edges true now, or as the mask says; `everything` adds those that had ended or were yet
        to begin.
        """
        view = self.mask(mask)
        if everything:
            view = replace(view, as_of=None)

        return edge_history.edges_around(
            self.store,
            topic_or_state,
            view,
            direction=direction,
            types=types,
        )

    def beliefs(self, edge_id: str) -> list[MemoryEdge]:
        """Everything that was ever believed of an edge, oldest first."""
        return edge_history.beliefs_of(self.store, edge_id)

    def find_edge_change(
        self,
        topic: str,
        from_rel: str,
        to_rel: str,
    ) -> EdgeChange | None:
        """When one relation of a topic last gave way to another, or None when it never did."""
        return edge_history.find_edge_change(
            self.store,
            topic,
            from_rel,
            to_rel,
            NEWEST,
        )

    def why(self, topic: str, *, mask: Mask | None = None) -> JsonObject:
        """What holds of a topic, why, and what no longer does; now, or as the mask says."""
        view = self.mask(mask)
        return graph.account_of(
            self.store,
            topic,
            view.as_of or self.now(),
            view.known_at or NEWEST,
        )

    # Promotion and change

    def promote(
        self,
        topic: str,
        reason: str,
        content: str | None = None,
        *,
        who: str = "",
    ) -> Promotion:
        """Make the next version of a topic out of what is known of it; with `content`, nothing is
        synthesised.
        """

        for _ in range(_TRIES):  # another writer may overtake it between its read and its write
            with suppress(Overtaken):
                return self._promote_once(topic, reason, content, who)

        return self._promote_once(topic, reason, content, who)

    promote_memory = promote

    def _promote_once(
        self,
        topic: str,
        reason: str,
        content: str | None,
        who: str,
    ) -> Promotion:
        grounds = promote.grounds_of(self.store, topic, self.now())
        text, metadata = promote.draft_version(
            grounds,
            reason,
            self.language_model,
            content,
        )
        current = grounds.current

        earlier_metadata = {}
        for name, value in current.metadata.items():
            if name not in promote.MADE_BY_PROMOTION:
                earlier_metadata[name] = value

        new = NewState(
            current.topic,
            text,
            current.tags,
            current.confidence,
            {**earlier_metadata, **metadata},
            valid_until=current.valid_until,
            importance=current.importance_score,
            after=grounds.count,
        )
        prepared = self.prepared([new])[0]
        return self.in_act(
            who,
            reason,
            lambda rows, act: promote.promote_topic(rows, grounds, prepared, act),
        )

    def change(
        self,
        old_state_id: str,
        change_description: str,
        *,
        facts: Sequence[Fact] = (),
        content: str | None = None,
        at: datetime | None = None,
        who: str = "",
    ) -> Change:
        """Say that a fact changed: a new version, the edges it makes untrue ended, the stated facts
        drawn.
        """
        for fact in facts:
            check_relation(fact.relation)

        old = named(self.store, old_state_id, self.now())
        moment = aware("at", at) if at else None
        new = NewState(
            old.topic,
            content or change_description,
            old.tags,
            old.confidence,
            valid_from=moment,
        )
        prepared = self.prepared([new])[0]
        return self.in_act(
            who,
            change_description,
            lambda rows, act: change_fact(
                rows,
                old,
                prepared,
                facts,
                act,
                at=moment,
            ),
        )

    handle_fact_change = change

    def assert_fact(
        self,
        subject: str,
        relation: str,
        object_: str,
        *,
        confidence: float = 1.0,
        source: str = "",
        trust: float | Mapping[str, float] | None = None,
        functional: bool | None = None,
        who: str = "",
        why: str = "",
        **fields: Any,
    ) -> FactResult:
        """Believe a fact; where it excludes another, the rule of `facts.judge` decides and a record
        says how.

        `trust` says how far its source is trusted, 0 to 1, and is kept with the fact, so that it
        also counts when the fact is old; a mapping gives it by source. `fields` are other fields of
        `NewEdge`.
        """
        metadata: JsonObject = {"source": source}
        if isinstance(trust, float | int):
            metadata |= {"trust": check_share("trust", trust)}

        fact = NewEdge(
            subject,
            object_,
            check_relation(relation),
            strength=confidence,
            metadata=metadata,
            **fields,
        )
        names = []
        for name in dict.fromkeys([subject, object_]):
            if not is_state_key(name):
                names.append(name)

        unknown = []
        for name in names:
            if states.pointer_to(self.store, name) is None:
                unknown.append(name)

        new = []
        for name in unknown:
            new.append(NewState(name, name, valid_from=fact.valid_from))

        created = self.prepared(new)
        trust_by_source = trust if isinstance(trust, Mapping) else {}

        def work(rows: RowStore, act: Act) -> FactResult:
            return facts.believe_fact(
                rows,
                fact,
                act,
                trust_by_source,
                created=created,
                functional=functional,
            )

        return self.in_act(who, why, work)

    def conflicts(self, *, open_only: bool = False) -> list[ConflictRecord]:
        """Facts that excluded each other and what was decided, oldest first; or only those that
        wait for a person.
        """
        return facts.record(self.store, open_only=open_only)

    def resolve(
        self,
        conflict_id: str,
        keep: str,
        *,
        who: str,
        why: str,
    ) -> ConflictRecord:
        """Decide a conflict that nobody could: keep the `new` or the `old` fact."""
        return self.in_act(
            who,
            why,
            lambda rows, act: facts.resolve_conflict(rows, conflict_id, keep, act),
        )

    def consolidate(
        self,
        level: int = 1,
        *,
        as_of: datetime | None = None,
        who: str = "",
    ) -> list[JsonObject]:
        """Summaries of the days (1), also the weeks (2), also the months (3) that are over;
        idempotent.
        """

        def write(new: list[NewState], why: str) -> list[MemoryState]:
            return self.add_many(
                new,
                who=who,
                why=why,
            )

        return consolidate.consolidate(
            self.store,
            write,
            self.language_model,
            level,
            as_of or self.now(),
        )

    def reembed(self) -> int:
        """Give every state a vector of the embedder in use; how many had none of it."""
        if self.embedder is None:
            raise MemoryRefused("memory was opened without an embedder; open it with `open_memory`")

        count = maintain.reembed_states(self.store, self.embedder)
        tag = self.embedder.model.tag
        if count:
            why = f"vectors of {tag}"
            self.in_act(
                "",
                why,
                lambda _, act: act.note("reembed", tag, {"states": count}),
            )

        return count

    # Asking: search, walks, contexts, working sets, summaries

    def search(
        self,
        query: str,
        time_window: Window | None = None,
        *,
        limit: int | None = None,
        mask: Mask = Mask(),
        priority: float = FOR_SEARCH,
        levels: Sequence[int] = (0,),
    ) -> list[MemoryMatch]:
        """Topics near to a question, nearest first, each as it is now or as the mask says; of more,
        `limit`.
        """
        reader = self.reader(mask)
        question = search.embed_question(reader, query)
        return search.search_asked(
            reader,
            question,
            time_window,
            priority=priority,
            levels=levels,
            most=limit,
        )

    search_memories = search

    def graph_enhanced_retrieval(
        self,
        query: str,
        depth: int = 2,
        *,
        matches: int = graph.MATCHES,
        mask: Mask = Mask(),
    ) -> graph.Enhancement:
        """What a question finds, with what true edges join to it and three versions before, in a
        context.
        """
        reader = self.reader(mask)
        question = search.embed_question(reader, query)
        nearest = search.search_asked(reader, question, most=matches)
        return graph.enhance(reader, nearest, depth)

    def enhance(
        self,
        matches: Sequence[MemoryMatch],
        depth: int = 2,
        *,
        mask: Mask = Mask(),
    ) -> graph.Enhancement:
        """The same for what a search found already."""
        return graph.enhance(self.reader(mask), matches, depth)

    def get_relevant_subgraph(
        self,
        query_embedding: Sequence[float] | Vectors,
        max_nodes: int = 100,
        *,
        mask: Mask = Mask(),
    ) -> graph.Subgraph:
        """The versions that ten nearest topics and strong edges lead to; ranked, then cut."""
        return graph.get_relevant_subgraph(
            self.reader(mask),
            query_embedding,
            max_nodes,
        )

    def retrieve_within_budget(
        self,
        query: str,
        max_tokens: int = context.MAX_TOKENS,
        *,
        focus: Sequence[str] = (),
        mask: Mask = Mask(),
    ) -> context.Context:
        """The context for a question that fits into a number of tokens."""
        return context.retrieve_within_budget(
            self.reader(mask),
            self._require_tokenizer(),
            query,
            max_tokens,
            focus=focus,
        )

    def working(self, topic: str) -> WorkingMemory:
        """A working set about a topic; questions to it touch no store."""
        return WorkingMemory(self.store, self.embedder, self.now).preload(topic)

    def drill_down(self, summary: str, *, to_originals: bool = False) -> list[MemoryState]:
        """What a summary was made of: the level below, or the originals."""
        return consolidate.drill_down(
            self.store,
            summary,
            to_originals=to_originals,
        )

    def log_accesses(self, state_ids: Sequence[str]) -> None:
        """Note that these versions were shown to somebody; upkeep counts it."""
        search.log_accesses(
            self.home,
            state_ids,
            self.now(),
        )

    def reader(self, mask: Mask = Mask()) -> Reader:
        """A view of memory as of now, or as the mask says."""
        return Reader(self.store, self.embedder, self.now(), mask)

    def _require_tokenizer(self) -> Tokenizer:
        if self.tokenizer is None:
            raise MemoryRefused(
                "tokens cannot be counted without a tokenizer; open memory with `open_memory`"
            )

        return self.tokenizer

    # Who, when, why

    def undo(
        self,
        audit_id: str,
        *,
        who: str,
        why: str = "",
    ) -> JsonObject:
        """Take back an act by new beliefs and new versions; what was said stays in the history."""
        return self.in_act(
            who,
            why,
            lambda rows, act: erase.undo_act(rows, audit_id, act),
        )

    def erase(
        self,
        names: str | Sequence[str],
        *,
        who: str,
        why: str,
    ) -> Certificate:
        """Erase states by id or whole topics by name, for good, with all that was made of them;
        says who and why.
        """
        if not who.strip() or not why.strip():
            raise MemoryRefused("erasing is permanent; state who asks for it and why")

        targets = [names] if isinstance(names, str) else list(names)
        certificate, needles = self.in_act(
            who,
            why,
            lambda rows, act: erase.erase_states(rows, targets, act),
        )
        return erase.finish_erasure(
            self.store,
            self.home,
            certificate,
            needles,
        )

    def compact(self) -> bool:
        """Rewrite the store's files without what was deleted; False while another process reads
        them.
        """
        return self.store.compact()

    def check(self, *, write_out: bool = False) -> list[str]:
        """What is wrong with memory, in sentences; with `write_out`, also write `memory_traces`."""
        if write_out:
            maintain.write_traces(self.store)
        return maintain.problems(self.store)

    def audit(self, subject: str) -> list[MemoryAudit]:
        """What was done to a topic (to its versions and its edges), a state or an edge, oldest
        first.
        """
        subjects = [key_of(subject)]
        if states.pointer_to(self.store, subject) is not None:
            versions = self.trace(subject).states
            subjects = [*versions, *(edge.id for edge in self.edges(subject, everything=True))]

        about = [Term("subject", "in", subjects)]
        acts = scan(self.store, MemoryAudit, about)
        return sorted(acts, key=lambda act: act.key)

    def mask(self, mask: Mask | None = None) -> Mask:
        """Where a reader stands: now, unless the mask says when; what was known then is what counts
        as true then.
        """
        mask = mask or Mask()
        return Mask(
            as_of=mask.as_of or mask.known_at or self.now(),
            known_at=mask.known_at or NEWEST,
        )

    def in_act(
        self,
        who: str,
        why: str,
        work: Callable[[RowStore, Act], Result],
        *,
        is_one: bool = True,
    ) -> Result:
        """Do something in one transaction and record it there; a bulk load is many acts at one
        time.
        """

        def unit(rows: RowStore) -> Result:
            act = Act(who, why, aware("now", self.now()), is_one)
            result = work(rows, act)
            act.keep(rows)
            return result

        return in_unit(self.store, unit)

    def prepared(self, new: Sequence[NewState]) -> list[NewState]:
        """Versions checked and with their vectors: all that needs no transaction."""
        checked = [states.check(version) for version in new]
        if self.embedder is None or not checked:
            return checked

        vectors = self.embedder.embed([version.content for version in checked])
        tag = self.embedder.model.tag

        prepared = []
        for version, vector in zip(checked, vectors, strict=True):
            if not version.embedding:
                embedding = tuple(vector.tolist())
                version = replace(
                    version,
                    embedding=embedding,
                    embedding_model=tag,
                )

            prepared.append(version)

        return prepared
