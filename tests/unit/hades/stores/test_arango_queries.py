"""Query files keep their form: a header that tells the truth, bind variables only, and somebody who loads them."""

import re
from pathlib import Path

import pytest

from aql import load

ROOT = Path(__file__).parents[4]
FILES = sorted(path.relative_to(ROOT / "aql").with_suffix("").as_posix() for path in ROOT.glob("aql/*/*.aql"))
CODE = "\n".join(path.read_text("utf-8") for path in (ROOT / "hades").rglob("*.py"))


def parts(name: str) -> tuple[list[str], str]:
    lines = load(name).splitlines()
    return lines[:4], "\n".join(lines[4:])


def test_there_are_queries_in_every_room() -> None:
    assert {name.partition("/")[0] for name in FILES} == {
        "rows",
        "graph",
        "search",
        "hierarchy",
        "bridges",
        "memory",
        "maintenance",
    }


@pytest.mark.parametrize("name", FILES)
def test_the_header_says_what_it_does_and_what_it_binds(name: str) -> None:
    header, body = parts(name)
    assert re.fullmatch(r"// [A-Z].*\.", header[0])
    assert [line.split(":")[0] for line in header[1:]] == ["// binds", "// returns", "// index"]
    assert "//" not in body
    told = {bind.strip() for bind in header[1].removeprefix("// binds:").split(",")}
    assert told == {found.removeprefix("@") for found in re.findall(r"@@?\w+", body)}


@pytest.mark.parametrize("name", FILES)
def test_somebody_loads_it_by_its_name(name: str) -> None:
    assert f'load("{name}")' in CODE


@pytest.mark.parametrize("name", FILES)
def test_it_is_one_query_without_what_aql_does_not_have(name: str) -> None:
    _, body = parts(name)
    assert ";" not in body
    assert not re.search(r"\|\||\b(GREATEST|LEAST|NVL|COALESCE|COSINE_DISTANCE|NOW)\b", body)


def test_text_order_never_leans_on_the_servers_collation() -> None:
    """Every sort by key but the one the primary index answers goes through the key's bytes."""
    by_name = [name for name in FILES if re.search(r"SORT [^\n]*(?<!TO_HEX\()\b\w+\._key", parts(name)[1])]
    assert by_name == ["rows/scan_all"]
