"""A check of what changed says the same as a check of every row, after any history of changes and damage."""

from __future__ import annotations

import random
import shutil
from collections.abc import Iterator
from contextlib import suppress
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from hades.build.context import BuildContext
from hades.build.contracts.check import (
    READS,
    WHOLE_EVERY,
    ContractResult,
    Outcome,
    check_contract,
    check_contracts,
    find_known,
    note_result,
    read_inputs,
)
from hades.ports.services import Tracker
from hades.ports.store import Mode
from hades.settings.tree import PathSettings
from hades.stores.sqlite import lookups as registry
from hades.stores.sqlite.store import SqliteStore
from schemas.catalogue import collection_named
from tests.contract.examples import everything
from tests.unit.hades.stages.contracts.built import AS_OF, first, force, patch, write_unchecked
from tests.unit.hades.stages.contracts.test_corruptions import CASES

STORED = sorted(rule for rule in CASES if not rule.startswith("snapshot."))
DELETED = ("documents", "entities", "doc_chunks", "relations", "mentions", "clusters", "cluster_edges", "papers_raw")


@pytest.fixture(scope="module")
def paged_home(sound_home: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """The sound home with a few rows a page, so that most rows lie in pages that do not change."""
    home = Path(shutil.copytree(sound_home, tmp_path_factory.mktemp("paged") / "home"))
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(registry, "ROW_PAGE_BYTES", 1024)
        opened = SqliteStore.open(home / "graph.db", Mode.ADMIN)
        for name in {one for reads in READS.values() for one in reads}:
            if rows := everything(opened, name):
                write_unchecked(opened, name, *rows)
        opened.close()
        yield home


@pytest.fixture
def store(paged_home: Path, tmp_path: Path) -> Iterator[SqliteStore]:
    """A copy of that home's store, writable."""
    home = Path(shutil.copytree(paged_home, tmp_path / "home"))
    opened = SqliteStore.open(home / "graph.db", Mode.ADMIN)
    yield opened
    opened.close()


@pytest.mark.parametrize("seed", range(6))
def test_after_any_history_an_increment_finds_what_a_whole_check_finds(store: SqliteStore, seed: int) -> None:
    chance = random.Random(seed)
    for name in READS:
        assert not check(store, name).findings
    carried = 0
    for _ in range(6):
        change = chance.choice([damage, remove_row, touch_row, retype, shorten, rest])
        change(store, chance)
        for name in READS:
            increment, whole = check(store, name), check_contract(store, name)
            assert told(increment) == told(whole)
            assert increment.rows + increment.carried == whole.rows
            carried += increment.carried
    assert carried  # or nothing was left out and the test says nothing


@pytest.mark.parametrize(
    ("rule", "collection", "changes"),
    [
        ("chunks.text_is_the_span", "documents", {"text": "x" * 9_999}),
        ("edges.span_inside_document", "documents", {"text": ""}),
        ("nodes.func_span_inside_document", "documents", {"text": ""}),
        ("nodes.file_sha256_of_document", "documents", {"sha256": "0" * 64}),
        ("edges.mention_inside_chunk", "doc_chunks", {"text": ""}),
        ("edges.endpoint_types_allowed", "entities", {"type": "person"}),
        ("weights.cost_recomputes", "weight_config", {"relation_boost": 0.1}),
        ("bridges.ends_in_their_topics", "entities", {"cluster_id": "t0"}),
    ],
)
def test_a_row_is_checked_again_when_only_what_it_refers_to_has_changed(
    store: SqliteStore, rule: str, collection: str, changes: dict[str, Any]
) -> None:
    name = rule.partition(".")[0]
    assert not check(store, name).findings
    write_unchecked(store, collection, *({**row, **changes} for row in everything(store, collection)))
    assert told(check(store, name)) == told(check_contract(store, name))
    assert rule in {finding.rule for finding in check(store, name).findings}


@pytest.mark.parametrize("rule", STORED)
def test_damage_through_the_store_is_found_in_the_same_night(store: SqliteStore, tmp_path: Path, rule: str) -> None:
    name = rule.partition(".")[0]
    assert not check(store, name).findings
    CASES[rule](store, tmp_path)
    assert told(check(store, name)) == told(check_contract(store, name))
    assert rule in {finding.rule for finding in check(store, name).findings}


def test_an_unchanged_row_is_not_read_again_until_a_week_has_passed(store: SqliteStore, tmp_path: Path) -> None:
    whole = check_nodes(store, tmp_path, AS_OF).checked[0]
    assert (whole.rows > 0, whole.carried) == (True, 0)
    touched = first(store, "entities")["_key"]
    patch(store, "entities", {"_key": touched, "cluster_id": "t1"})
    next_night = check_nodes(store, tmp_path, AS_OF + timedelta(days=1)).checked[0]
    assert 0 < next_night.rows < whole.rows
    assert next_night.rows + next_night.carried == whole.rows
    assert check_nodes(store, tmp_path, AS_OF + timedelta(days=2)).checked[0].rows == 0
    assert check_nodes(store, tmp_path, AS_OF + WHOLE_EVERY).checked[0].rows == whole.rows


def test_a_page_damaged_behind_its_checksum_is_found_by_the_weekly_check(store: SqliteStore, tmp_path: Path) -> None:
    assert check_nodes(store, tmp_path, AS_OF).broken_rules == []
    with store._connections.writing() as connection:
        tree = store._known(connection).rows(collection_named("entities"))
        (number, data) = connection.execute(
            "SELECT id, data FROM page WHERE tree = ? AND instr(data, CAST('Ada' AS BLOB)) > 0 LIMIT 1", (tree.id,)
        ).fetchone()
        connection.execute("UPDATE page SET data = ? WHERE id = ?", (data.replace(b"Ada", b"Eda", 1), number))
    opened = SqliteStore.open(tmp_path / "home" / "graph.db", Mode.ADMIN)  # the other handle holds the page as it was
    assert check_nodes(opened, tmp_path, AS_OF + timedelta(days=1)).broken_rules == []
    assert check_nodes(opened, tmp_path, AS_OF + WHOLE_EVERY).broken_rules == ["nodes.entity_name_lower"]
    opened.close()


def check(store: SqliteStore, name: str) -> ContractResult:
    """A check of what changed since the contract last held, which is noted where it holds again."""
    inputs = read_inputs(store, name)
    result = check_contract(store, name, known=find_known(store, name, inputs))
    note_result(store, name, inputs, result)
    return result


def check_nodes(store: SqliteStore, home: Path, now: datetime) -> Outcome:
    """The check of a night."""
    context = BuildContext(store, home, "toy", PathSettings(), open_tracker=no_tracker)
    return check_contracts(context, ["nodes"], now=now)


def no_tracker() -> Tracker:
    """Contracts track nothing."""
    raise AssertionError("a contract opened the tracker")


def told(result: ContractResult) -> list[tuple[Any, ...]]:
    return [(one.rule, one.failed, one.rows, one.keys, one.observed) for one in result.findings]


def damage(store: SqliteStore, chance: random.Random) -> None:
    """Break one rule, and put the row back in one of two times, so that later changes meet a sound store too."""
    rule = chance.choice(STORED)
    before = {name: {row["_key"]: row for row in everything(store, name)} for name in READS[rule.partition(".")[0]]}
    with suppress(StopIteration):  # the row that would be damaged is gone
        CASES[rule](store, Path())
    if chance.random() < 0.5:
        for name, rows in before.items():
            now = {row["_key"]: row for row in everything(store, name)}
            store.delete(name, keys=sorted(now.keys() - rows.keys()))
            for key, row in rows.items():
                if now.get(key) != row:
                    write_unchecked(store, name, row)


def remove_row(store: SqliteStore, chance: random.Random) -> None:
    """Take a row away; what refers to it stays."""
    name = chance.choice(DELETED)
    store.delete(name, keys=[chance.choice(everything(store, name))["_key"]])


def retype(store: SqliteStore, chance: random.Random) -> None:
    """An entity becomes something else, which its relations may not allow."""
    if rows := everything(store, "entities"):
        force(store, "entities", chance.choice(rows)["_key"], type=chance.choice(["person", "method", "paper"]))


def shorten(store: SqliteStore, chance: random.Random) -> None:
    """A text loses its end, where spans and positions may lie."""
    name = chance.choice(["documents", "doc_chunks"])
    if rows := everything(store, name):
        row = chance.choice(rows)
        force(store, name, row["_key"], text=row["text"][: len(row["text"]) // 2])


def touch_row(store: SqliteStore, chance: random.Random) -> None:
    """Write a row again as it is."""
    name = chance.choice(DELETED)
    row = chance.choice(everything(store, name))
    force(store, name, row["_key"])


def rest(store: SqliteStore, chance: random.Random) -> None:
    """A night without a change."""
