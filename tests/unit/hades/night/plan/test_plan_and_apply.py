"""`hades plan` and `hades apply` as people use them: what is said, refused and kept."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from hades.errors import StoreError
from hades.night.plan.make import make_plan
from hades.settings.load import load_settings
from hades.wiring import open_hades
from tests.command_line import run, run_json
from tests.homes import SavedFolder, live_in

RIVERS = ("Rhine", "Elbe", "Oder", "Weser", "Main", "Isar")


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> SavedFolder:
    """A folder of pages and a home that was built of it."""
    place = tmp_path_factory.mktemp("plan") / "place"
    folder = place / "pages"
    folder.mkdir(parents=True)
    for name in RIVERS:
        write_page(folder, name, f"The {name} flows to the North Sea.")
    with pytest.MonkeyPatch.context() as monkeypatch:
        live_in(place / "home", monkeypatch, place)
        run_json("ingest", "documents", str(folder))
        run_json("standing", "add", "Where does the Oder flow?")
        run_json("build")
    return SavedFolder(place)


@pytest.fixture
def tmp_path(built: SavedFolder) -> Path:
    """The folder of every test here, as it was when its home was built."""
    return built.put_back()


@pytest.fixture
def pages(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The pages, beside a home that was built of them."""
    live_in(tmp_path / "home", monkeypatch, tmp_path)
    return tmp_path / "pages"


def write_page(folder: Path, name: str, sentence: str) -> None:
    (folder / f"{name}.md").write_text(f"# {name}\n\n{sentence} Ships go up the {name}.\n")


def plan_change(pages: Path) -> str:
    """The id of a plan that changes something."""
    write_page(pages, "Oder", "The Oder flows to the Baltic Sea.")
    return str(run_json("plan", code=2)["plan"])


def refusal(plan: str) -> str:
    return str(run_json("apply", plan, code=1)["error"]["message"])


def test_a_plan_of_nothing_new_ends_with_0_and_its_application_changes_nothing(pages: Path) -> None:
    before = run_json("snapshots")
    plan = run_json("plan")
    assert not plan["changes"]
    assert plan["cost"]["texts"] == {"passages": 0, "names": 0, "memory": 0}
    assert run_json("apply", plan["plan"])["snapshot"] == plan["before"]
    assert run_json("snapshots") == before


def test_a_plan_says_what_changes_and_shows_both_answers(pages: Path, tmp_path: Path) -> None:
    write_page(pages, "Oder", "The Oder flows to the Baltic Sea.")
    (pages / "Isar.md").rename(pages / "Isar river.md")
    page = tmp_path / "plan.html"
    done = run("plan", "--html", str(page))
    assert done.exit_code == 2, done.output
    assert "documents: 1 changed, 1 renamed" in done.output
    assert "renamed    Isar.md → Isar river.md" in done.output
    for text in (done.output, page.read_text("utf-8")):
        assert "flows to the North Sea" in text
        assert "flows to the Baltic Sea" in text
    assert "<script" not in page.read_text("utf-8")
    assert "hades apply p" in done.output


def test_an_application_publishes_the_planned_graph_and_happens_once(pages: Path) -> None:
    plan = run_json("plan", code=0)["after"]
    name = plan_change(pages)
    applied = run_json("apply", name)
    assert applied["as_planned"]
    assert applied["snapshot"] != plan
    assert "Baltic" in run("answer", "Where does the Oder flow?").output
    assert "was applied" in refusal(name)
    assert not run_json("plan")["changes"]


def test_a_plan_after_a_rollback_says_what_it_is_compared_with(pages: Path, tmp_path: Path) -> None:
    first = run_json("plan")["before"]
    write_page(pages, "Oder", "The Oder flows to the Baltic Sea.")
    run_json("build")
    second = run_json("plan")
    assert second["store_is_at"] == ""
    run_json("rollback")
    page = tmp_path / "plan.html"
    done = run("plan", "--html", str(page))
    assert done.exit_code == 2, done.output
    sentence = f"{first} serves since a rollback, and the store is still at {second['before']}"
    for text in (done.output, page.read_text("utf-8")):
        assert sentence in " ".join(text.split())
    run_json("promote", second["before"])
    assert json.loads(run("plan", "--json").stdout)["store_is_at"] == ""


def test_plans_and_branches_say_that_they_need_the_embedded_store_before_they_ask_a_server(
    pages: Path,
) -> None:
    for words in (("plan",), ("apply", "p1"), ("branch", "try-it")):
        done = run(*words, HADES_STORE="arango")
        assert done.exit_code == 1
        assert "works on the file of the embedded store" in " ".join(done.output.split()), words


def test_apply_takes_the_file_that_a_plan_was_written_to(pages: Path, tmp_path: Path) -> None:
    write_page(pages, "Oder", "The Oder flows to the Baltic Sea.")
    out = tmp_path / "plan.json"
    assert run("plan", "--out", str(out)).exit_code == 2
    assert json.loads(out.read_text())["all_rows"]["documents"]["changed"]
    assert run_json("apply", str(out))["as_planned"]


def test_apply_refuses_when_the_folder_moved_on_and_names_the_file(pages: Path) -> None:
    plan = plan_change(pages)
    write_page(pages, "Main", "The Main meets the Rhine.")
    (pages / "Spree.md").write_text("# Spree\n")
    message = refusal(plan)
    assert "Main.md changed" in message
    assert "Spree.md was added" in message
    assert "hades plan" in message


