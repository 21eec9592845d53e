"""Which pairs of topics get bridges: topics with their strongest neighbours, pairs of questions, pairs joined most."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from datetime import datetime, timedelta
from itertools import combinations

import orjson

from hades.ports.store import RowStore, Term
from hades.stages.bridges.bridge_rules import BridgeRules
from models.bridges.pairs import Heat, hot_pairs, pairs_of

Pair = tuple[int, int]


def choose_pairs(
    store: RowStore, heat: Heat, topics: Sequence[str], rules: BridgeRules, *, moved: Sequence[str], as_of: datetime
) -> list[Pair]:
    """Pairs of topic numbers, lower first, each once, in the order in which they are to be served.

    Topics that moved come first; which pairs there are does not depend on what moved.
    """
    number = {key: place for place, key in enumerate(topics)}
    shifted = [number[key] for key in (one.removeprefix("clusters/") for one in moved) if key in number]
    ordered = dict.fromkeys([*shifted, *range(len(topics))])
    of_topics = [pair for topic in ordered for pair in pairs_of(heat, topic, rules.topic_pairs)]
    chosen = dict.fromkeys([*_pairs_of_questions(store, number, rules, as_of), *of_topics])
    chosen |= dict.fromkeys(hot_pairs(heat, rules.near_pairs, rules.far_pairs))
    restless = set(shifted)
    return sorted(chosen, key=restless.isdisjoint)  # stable: the order above within both halves


def _pairs_of_questions(store: RowStore, number: dict[str, int], rules: BridgeRules, as_of: datetime) -> list[Pair]:
    """Pairs that questions of the last days narrowed to at once (`results.hierarchy`), the most frequent first."""
    since = Term("at", ">=", as_of - timedelta(days=rules.seen_days))
    counts: Counter[Pair] = Counter()
    for batch in store.scan("query_logs", where=[since], columns=["_key", "results"]):
        for text in batch.column("results").to_pylist():
            met = orjson.loads(text).get("hierarchy", ()) if text else ()
            found = {number.get(str(one.get("id", "")).removeprefix("clusters/"), -1) for one in met} - {-1}
            counts.update(combinations(sorted(found), 2))
    ranked = sorted(counts, key=lambda pair: (-counts[pair], pair))
    return ranked[: rules.seen_pairs]
