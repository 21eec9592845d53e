"""What changed is answered as any question: every planted change once, nothing that stayed, each
with the states that it stands in.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from hades.ports.graph import DocumentFilter
from hades.ports.services import TextChange
from hades.retrieval.answer.changes import read_change_question
from hades.wiring import open_answers, open_hades
from schemas.plan import Plan
from tests.command_line import run, run_json
from tests.homes import live_in, settings_of
from tests.unit.hades.ingest.sources.repositories import Repository

BACKUPS = """# Backups

Backups are written at 03:00 UTC by the deployment.

Backups keep seven days of history.

Backups need a key of the owner.
"""
PORTS = "# Ports\n\nThe service listens on port 8080 of every address.\n"
QUESTION = "What changed about backups since 2024-01-02?"
LATER = BACKUPS.replace("03:00", "05:30")
LAST = LATER.replace("need a key of the owner", "are encrypted with age before upload")


class Nights:
    """A folder in git that is built once a day, at six in the evening of each commit."""

    def __init__(self, folder: Path) -> None:
        self.repository = Repository(folder / "pages")
        self.settings = settings_of(folder / "home")
        self.day = datetime(2024, 1, 1, 18, tzinfo=UTC)

    def night(self, **pages: str | None) -> str:
        files: dict[str, str | bytes | None] = {f"{name}.md": text for name, text in pages.items()}
        commit = self.repository.commit("pages", files)
        with open_hades(self.settings) as hades:
            hades.ingest.documents(self.repository.folder)
            hades.build(as_of=self.day)
        self.day += timedelta(days=1)
        return commit


@pytest.fixture(scope="module")
def three_nights(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, Any]]:
    folder = tmp_path_factory.mktemp("nights")
    nights = Nights(folder)
    with pytest.MonkeyPatch.context() as patch:
        live_in(nights.settings.home, patch)
        nights.night(backups=BACKUPS, ports=PORTS)
        second = nights.night(backups=LATER, ports=PORTS.replace("8080", "9090"))
        between = run_json("query", QUESTION)["changes"]
        third = nights.night(backups=LAST, ports=None, listen=PORTS.replace("8080", "9090"))
        yield {"between": between, "second": second, "third": third, "nights": nights}


def said(report: dict[str, Any]) -> set[tuple[str, str, str]]:
    return {(row["change"], row["before"], row["now"]) for row in report["statements"]}


def test_each_planted_change_is_reported_once_and_nothing_that_stayed(
    three_nights: dict[str, Any],
) -> None:
    written = "Backups are written at {} UTC by the deployment."
    changed = ("changed", written.format("03:00"), written.format("05:30"))
    assert said(three_nights["between"]) == {changed}
    report = run_json("query", QUESTION)["changes"]
    assert len(report["statements"]) == 3
    assert said(report) == {
        changed,
        ("removed", "Backups need a key of the owner.", ""),
        ("added", "", "Backups are encrypted with age before upload."),
    }


def test_every_statement_is_cited_to_its_state_with_snapshot_and_commit(
    three_nights: dict[str, Any],
) -> None:
    answer = run_json("answer", QUESTION)
    assert answer["mode"] == "extracted"
    assert answer["text"].startswith(
        "What the documents say about backups changed since 2024-01-02: 1 ch"
    )
    sources = {source["text"]: source for source in answer["sources"]}
    now = sources["Backups are written at 05:30 UTC by the deployment."]
    then = sources["Backups are written at 03:00 UTC by the deployment."]
    assert (now["kind"], now["document"]) == ("state", "backups.md")
    assert now["where"].startswith("since 2024-01-02 18:00 (snapshot g")
    assert f"commit {three_nights['second'][:12]}" in now["where"]
    assert then["where"].startswith("until 2024-01-02 18:00 (snapshot g")
    cited = next(row for row in answer["sentences"] if "05:30" in row["text"])
    assert cited["citations"] == [then["number"], now["number"]]
    printed = run("answer", QUESTION).output
    assert "became" in printed
    assert "until 2024-01-02 18:00" in printed


def test_only_what_was_removed_is_shown_where_that_is_asked(three_nights: dict[str, Any]) -> None:
    report = run_json("query", "What was removed about backups since 2024-01-02?")["changes"]
    assert said(report) == {("removed", "Backups need a key of the owner.", "")}


def test_python_answers_it_too_and_limits_it_as_any_question(
    three_nights: dict[str, Any],
) -> None:
    with open_hades(three_nights["nights"].settings) as hades:
        answer = hades.answer(QUESTION)
        limited = hades.retrieve(QUESTION, only=DocumentFilter(paths=("listen.*",))).changes
        past = hades.retrieve("What changed since yesterday?", as_of="2024-01-03T20:00").changes
    assert answer.changes is not None
    assert len(answer.changes.statements) == 3
    assert limited is not None
    assert limited.statements == ()
    assert past is not None
    assert past.until == datetime(2024, 1, 3, 20, tzinfo=UTC)
    assert any("05:30" in row.now for row in past.statements)


def test_a_page_that_got_another_name_has_not_changed(three_nights: dict[str, Any]) -> None:
    report = run_json("query", "What changed about ports since 2024-01-03?")["changes"]
    assert report["statements"] == []
    since_start = run_json("query", "How did the port change since 2024-01-02?")["changes"]
    assert [row["now"] for row in since_start["statements"]] == [
        "The service listens on port 9090 of every address."
    ]


def test_where_nothing_changed_the_answer_says_so_and_how_many_passages_mention_it(
    three_nights: dict[str, Any],
) -> None:
    later = "What changed about backups since 2024-01-05?"
    answer = run_json("answer", later)
    assert answer["changes"]["statements"] == []
    assert "Nothing that the documents say about backups" in run("answer", later).output
    assert answer["text"].startswith(
        "Nothing that the documents say about backups changed since 2024-01-05; 1 passage mentions"
    )


def test_a_time_before_what_is_kept_is_named(three_nights: dict[str, Any]) -> None:
    report = run_json("query", "What changed about backups since 2020?")["changes"]
    assert report["sentence"].endswith(
        "Changes are known since 2024-01-01 12:00; what came before is not."
    )
    before = run_json("query", "What changed about backups in 2019?")
    assert before["changes"] is None


def test_since_when_a_page_says_something(three_nights: dict[str, Any]) -> None:
    question = "Since when does backups.md say that backups are written at 05:30?"
    report = run_json("query", question)["changes"]
    assert said(report) == {
        (
            "changed",
            "Backups are written at 03:00 UTC by the deployment.",
            "Backups are written at 05:30 UTC by the deployment.",
        )
    }
    assert report["statements"][0]["at"] == "2024-01-02T18:00:00Z"


def test_the_reads_and_the_time_of_the_plan_hold(three_nights: dict[str, Any]) -> None:
    with open_hades(three_nights["nights"].settings) as hades:
        turn = hades.retrieve(QUESTION, plan=Plan.model_validate({"budget": {"docs_max": 6}}))
    stages = {stage.name: stage for stage in turn.telemetry.stages}
    assert turn.telemetry.reads <= 6
    assert stages["changes"].capped
    assert turn.changes is not None
    assert "reads or time ran out" in turn.changes.sentence


def test_before_the_first_night_git_tells_what_changed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    live_in(tmp_path / "home", monkeypatch)
    nights = Nights(tmp_path)
    secret = "Backups of the old site hold what was forgotten."
    nights.repository.commit("first", {"saves.md": BACKUPS, "old.md": "# Old\n"})
    changed = nights.repository.commit("later", {"saves.md": LATER, "old.md": secret})
    nights.repository.commit("names", {"saves.md": None, "old.md": None, "backups.md": LATER})
    nights.day += timedelta(days=3)
    nights.night(backups=LATER)
    report = run_json("query", QUESTION)["changes"]
    (row,) = report["statements"]
    assert row["now"] == "Backups are written at 05:30 UTC by the deployment."
    assert row["now_state"] == f"since 2024-01-02 12:00 (commit {changed[:12]})"
    assert row["before_state"] == f"until 2024-01-02 12:00 (before commit {changed[:12]})"


def test_a_forgotten_page_is_in_no_report(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    live_in(tmp_path / "home", monkeypatch)
    nights = Nights(tmp_path)
    nights.repository.commit("first", {"backups.md": BACKUPS})
    nights.repository.commit("later", {"backups.md": LATER})
    nights.day += timedelta(days=2)
    nights.night(backups=LATER, ports=PORTS)
    nights.night(backups=LAST)
    before = run_json("query", QUESTION)["changes"]
    assert len(before["statements"]) == 3
    run_json("forget", "backups.md", "--publish")
    after = run_json("query", QUESTION)["changes"]
    assert after is None or after["statements"] == []


HALLS = 12
PUMP = "The pump of hall {hall} moves {litres} litres an hour."
SPARE = "A spare pump stands behind the door of hall {hall}."


def hall_page(hall: int, night: int, litres: int, *, spare: bool, has_pump: bool) -> str:
    """A page with statements about pumps between others, which change every night."""
    sentences = [f"The mill of hall {hall} turned {100 + night} times.", "Doors close at eight."]
    if has_pump:
        sentences.insert(1, PUMP.format(hall=hall, litres=litres))
    if spare:
        sentences.append(SPARE.format(hall=hall))
    return f"# Hall {hall}\n\n" + "\n\n".join(sentences) + "\n"


def test_of_many_edits_between_others_those_about_the_subject_are_named_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    live_in(tmp_path / "home", monkeypatch)
    nights = Nights(tmp_path)
    expected = set()
    for night in range(3):
        pages: dict[str, str | None] = {}
        for hall in range(HALLS):
            fate, edited_in = hall % 4, 1 + hall % 2  # changed, removed, added, left alone
            is_edited = night >= edited_in
            name = f"hall{hall}" if hall != 3 or night < 2 else "lobby"
            litres = 200 + hall + (70 if fate == 0 and is_edited else 0)
            pages[name] = hall_page(
                hall,
                night,
                litres,
                spare=fate == 2 and is_edited,
                has_pump=fate != 1 or not is_edited,
            )
        if night == 2:
            pages["hall3"] = None
        nights.night(**pages)
    for hall in range(0, HALLS, 4):
        old = PUMP.format(hall=hall, litres=200 + hall)
        expected.add(("changed", old, PUMP.format(hall=hall, litres=270 + hall)))
        expected.add(("removed", PUMP.format(hall=hall + 1, litres=201 + hall), ""))
        expected.add(("added", "", SPARE.format(hall=hall + 2)))
    report = run_json("query", "What changed about the pumps since 2024-01-02?")["changes"]
    assert len(report["statements"]) == len(expected)
    assert said(report) == expected


def test_memory_that_holds_another_state_is_a_change(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    live_in(tmp_path / "home", monkeypatch)
    nights = Nights(tmp_path)
    nights.night(ports=PORTS)
    with open_hades(nights.settings) as hades:
        memory = hades.memory
        for day, weekday in ((2, "Tuesdays"), (4, "Thursdays")):
            moment = datetime(2024, 1, day, tzinfo=UTC)
            memory.add("deployment", f"The team deploys on {weekday}.", valid_from=moment)
        memory.add(
            "billing", "Billing closes on Fridays.", valid_from=datetime(2024, 1, 2, tzinfo=UTC)
        )
        report = hades.retrieve("What changed about the deployment since 2024-01-03?").changes
    assert report is not None
    (row,) = report.statements
    assert (row.document, row.change) == ("deployment", "changed")
    assert (row.before, row.now) == (
        "The team deploys on Tuesdays.",
        "The team deploys on Thursdays.",
    )
    assert row.now_state.startswith("since 2024-01-04 (memory memory_states/")


NOW = datetime(2026, 11, 19, 12, tzinfo=UTC)


@pytest.mark.parametrize(
    ("question", "subject", "start", "end"),
    [
        ("What changed about backups since June?", "backups", (6, 1), None),
        ("what's new in the cache since last week?", "cache", (11, 9), None),
        (
            "How did the default port change between June and August?",
            "default port",
            (6, 1),
            (9, 1),
        ),
        ("Which settings were changed since Monday?", "settings", (11, 16), None),
        ("what was removed from cli.md in the last 3 weeks", "cli.md", (10, 26), None),
        ("Has anything changed about tokens over the past month?", "tokens", (10, 1), None),
        ("Since June, what changed about the store?", "store", (6, 1), None),
        ("what changed since 2026-06-01?", "", (6, 1), None),
    ],
)
def test_the_forms_of_the_question(
    question: str, subject: str, start: tuple[int, int], end: tuple[int, int] | None
) -> None:
    read = read_change_question(question, NOW)
    assert read is not None
    assert (read.subject, read.start) == (subject, datetime(2026, *start, tzinfo=UTC))
    assert read.end == (NOW if end is None else datetime(2026, *end, tzinfo=UTC))


@pytest.mark.parametrize(
    "question",
    [
        "How do I change the port?",
        "What changed in HADES 2.0?",
        "Which store was added in June by Ada Holm?",
        "When is the cache changed?",
        "What is new?",
    ],
)
def test_other_questions_stay_what_they_are(question: str) -> None:
    read = read_change_question(question, NOW)
    assert read is None


NAMES = "abcdefgh"
STATES = st.lists(
    st.dictionaries(
        st.just("one.md"), st.frozensets(st.sampled_from(NAMES), max_size=5), max_size=1
    ),
    min_size=2,
    max_size=5,
)


class PlantedChanges:
    """States of pages, a day apart; each letter is a sentence."""

    def __init__(self, states: list[dict[str, frozenset[str]]]) -> None:
        self._states = states

    def find(
        self,
        start: datetime | None,
        end: datetime,
        *,
        may_tell: Callable[[str, str], bool],
        goes_on: Callable[[], bool],
    ) -> Iterator[TextChange]:
        for day, (old, new) in enumerate(pairwise(self._states), 2):
            for page in sorted(old.keys() | new.keys()):
                gone = old.get(page, frozenset()) - new.get(page, frozenset())
                came = new.get(page, frozenset()) - old.get(page, frozenset())
                at = datetime(2024, 1, day, tzinfo=UTC)
                yield TextChange("", page, sentences(gone), sentences(came), at)

    def kept_since(self, start: datetime | None) -> datetime | None:
        return datetime(2024, 1, 1, tzinfo=UTC)


def sentences(names: frozenset[str]) -> list[str]:
    return [f"Backups {5 * name} {6 * name} {7 * name}." for name in sorted(names)]


@settings(
    max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(states=STATES)
def test_what_is_reported_is_what_the_first_and_the_last_state_do_not_share(
    three_nights: dict[str, Any], states: list[dict[str, frozenset[str]]]
) -> None:
    with open_answers(three_nights["nights"].settings) as answers:
        answers.tools = replace(answers.tools, changes=PlantedChanges(states))
        report = answers.retrieve("What changed about backups since 2024-01-01?").changes
    assert report is not None
    said_then = frozenset().union(*states[0].values())
    said_now = frozenset().union(*states[-1].values())
    befores = [row.before for row in report.statements if row.before]
    nows = [row.now for row in report.statements if row.now]
    assert sorted(befores) == sentences(said_then - said_now)
    assert sorted(nows) == sentences(said_now - said_then)
