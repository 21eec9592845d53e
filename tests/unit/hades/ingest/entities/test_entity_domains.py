"""Domains of entities from those of their documents."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from hades.ingest.entities.entity_domains import DomainSets, EntityDomains, choose_domains
from tests.patience import examples

names = st.sampled_from([f"d{number}" for number in range(60)])
sets = st.lists(st.lists(names, max_size=12).map(tuple), min_size=1, max_size=8, unique=True)


def test_the_domain_of_most_documents_is_first_and_all_are_listed() -> None:
    joined = DomainSets([("law", "news"), ("art",), ()])
    assert joined.choose([0, 1, 2], [2, 1, 5]) == EntityDomains("law", ("art", "law", "news"))
    assert joined.choose([0, 1], [1, 1]) == EntityDomains("art", ("art", "law", "news"))
    assert joined.choose([2], [3]) == EntityDomains(None, ())


@settings(max_examples=examples(20), deadline=None)
@given(sets, st.data())
def test_sets_as_bits_give_what_counting_names_gives(labels: list[tuple[str, ...]], data: st.DataObject) -> None:
    chosen = data.draw(st.lists(st.integers(0, len(labels) - 1), min_size=1, unique=True))
    counts = data.draw(st.lists(st.integers(1, 9), min_size=len(chosen), max_size=len(chosen)))
    told = choose_domains([(labels[one], count) for one, count in zip(chosen, counts, strict=True)])
    assert DomainSets(labels).choose(chosen, counts) == told
