"""`hades check` goes red for what a change broke, and says it in four formats."""

import json
import re
from dataclasses import replace

import pytest

from hades.check.pages import CheckUsageError
from hades.check.questions import parse_questions
from hades.check.report import CheckReport, Finding, Level, markdown, text_lines
from tests.command_line import run, run_json
from tests.repositories import commit, git, start, write

INSTALL = (
    "# Install\n\n## On a server\n\nRun `pip install ledger` and start `ledgerd --port 7070`.\n"
)
BACKUP = "# Backup\n\n## Every night\n\nThe archive is copied to the vault at three o'clock.\n"
QUESTIONS = """docs: docs
questions:
  - question: How do I install ledger on a server?
    requires: install.md#On a server
    words: [ledgerd]
  - question: When is the archive copied to the vault?
  - question: Who paints the fence?
    words: [whitewash]
"""
COUNTS = dict.fromkeys(("pages", "changed", "questions", "answered", "embedded"), 1)


@pytest.fixture
def repository(tmp_path, monkeypatch):
    monkeypatch.setenv("HADES_EMBEDDER", "hashing")
    monkeypatch.setenv("HADES_HOME", str(tmp_path / "home"))
    folder = start(tmp_path / "project")
    pages = {"docs/install.md": INSTALL, "docs/backup.md": BACKUP, "questions.yaml": QUESTIONS}
    commit(folder, pages)
    return folder


def rules(report):
    return [(row["rule"], row["level"], row["question"]) for row in report["findings"]]


def test_a_harmless_change_is_green_and_a_question_without_answer_is_a_warning(repository):
    commit(repository, {"docs/backup.md": BACKUP + "\nNobody has to be awake.\n"})
    report = run_json("check", str(repository))
    assert rules(report) == [("answer-missing", "warning", "Who paints the fence?")]
    assert report["counts"]["answered"] == 2
    assert report["counts"]["changed"] == 1


def test_a_lost_answer_is_red_with_the_sentence_that_was_lost(repository):
    commit(repository, {"docs/install.md": INSTALL.replace("start `ledgerd --port 7070`", "wait")})
    report = run_json("check", str(repository), code=1)
    [lost] = [row for row in report["findings"] if row["level"] == "error"]
    assert (lost["rule"], lost["path"], lost["line"]) == ("answer-lost", "docs/install.md", 3)
    assert "ledgerd" in lost["base_says"]
    assert "ledgerd" in lost["message"]


def test_a_sentence_that_both_states_say_is_not_shown_as_a_change():
    finding = Finding("answer-lost", Level.ERROR, "a.md", 1, "lost", "Who?", "Ann. (b.md)", "")
    same = replace(finding, head_says=finding.base_says)
    for rows, is_shown in ((finding, True), (same, False)):
        report = CheckReport("a", "b", "docs", (rows,), COUNTS)
        assert ("Ann." in "\n".join(text_lines(report))) is is_shown
        assert ("Ann." in markdown(report)) is is_shown


def test_a_removed_page_is_named_at_the_question(repository):
    commit(repository, {"docs/backup.md": None})
    report = run_json("check", str(repository), code=1)
    [lost] = [row for row in report["findings"] if row["level"] == "error"]
    assert (lost["path"], lost["line"]) == ("questions.yaml", 6)
    assert "backup.md, which answered it, is gone" in lost["message"]


TIDES = ["The gauge stands in a shed of oak.", "Its lamp burns oil.", "Two keys open the shed."]
TIDES += ["A rope keeps the boat near.", "Gulls nest on the roof.", "Paint lasts for six years."]
RESET = "The tide gauge resets at noon."


def tides(*lines: str) -> str:
    return "# Tides\n\n## Gauge\n\n" + "\n\n".join(lines) + "\n"


def test_a_required_section_that_lost_the_sentence_that_answered_is_red(repository):
    question = "When does the tide gauge reset?"
    required = f"questions:\n  - question: {question}\n    requires: tides.md#Gauge\n"
    pages = {"questions.yaml": required, "docs/tides.md": tides(*TIDES[:3], RESET, *TIDES[3:])}
    base = commit(repository, pages)
    others = {
        f"docs/tide-{name}.md": f"# Tide gauge {name}\n\nThe {name} tide gauge resets: reset it.\n"
        for name in ("north", "south", "east", "west", "upper", "lower")
    }
    commit(repository, {"docs/tides.md": tides(*TIDES), **others})
    report = run_json("check", str(repository), "--base", base, code=1)
    [lost] = [row for row in report["findings"] if row["rule"] == "answer-lost"]
    assert lost["level"] == "error"
    assert RESET in lost["base_says"]
    assert lost["path"] == "docs/tides.md"
    moved = {"docs/tides.md": None, "docs/harbour.md": tides(*TIDES[:3], RESET, *TIDES[3:])}
    commit(repository, moved)
    report = run_json("check", str(repository), "--base", base, code=1)
    [lost] = [row for row in report["findings"] if row["rule"] == "answer-lost"]
    assert (lost["level"], lost["message"]) == (
        "error",
        "lost: tides.md, which answered it, is gone",
    )


