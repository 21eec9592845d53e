"""Forgetting on a home that a night really built: nothing of the page is left, and the next night
agrees.
"""

import json
from functools import partial
from pathlib import Path

import pytest

from hades.errors import SnapshotError
from hades.night.bridges.stage import bridge
from hades.night.contracts.check import check_contracts
from hades.night.release.publish import promote_snapshot, roll_back
from hades.night.topics.stage import build_topics
from hades.night.weights.stage import weigh
from hades.ports.services import utc_now
from hades.retrieval.turn_result import judge
from hades.snapshot.pointer import served
from schemas.catalogue import COLLECTIONS
from schemas.telemetry import JudgedRanks
from tests.contract.examples import everything
from tests.unit.hades.night.release.small_graphs import MONDAY, ingested, write_pages

pytestmark = pytest.mark.slow
SECRET = """# Zanzibar Protocol

Quintus Farnaby smuggled the Obsidian Ledger out of Zanzibar with Ada Lovelace.
Quintus Farnaby hid the Obsidian Ledger below the Vermilion Gate in Vienna.
The Obsidian Ledger and the Vermilion Gate were never seen by
Quintus Farnaby again.
"""
WORDS = ("zanzibar", "quintus", "farnaby", "obsidian", "vermilion")


@pytest.fixture(scope="module")
def forgotten(tmp_path_factory):
    """A built, asked and judged home; what told of the page before it was forgotten, and the
    certificate.
    """
    folder: Path = tmp_path_factory.mktemp("forgetting")
    with ingested(folder) as hades:
        (folder / "pages" / "secret.md").write_text(SECRET)
        hades.build(as_of=MONDAY)
        answer = hades.retrieve("Who hid something in Vienna?", recipe="hipporag")
        judge(hades.store, answer.query_id, good=JudgedRanks(passages=(1,)), at=utc_now())
        before = telling(hades.store)
        (folder / "pages" / "secret.md").unlink()
        yield hades, before, hades.forget(["secret.md"])


def telling(store):
    """Collections with a row that holds one of the page's own words."""
    return {
        one.name: found
        for one in COLLECTIONS
        if (
            found := [
                row["_key"]
                for row in everything(store, one.name)
                if any(w in str(row).lower() for w in WORDS)
            ]
        )
    }


def test_the_night_had_spread_the_page_over_many_collections(forgotten):
    _, before, _ = forgotten
    spread = {"documents", "doc_chunks", "entities", "clusters", "cluster_membership_journal"}
    assert spread <= before.keys()


def test_nothing_tells_of_the_page_any_more(forgotten):
    hades, _, certificate = forgotten
    assert certificate.is_complete
    assert telling(hades.store) == {}
    assert hades.store.dangling() == {}
    assert hades.store.check() == []


def test_logs_keep_their_counts_and_their_judgements(forgotten):
    hades, _, _ = forgotten
    log = everything(hades.store, "query_logs")[0]
    shown = json.loads(log["results"])
    assert [one["rank"] for one in shown["passages"]] == list(range(1, len(shown["passages"]) + 1))
    assert json.loads(log["feedback"])["good"]["passages"] == [1]
    assert judge(
        hades.store, log["_key"], bad=JudgedRanks(passages=(1,)), at=utc_now()
    ).bad.passages == (1,)


def test_topics_stand_by_their_contract_at_once(forgotten):
    hades, _, _ = forgotten
    assert check_contracts(hades.build_context, ["hierarchy", "bridges"]).broken_rules == []


def test_the_next_night_does_every_stage_again_and_the_page_stays_away(forgotten):
    hades, _, certificate = forgotten
    topics = build_topics(hades.build_context, MONDAY)
    assert topics["mode"] != "skipped"
    assert topics["gone"] == certificate.removed["entities"]
    assert not weigh(hades.build_context, MONDAY)["skipped"]
    assert not bridge(hades.build_context, MONDAY)["skipped"]
    assert telling(hades.store) == {}
    assert (
        check_contracts(hades.build_context, ["hierarchy", "weights", "bridges"]).broken_rules == []
    )


def test_no_rollback_serves_a_forgotten_page_again(tmp_path):
    secret = tmp_path / "pages" / "secret.md"
    with ingested(tmp_path) as hades:
        older = hades.publish().snapshot
        secret.write_text(SECRET)
        hades.ingest.documents(secret.parent)
        before = hades.publish().snapshot
        assert "Obsidian" in str(hades.retrieve("What did Quintus Farnaby smuggle?"))
        secret.unlink()
        hades.forget(["secret.md"])
        after = hades.publish().snapshot
        for go_back in (
            partial(roll_back, to=None, part="graph"),
            partial(promote_snapshot, snapshot=before),
        ):
            with pytest.raises(
                SnapshotError, match=rf"{before} holds what `hades forget` removed on 20"
            ):
                go_back(hades.build_context)
        assert served(hades.home) == after
        assert "Obsidian" not in str(hades.retrieve("What did Quintus Farnaby smuggle?"))
        assert (
            after == older
        )  # published again after the forgetting: it holds what the store holds, and may serve
        hades.ingest.documents(write_pages(tmp_path / "pages", 25))
        hades.publish()
        assert roll_back(hades.build_context, "graph", None).snapshot == after
