"""Where an entry starts (A43 to A45, X-13, X-25), and keys say what an entry depends on (A46, X-14,
X-16).
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone

import pytest

from hades.cache.stores import MemoryTier, Scope, path_key
from hades.cache.tiers import importance, starting_tier

NOW = datetime(2026, 3, 1, tzinfo=UTC)


def ago(days: float, zone: timezone | None = UTC) -> str:
    moment = NOW - timedelta(days=days)
    return (moment.astimezone(zone) if zone else moment.replace(tzinfo=None)).isoformat()


@pytest.mark.parametrize(
    ("data", "expected"),
    [
        ({}, 0.5),
        ({"updated_at": ago(0.5)}, 0.8),
        ({"updated_at": ago(3)}, 0.7),
        ({"updated_at": ago(20)}, 0.6),
        ({"updated_at": ago(40)}, 0.5),
        ({"updated_at": ago(0.5, None)}, 0.8),
        ({"updated_at": ago(0.5, timezone(timedelta(hours=9)))}, 0.8),
        ({"updated_at": "soon"}, 0.5),
        ({"confidence": 0.9}, 0.7),
        ({"confidence": 0.8}, 0.6),
        ({"confidence": 0.5}, 0.5),
        ({"confidence": "high"}, 0.5),
        ({"updated_at": ago(0), "confidence": 1.0}, 1.0),
        ({"vertices": ["x"] * 20}, 0.5),
    ],
)
def test_terms_of_the_requirement_without_the_one_for_length(data, expected):
    assert importance(data, now=NOW) == pytest.approx(expected)


def test_an_earlier_question_in_the_data_counts_once():
    data = {"text": "Ada Lovelace wrote to Charles Babbage"}
    assert importance(data, now=NOW, earlier=["ada lovelace"]) == pytest.approx(0.8)
    assert importance(data, now=NOW, earlier=["ada lovelace", "charles babbage"]) == pytest.approx(
        0.8
    )
    assert importance(data, now=NOW, earlier=["Grace Hopper", "  "]) == pytest.approx(0.5)


@pytest.mark.parametrize(
    ("value", "tier"),
    [
        (1.0, "RAM"),
        (0.7, "RAM"),
        (0.69, "NVME_RAID0"),
        (0.35, "NVME_RAID0"),
        (0.34, "RAID1"),
        (0.0, "RAID1"),
    ],
)
def test_the_tier_an_entry_starts_in(value, tier):
    assert starting_tier(value, 0.7) is MemoryTier[tier]


SCOPE = Scope("g1", 0, "")


def test_a_question_with_any_sign_has_a_key_of_its_own():
    queries = ["a:b", "a", "a:", ':{"max_paths": 5}', "a:b:{}", 'a"b', "ä\n"]
    assert len({path_key(query, {"max_paths": 5}, SCOPE) for query in queries}) == len(queries)
    assert all(path_key(query, {}, SCOPE).startswith("path:") for query in queries)


def test_a_key_says_nothing_of_the_question():
    assert "Lovelace" not in path_key("Lovelace", {"domain_filter": "Lovelace"}, SCOPE)


@pytest.mark.parametrize("other", [Scope("g2", 0, ""), Scope("g1", 1, ""), Scope("g1", 0, "team")])
def test_another_snapshot_generation_or_tenant_is_another_key(other):
    assert path_key("q", {}, other) != path_key("q", {}, SCOPE)


def test_the_order_of_parameters_does_not_matter_but_their_values_do():
    assert path_key("q", {"a": 1, "b": None}, SCOPE) == path_key("q", {"b": None, "a": 1}, SCOPE)
    assert path_key("q", {"a": 1}, SCOPE) != path_key("q", {"a": "1"}, SCOPE)