def test_a_renamed_page_with_the_same_words_loses_nothing(repository):
    commit(repository, {"docs/backup.md": None, "docs/operations/backup.md": BACKUP})
    assert rules(run_json("check", str(repository))) == [
        ("answer-missing", "warning", "Who paints the fence?")
    ]


def test_a_new_page_that_nobody_asks_for_is_a_notice(repository):
    commit(repository, {"docs/whales.md": "# Whales\n\nA blue whale eats krill near Iceland.\n"})
    report = run_json("check", str(repository))
    assert ("page-unasked", "note", "") in rules(report)


def test_a_logged_question_is_a_question_that_somebody_asks(repository, tmp_path):
    home = tmp_path / "home"
    run_json("ingest", "documents", str(repository / "docs"))
    run_json("publish")
    run_json("query", "What does a blue whale eat near Iceland?")
    before = {path: path.read_bytes() for path in home.glob("snapshots/**/*") if path.is_file()}
    commit(repository, {"docs/whales.md": "# Whales\n\nA blue whale eats krill near Iceland.\n"})
    report = run_json("check", str(repository))
    assert "page-unasked" not in {rule for rule, _, _ in rules(report)}
    after = {path: path.read_bytes() for path in home.glob("snapshots/**/*") if path.is_file()}
    assert after == before


def test_neither_the_work_tree_nor_the_repository_changes(repository):
    commit(repository, {"docs/backup.md": None})
    write(repository, {"docs/install.md": "# Half written\n"})
    before = git(repository, "status", "--porcelain"), git(repository, "count-objects")
    run_json("check", str(repository), code=1)
    assert (git(repository, "status", "--porcelain"), git(repository, "count-objects")) == before


def test_what_is_staged_is_checked_and_not_what_is_only_edited(repository):
    write(repository, {"docs/backup.md": "# Backup\n\n[lost](lost.md)\n"})
    report = run_json("check", str(repository), "--staged")
    assert report["notes"] == ["no questions were asked: the documentation did not change"]
    assert "no question asked" in run("check", str(repository), "--staged").stdout
    git(repository, "add", "--all")
    report = run_json("check", str(repository), "--staged", code=1)
    assert "link-file" in {rule for rule, _, _ in rules(report)}


def test_the_second_run_builds_nothing_and_a_next_change_embeds_only_what_it_changed(
    repository, tmp_path
):
    commit(repository, {"docs/backup.md": BACKUP + "\nNobody has to be awake.\n"})
    first = run_json("check", str(repository))
    homes = {path.parent: path.stat().st_ino for path in tmp_path.glob("home/check/*/graph.db")}
    assert len(homes) == 2
    assert rules(run_json("check", str(repository))) == rules(first)
    again = {path.parent: path.stat().st_ino for path in tmp_path.glob("home/check/*/graph.db")}
    assert again == homes
    commit(repository, {"docs/install.md": INSTALL + "\nThen restart.\n"})
    third = run_json("check", str(repository))
    assert first["counts"]["embedded"] == 3
    assert third["counts"]["embedded"] == 1


def test_the_graph_of_the_head_is_that_of_a_fresh_cache(repository, tmp_path):
    commit(repository, {"docs/backup.md": None, "docs/more.md": "# More\n\nText of more.\n"})
    grown = run_json("check", str(repository), code=1)
    fresh = run_json(
        "check", str(repository), "--base", "HEAD", "--cache", str(tmp_path / "other"), code=0
    )
    assert fresh["notes"]
    other = run_json("check", str(repository), "--cache", str(tmp_path / "other"), code=1)
    assert other["findings"] == grown["findings"]


def test_the_cache_keeps_the_two_of_the_last_check_when_it_is_full(repository, tmp_path):
    for number in range(3):
        commit(repository, {"docs/backup.md": f"{BACKUP}\nVersion {number}.\n"})
        run_json("check", str(repository), "--cache-mb", "1")
    assert len(list(tmp_path.glob("home/check/*/done"))) == 2


def test_markdown_has_the_verdict_first_and_the_details_folded(repository):
    commit(repository, {"docs/install.md": INSTALL.replace("ledgerd", "@everybody <b>")})
    done = run("check", str(repository), "--format", "markdown")
    assert done.exit_code == 1
    lines = done.stdout.splitlines()
    assert lines[1].startswith("❌ **Documentation check.** Red: 1 error")
    assert "| error | docs/install.md:3 |" in done.stdout
    assert done.stdout.count("<details>") == done.stdout.count("</details>") == 1
    assert "@everybody" not in done.stdout
    assert "<b>" not in done.stdout


