"""Topics keep their keys while most of their members stay."""

from __future__ import annotations

import pytest

from hades.night.topics.cluster import match_keys

BEFORE = {**dict.fromkeys("abcdef", "old1"), **dict.fromkeys("uvwxyz", "old2")}


def keys_of(*groups: str, before: dict[str, str] = BEFORE) -> list[str]:
    """Keys of groups given as letters."""
    return match_keys("t1", [sorted(group) for group in groups], before, match_share=0.25)


@pytest.mark.parametrize(
    ("groups", "expected"),
    [
        (("uvwxyn", "abcdem"), ["old2", "old1"]),  # each gained and lost a member
        (("abcd", "ef"), ["old1", None]),  # of a split topic the larger part
        (("abcdefuvw",), ["old1"]),  # of two that became one the key of more members
        (("apqrst",), [None]),  # too little in common
    ],
)
def test_a_topic_keeps_its_key_while_most_members_stay(
    groups: tuple[str, ...], expected: list[str | None]
) -> None:
    assert [key if key in BEFORE.values() else None for key in keys_of(*groups)] == expected


def test_a_topic_without_a_past_is_named_after_its_members() -> None:
    assert keys_of("pqr") == keys_of("qpr") != keys_of("pqs")


def test_a_topic_born_of_the_members_of_one_that_moved_on_has_its_own_key() -> None:
    [born] = keys_of("abc", before={})
    moved_on = {**dict.fromkeys("mnop", born), **dict.fromkeys("abc", "old1")}
    first, second = keys_of("mnopa", "bc" + "a", before=moved_on)
    assert first == born
    assert second == "old1"
    clash = keys_of("mnop", "abc", before=dict.fromkeys("mnop", born))
    assert clash[0] == born
    assert clash[1] != born
