"""Query files hold one query each, in AQL that exists, whose order does not lean on the server's collation."""

import re
from pathlib import Path

import pytest

from aql import load

ROOT = Path(__file__).parents[4]
FILES = sorted(path.relative_to(ROOT / "aql").with_suffix("").as_posix() for path in ROOT.glob("aql/*/*.aql"))


def body_of(name: str) -> str:
    return "\n".join(line for line in load(name).splitlines() if not line.startswith("//"))


def test_there_are_queries_in_every_room() -> None:
    rooms = {name.partition("/")[0] for name in FILES}
    assert {"rows", "graph", "search", "bridges", "journal", "view", "maintenance"} <= rooms


@pytest.mark.parametrize("name", FILES)
def test_it_is_one_query_without_what_aql_does_not_have(name: str) -> None:
    body = body_of(name)
    assert ";" not in body
    assert not re.search(r"\|\||\b(GREATEST|LEAST|NVL|COALESCE|COSINE_DISTANCE|NOW)\b", body)


def test_text_order_never_leans_on_the_servers_collation() -> None:
    """Every sort by key but the one the primary index answers goes through the key's bytes."""
    by_name = [name for name in FILES if re.search(r"SORT [^\n]*(?<!TO_HEX\()\b\w+\._key", body_of(name))]
    assert by_name == ["rows/scan_all"]