def test_sarif_has_what_the_schema_requires(repository):
    text = "# Backup\n\nSee [it](lost.md).\n"
    commit(repository, {"docs/backup.md": text})
    done = run("check", str(repository), "--format", "sarif")
    document = json.loads(done.stdout)
    assert document["version"] == "2.1.0"
    assert document["$schema"].endswith("sarif-2.1.0.json")
    [log] = document["runs"]
    driver = log["tool"]["driver"]
    assert driver["name"] == "hades check"
    ids = [rule["id"] for rule in driver["rules"]]
    assert len(ids) == len(set(ids))
    assert all(rule["shortDescription"]["text"] for rule in driver["rules"])
    for result in log["results"]:
        assert result["ruleId"] == ids[result["ruleIndex"]]
        assert result["level"] in ("error", "warning", "note")
        assert result["message"]["text"]
        [location] = result["locations"]
        place = location["physicalLocation"]
        assert re.fullmatch(r"[\w./%-]+", place["artifactLocation"]["uri"])
        assert place["region"]["startLine"] >= 1
    broken = [row for row in log["results"] if row["ruleId"] == "link-file"]
    region = broken[0]["locations"][0]["physicalLocation"]["region"]
    assert region == {"startLine": 3}


def test_every_format_is_written_beside_what_is_printed(repository, tmp_path):
    commit(repository, {"docs/backup.md": None})
    done = run("check", str(repository), "--write", str(tmp_path / "reports"))
    assert done.stdout.splitlines()[-1].startswith("Red: 1 error, 1 warning")
    written = sorted(path.name for path in (tmp_path / "reports").iterdir())
    assert written == ["check.json", "check.md", "check.sarif"]
    report = json.loads((tmp_path / "reports/check.json").read_text("utf-8"))
    assert report["ok"] is False


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("--base", "nowhere"), "no commit 'nowhere'"),
        (("--docs", "handbook"), "no folder 'handbook'"),
        (("--questions", "missing.yaml"), "cannot be read"),
        (("--format", "pdf"), "pdf"),
    ],
)
def test_bad_usage_is_exit_code_2(repository, words, message):
    done = run("check", str(repository), *words)
    assert done.exit_code == 2
    assert message in " ".join(re.sub(r"[│╭╮╰╯─]", " ", done.output).split())


def test_a_damaged_file_of_questions_is_bad_usage(repository):
    commit(repository, {"questions.yaml": "questions:\n  - question: a\n    require: b\n"})
    done = run("check", str(repository))
    assert done.exit_code == 2
    assert "require" in done.output


def test_init_writes_an_example_that_the_check_reads(repository):
    commit(repository, {"questions.yaml": None})
    report = run_json("check", str(repository))
    assert "--init" in report["notes"][0]
    assert run("check", str(repository), "--init").exit_code == 0
    commit(repository, {"docs/backup.md": BACKUP + "\nMore.\n"})
    assert run_json("check", str(repository))["counts"]["questions"] == 2
    assert run("check", str(repository), "--init").exit_code == 2


@pytest.mark.parametrize(
    ("questions", "named"),
    [
        ("question: [a]\nquestions: [b]", "'question'"),
        ("questions:\n  - question: a\n    words: {b: c}", "`words`"),
        ("questions:\n  - question: a\n    requires: [install.md]", "`requires`"),
        ("questions:\n  - question: a\n    requires: {page: install.md}", "'page'"),
    ],
)
def test_what_a_file_of_questions_demands_in_an_unknown_way_is_refused(questions, named):
    with pytest.raises(CheckUsageError, match=named):
        parse_questions(questions, "questions.yaml")


def test_words_of_a_question_are_what_the_file_writes():
    text = "questions:\n  - question: a\n    words: [1.10, 2024-11-05, 2024-13-45, yes]\n"
    parsed = parse_questions(text, "questions.yaml").questions[0]
    assert parsed.words == ("1.10", "2024-11-05", "2024-13-45", "yes")
    assert parse_questions("questions:\n  - question: a\n    words: 2024-11-05", "").questions[
        0
    ].words == ("2024-11-05",)


def test_a_history_that_was_not_fetched_is_not_green(repository, tmp_path):
    commit(repository, {"docs/install.md": None})
    git(tmp_path, "clone", "--quiet", "--depth", "1", f"file://{repository}", "shallow")
    done = run("check", str(tmp_path / "shallow"))
    assert done.exit_code == 2
    assert "fetch-depth" in done.output


def test_a_repository_without_documentation_says_so(tmp_path, repository):
    folder = start(tmp_path / "code")
    commit(folder, {"code.py": "x = 1\n"})
    assert "no documentation" in run_json("check", str(folder))["notes"][0]
