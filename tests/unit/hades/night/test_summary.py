"""The page of a night: what changed, what it cost, and where it stopped."""

from pathlib import Path

import pytest

from hades.errors import ContractBroken
from hades.night.stage import begin
from hades.night.summary import describe_stop, night_page
from hades.wiring import open_hades
from tests.homes import settings_of

PAGE = "# Rivers\n\nThe Rhine flows from Basel to the North Sea. Basel lies on the Rhine.\n"


@pytest.fixture(scope="module")
def report(tmp_path_factory):
    folder = tmp_path_factory.mktemp("night")
    (folder / "one.md").write_text(PAGE)
    with open_hades(settings_of(folder / "home")) as hades:
        hades.ingest.documents(folder / "one.md")
        yield hades.build()


def page_of(report, before="", error=None):
    return night_page(begin(), report, "rivers", before, error)


def test_a_night_says_which_graph_serves_and_what_it_cost(report):
    text = page_of(report)
    snapshot = report["released"]["snapshot"]
    assert text.startswith(f"## {snapshot} serves\n")
    assert "| snapshot before | none |" in text
    assert f"| snapshot after | `{snapshot}` |" in text
    assert Path(report["report"]).resolve().as_uri() in text
    assert "no call of a language model" in text
    checked = [contract for outcome in report["contracts"] for contract in outcome["contracts"]]
    rules = sum(contract["rules"] for contract in checked)
    assert f"{rules} of {rules} rules hold" in text


def test_a_night_says_how_many_rows_of_each_kind_changed(report):
    derived = {"entities": {"added": 1234, "changed": 5, "removed": 0}, "merge_log": {"added": 7}}
    text = page_of({**report, "edges": {**report["edges"], "derived": derived}})
    assert "| entities | 1,234 | 5 | 0 |" in text
    assert "merge" not in text.partition("### What it cost")[0]


def test_a_night_without_work_says_so(report):
    assert page_of(report, before=report["released"]["snapshot"]).startswith("## Nothing changed\n")


def test_an_answer_that_changed_is_told_in_one_line_of_a_table(report):
    answer = {
        "question": "who|what?",
        "change": "found",
        "before": "",
        "after": "a line\n" * 100,
        "causes": [{"sentence": "one.md changed"}],
    }
    standing = {"asked": 1, "changed": 1, "answers": [answer]}
    released = {**report["released"], "standing": standing}
    text = page_of({**report, "released": released})
    (row,) = [line for line in text.splitlines() if line.startswith("| who\\|what? | found |")]
    assert row.endswith("… | one.md changed |")


def test_a_night_that_stopped_says_at_which_stage_and_why():
    failed = {"began": {"sources": 1.0, "topics": 2.0}, "contracts": []}
    error = ContractBroken("rule a broke\nrule c broke")
    assert describe_stop(failed, error) == "failed in 'build topics'"
    text = page_of(failed, "gbefore", error)
    assert text.startswith("## Failed in 'build topics'\n")
    assert "ContractBroken: rule a broke\nrule c broke" in text
    assert "not published; what served still serves" in text


def test_a_broken_contract_is_told_with_the_stage_that_it_follows():
    stop = describe_stop({"began": {"weights": 1.0}, "weights": {}}, ContractBroken("no"))
    assert stop == "failed in the contracts after 'weigh edges'"


def test_a_night_that_was_cancelled_says_so_and_that_it_goes_on():
    stop = describe_stop({"began": {"bridges": 1.0}}, KeyboardInterrupt())
    assert stop == "cancelled in 'build bridges'; the next run goes on from there"
    assert describe_stop({}, KeyboardInterrupt()).startswith("cancelled before its first stage")
