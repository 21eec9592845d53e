"""Which new topic is which old one, so that a topic keeps its key while most of its members stay."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from schemas.ids import content_key


def match_keys(kind: str, members: Sequence[Sequence[str]], before: dict[str, str], *, match_share: float) -> list[str]:
    """A key for each topic, given its members (sorted) and the topic each member was in before.

    Pairs are matched one to one, those that share most first (ties: by the old key, then by the new topic's content);
    they must share `match_share` of their union. A topic without a match is named after its members.
    """
    old_sizes = Counter(before.values())
    born = [content_key(kind, *group) for group in members]
    pairs = []
    for number, group in enumerate(members):
        for old, shared in Counter(before[member] for member in group if member in before).items():
            if shared >= match_share * (len(group) + old_sizes[old] - shared):
                pairs.append((-shared, old, born[number], number))
    kept: dict[int, str] = {}
    taken: set[str] = set()
    for _, old, _, number in sorted(pairs):
        if number not in kept and old not in taken:
            kept[number] = old
            taken.add(old)
    return [
        kept[number] if number in kept else _free(kind, members[number], born[number], taken)
        for number in range(len(members))
    ]


def _free(kind: str, group: Sequence[str], born: str, taken: set[str]) -> str:
    """The key of the members, told apart from an older topic that was born of the same ones and has moved on."""
    key, again = born, 1
    while key in taken:
        again += 1
        key = content_key(kind, *group, f"again {again}")
    taken.add(key)
    return key
