"""Domains of entities from those of their documents."""

from __future__ import annotations

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from hades.ingest.entities.describe import EntityDomains, choose_domains, join_domains
from tests.patience import examples

names = st.sampled_from([f"d{number}" for number in range(90)])
sets = st.lists(st.lists(names, max_size=12).map(tuple), min_size=1, max_size=8, unique=True)


def join(labels: list[tuple[str, ...]], *owners: list[tuple[int, int]]) -> list[EntityDomains]:
    """Domains of owners that are given as (label, count) each."""
    rows = [(place, *one) for place, owner in enumerate(owners) for one in sorted(owner)]
    owner, label, counts = np.array(rows, dtype=np.int64).reshape(-1, 3).T
    return join_domains(labels, owner, label, counts, len(owners))


def test_the_domain_of_most_documents_is_first_and_all_are_listed() -> None:
    found = join([("law", "news"), ("art",), ()], [(0, 2), (1, 1), (2, 5)], [(0, 1), (1, 1)], [(2, 3)])
    assert found == [
        EntityDomains("law", ("art", "law", "news")),
        EntityDomains("art", ("art", "law", "news")),
        EntityDomains(None, ()),
    ]
    assert join([("law",)]) == []


@settings(max_examples=examples(40), deadline=None)
@given(sets, st.data())
def test_sets_as_bits_give_what_counting_names_gives(labels: list[tuple[str, ...]], data: st.DataObject) -> None:
    one = st.dictionaries(st.integers(0, len(labels) - 1), st.integers(1, 9), min_size=1).map(
        lambda held: [*held.items()]
    )
    owners = data.draw(st.lists(one, min_size=1, max_size=5))
    told = [choose_domains([(labels[label], count) for label, count in owner]) for owner in owners]
    assert join(labels, *owners) == told
