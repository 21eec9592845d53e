"""Topics keep their keys while most of their members stay."""

from __future__ import annotations

from hades.build.topics.cluster import match_keys

BEFORE = {**dict.fromkeys("abcdef", "old1"), **dict.fromkeys("uvwxyz", "old2")}


def keys_of(*groups: str, before: dict[str, str] = BEFORE) -> list[str]:
    """Keys of groups given as letters."""
    return match_keys("t1", [sorted(group) for group in groups], before, match_share=0.25)


def test_a_topic_that_gained_and_lost_a_member_keeps_its_key() -> None:
    assert keys_of("uvwxyn", "abcdem") == ["old2", "old1"]


def test_of_a_split_topic_the_larger_part_keeps_the_key() -> None:
    larger, smaller = keys_of("abcd", "ef")
    assert larger == "old1"
    assert smaller not in BEFORE.values()


def test_of_two_topics_that_became_one_the_key_of_more_members_stays() -> None:
    assert keys_of("abcdef" + "uvw", before=BEFORE) == ["old1"]


def test_a_topic_without_a_past_is_named_after_its_members() -> None:
    first, second = keys_of("pqr"), keys_of("qpr")
    assert first == second
    assert first != keys_of("pqs")


def test_too_little_in_common_is_not_the_same_topic() -> None:
    [key] = keys_of("a" + "pqrst")
    assert key != "old1"


def test_a_topic_born_of_the_members_of_one_that_moved_on_has_its_own_key() -> None:
    [born] = keys_of("abc", before={})
    moved_on = {**dict.fromkeys("mnop", born), **dict.fromkeys("abc", "old1")}
    first, second = keys_of("mnopa", "bc" + "a", before=moved_on)
    assert first == born
    assert second == "old1"
    clash = keys_of("mnop", "abc", before=dict.fromkeys("mnop", born))
    assert clash[0] == born
    assert clash[1] != born
