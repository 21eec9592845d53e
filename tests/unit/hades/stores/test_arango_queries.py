"""Query files hold one query each, in AQL that exists, whose order does not lean on the server's
collation.
"""

import re
from pathlib import Path

import pytest

from aql import load
from schemas.catalogue import NAMES

ROOT = Path(__file__).parents[4]
FILES = sorted(
    path.relative_to(ROOT / "aql").with_suffix("").as_posix() for path in ROOT.glob("aql/*/*.aql")
)


def body_of(name: str) -> str:
    return "\n".join(line for line in load(name).splitlines() if not line.startswith("//"))


def test_text_order_never_leans_on_the_servers_collation() -> None:
    """Every sort by key goes through the key's bytes, as SQLite sorts."""
    by_name = [
        name for name in FILES if re.search(r"SORT [^\n]*(?<!TO_HEX\()\b\w+\._key", body_of(name))
    ]
    assert by_name == []


@pytest.mark.parametrize("name", FILES)
def test_no_variable_is_called_like_a_collection(name: str) -> None:
    """The server's manual asks for it; which of the two a name means would depend on the query
    around it.
    """
    body = body_of(name)
    variables = set(re.findall(r"\b(?:LET|INTO) (\w+)", body))
    variables.update(
        one for found in re.findall(r"\bFOR ([\w, ]+) IN\b", body) for one in found.split(", ")
    )
    variables.update(re.findall(r"\b(?:COLLECT|AGGREGATE) (\w+) =", body))
    assert variables.isdisjoint(NAMES)