def test_apply_refuses_when_the_store_moved_on_and_names_the_rows(pages: Path) -> None:
    plan = plan_change(pages)
    run_json("memory", "add", "harbour", "Stettin lies on the Oder.")
    message = refusal(plan)
    assert "memory_states" in message
    assert "the store moved on" in message


def test_apply_refuses_when_the_settings_moved_on_and_names_the_key(
    pages: Path, tmp_path: Path
) -> None:
    plan = plan_change(pages)
    (tmp_path / "hades.yaml").write_text("hirag_pathrag: {path: {eps: 0.5}}\n")
    assert "settings: hirag_pathrag.path.eps was" in refusal(plan)


def test_a_question_that_is_asked_meanwhile_is_no_reason_to_refuse(pages: Path) -> None:
    plan = plan_change(pages)
    turn = run_json("query", "Where does the Elbe flow?")["query_id"]
    assert run_json("apply", plan)["as_planned"]
    run_json("feedback", turn, "--good-passage", "1")  # it is still in the log


def test_a_judgement_that_is_made_meanwhile_is_a_reason_to_refuse(pages: Path) -> None:
    turn = run_json("query", "Where does the Elbe flow?")["query_id"]
    plan = plan_change(pages)
    run_json("feedback", turn, "--good-passage", "1")
    assert "judged answers" in refusal(plan)


def test_settings_of_a_file_are_planned_and_applied_once_they_are_in_force(
    pages: Path, tmp_path: Path
) -> None:
    other = tmp_path / "other.yaml"
    other.write_text("hirag_pathrag: {path: {relation_prior: {refers_to: 0.95}}}\n")
    plan = run_json("plan", "--settings", str(other), code=2)
    assert plan["rows"]["kinds"]["weights"]["changed"]
    assert not plan["rows"]["kinds"]["documents"]["changed"]
    assert "settings: hirag_pathrag.path.relation_prior.refers_to" in refusal(plan["plan"])
    other.rename(tmp_path / "hades.yaml")
    assert run_json("apply", plan["plan"])["as_planned"]


def test_a_rule_that_would_break_is_named_and_the_plan_cannot_be_applied(
    pages: Path, tmp_path: Path
) -> None:
    rule = {"name": "only_papers", "collection": "documents"}
    rule |= {"type": "expect_column_values_to_be_in_set"}
    kwargs = {"column": "source", "value_set": ["arxiv"]}
    text = json.dumps({"expectations": [{**rule, "kwargs": kwargs}]})
    (tmp_path / "home" / "expectations.yaml").write_text(text)
    write_page(pages, "Danube", "The Danube flows to the Black Sea.")
    plan = run_json("plan", code=2)
    (broken,) = plan["contracts"]["broken"]
    assert "only_papers" in broken["rule"]
    assert plan["after"] == ""
    assert "would break" in refusal(plan["plan"])


def test_a_folder_that_was_never_read_is_planned_and_applied(pages: Path, tmp_path: Path) -> None:
    more = tmp_path / "more"
    more.mkdir()
    write_page(more, "Danube", "The Danube flows to the Black Sea.")
    plan = run_json("plan", str(more), code=2)
    assert plan["rows"]["kinds"]["documents"]["added"] == 1
    assert run_json("apply", plan["plan"])["as_planned"]
    assert "Black Sea" in run("answer", "Where does the Danube flow?").output


def test_the_newest_plans_are_kept_and_status_says_which(
    pages: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HADES_PLANS_KEPT", "2")
    names = [run_json("plan")["plan"] for _ in range(3)]
    kept = [plan["plan"] for plan in run_json("status")["plans"]]
    assert sorted(kept) == sorted(names)[1:]
    assert "there is no plan" in refusal(names[0])


def test_forgetting_removes_plans_for_they_hold_the_words(pages: Path, tmp_path: Path) -> None:
    plan = plan_change(pages)
    (pages / "Oder.md").unlink()
    certificate = run_json("forget", "Oder.md")
    assert f"plans/{plan}" in certificate["files_removed"]
    assert not (tmp_path / "home" / "plans").exists()


def test_a_plan_leaves_nothing_of_the_state_it_built_beside_the_graph(
    pages: Path, tmp_path: Path
) -> None:
    plan = plan_change(pages)
    (folder,) = (tmp_path / "home" / "plans").iterdir()
    assert folder.name == plan
    assert {path.name for path in folder.iterdir()} == {"plan.json", "plan.html", "changes.db"}
    run_json("apply", plan)
    assert {path.name for path in folder.iterdir()} == {"plan.json", "plan.html"}


def test_a_plan_that_was_killed_after_its_rows_were_taken_goes_on_with_publishing(
    pages: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    plan = plan_change(pages)
    with monkeypatch.context() as patch:
        patch.setattr("hades.night.plan.apply.release", stop)
        assert run("apply", plan).exit_code == 1
    assert run_json("apply", plan)["as_planned"]


def stop(*_: object) -> None:
    raise OSError("the machine stops here")


def test_a_store_that_is_no_file_is_named_with_what_to_do_instead(pages: Path) -> None:
    with open_hades() as hades:
        context = replace(hades.build_context, state=None)
        with pytest.raises(StoreError, match="HADES_STORE=sqlite, or `hades build --dry-run`"):
            make_plan(context, load_settings())
