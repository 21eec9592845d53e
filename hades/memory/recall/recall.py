"""The half of memory that is asked and looked after: search, walks, contexts, working sets, summaries."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import datetime
from pathlib import Path

from hades.memory.history.names import MemoryRefused
from hades.memory.history.reader import Reader
from hades.memory.recall import accesses, passes, search
from hades.memory.recall import context as budget
from hades.memory.recall import graph_retrieval as graph
from hades.memory.recall.search import MemoryMatch, Window
from hades.memory.recall.strength import FOR_SEARCH, StrengthRules
from hades.memory.recall.working_set import WorkingMemory
from hades.memory.upkeep.consolidate import drill_down
from hades.ports.clock import utc_now
from hades.ports.store import GraphStore
from hades.ports.text import Embedder, LanguageModel, Tokenizer, Vectors
from schemas.intervals import Mask
from schemas.memory import MemoryState


class Recall:
    """Memory for those who only ask. `Memory` is one that can also be written."""

    def __init__(
        self,
        store: GraphStore,
        embedder: Embedder | None = None,
        now: Callable[[], datetime] = utc_now,
        language_model: LanguageModel | None = None,
        tokenizer: Tokenizer | None = None,
        home: Path | None = None,
    ) -> None:
        self.store = store
        self.embedder = embedder
        self.now = now
        self.language_model = language_model
        self.tokenizer = tokenizer
        self.home = home

    def search(
        self,
        query: str,
        time_window: Window | None = None,
        *,
        limit: int | None = None,
        mask: Mask = Mask(),
        rules: StrengthRules = FOR_SEARCH,
        levels: Sequence[int] = (0,),
    ) -> list[MemoryMatch]:
        """Topics near to a question, nearest first, each as it is now or as the mask says; of more, `limit`."""
        return search.search_memories(self.reader(mask), query, time_window, rules=rules, levels=levels, most=limit)

    search_memories = search

    def graph_enhanced_retrieval(
        self,
        query: str,
        depth: int = 2,
        *,
        matches: int = graph.MATCHES,
        types: Sequence[str] | None = None,
        mask: Mask = Mask(),
    ) -> graph.Enhancement:
        """What a question finds, with what true edges join to it and three versions before, in a budget."""
        return graph.graph_enhanced_retrieval(self.reader(mask), query, depth, matches=matches, types=types)

    def enhance(
        self, found: Sequence[MemoryMatch], depth: int = 2, *, types: Sequence[str] | None = None, mask: Mask = Mask()
    ) -> graph.Enhancement:
        """The same for what a search found already."""
        return graph.enhance(self.reader(mask), found, depth, types=types)

    def get_relevant_subgraph(
        self, query_embedding: Sequence[float] | Vectors, max_nodes: int = 100, *, mask: Mask = Mask()
    ) -> graph.Subgraph:
        """The versions that ten nearest topics and strong edges lead to; ranked, then cut."""
        return graph.get_relevant_subgraph(self.reader(mask), query_embedding, max_nodes)

    def retrieve_within_budget(
        self, query: str, max_tokens: int = budget.MAX_TOKENS, *, focus: Sequence[str] = (), mask: Mask = Mask()
    ) -> budget.Context:
        """The context for a question that fits into a number of tokens."""
        return budget.retrieve_within_budget(self.reader(mask), self._count(), query, max_tokens, focus=focus)

    def retrieve_in_passes(
        self,
        query: str,
        needs: passes.Needs | None = None,
        *,
        max_tokens: int = budget.MAX_TOKENS,
        max_passes: int = passes.MAX_PASSES,
        mask: Mask = Mask(),
    ) -> list[budget.Context]:
        """A context, then closer ones at what `needs`, or the language model, asks for; a bounded number."""
        asks = needs or (passes.needs_by(self.language_model) if self.language_model else lambda _: None)
        return passes.retrieve_in_passes(
            self.reader(mask), self._count(), query, asks, max_tokens=max_tokens, max_passes=max_passes
        )

    def working(self, topic: str) -> WorkingMemory:
        """A working set about a topic; questions to it touch no store."""
        return WorkingMemory(self.store, self.embedder, self.now).preload(topic)

    def drill_down(self, summary: str, *, to_originals: bool = False) -> list[MemoryState]:
        """What a summary was made of: the level below, or the originals."""
        return drill_down(self.store, summary, to_originals=to_originals)

    def log_accesses(self, state_ids: Sequence[str]) -> None:
        """Note that these versions were shown to somebody; upkeep counts it."""
        accesses.log_accesses(self.home, state_ids, self.now())

    def reader(self, mask: Mask = Mask()) -> Reader:
        """One who asks now, standing where the mask says."""
        return Reader(self.store, self.embedder, self.now(), mask)

    def _count(self) -> Tokenizer:
        if self.tokenizer is None:
            raise MemoryRefused("tokens cannot be counted without a tokenizer; open memory with `open_memory`")
        return self.tokenizer
