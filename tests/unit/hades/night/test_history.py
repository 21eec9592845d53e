"""The log of nights, tags, and the sentences that nights changed: kept, bounded, forgotten."""

from __future__ import annotations

import json
import re
import subprocess
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pyarrow as pa
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from hades.errors import ContractBroken, SnapshotError
from hades.night.history import (
    FOLDER,
    bound_history,
    changes_of,
    moves_of,
    resolve_snapshot,
    size_of_history,
)
from hades.night.night_log import night_log
from hades.night.release.publish import release
from hades.night.report import build, snapshot_of_night
from hades.night.stage import begin
from hades.snapshot.pointer import pins, root_of, served
from hades.wiring import open_hades
from tests.command_line import run, run_json
from tests.homes import live_in, settings_of
from tests.patience import examples
from tests.unit.hades.night.release.small_graphs import MONDAY, ingested

FIRST = datetime(2026, 3, 1, tzinfo=UTC)


class Place:
    """A folder of pages and its home, published a day at a time."""

    def __init__(self, folder: Path) -> None:
        self.pages = folder / "pages"
        self.pages.mkdir()
        self.settings = settings_of(folder / "home")
        self.home = self.settings.home
        self.day = 0

    def write(self, name: str, text: str) -> None:
        (self.pages / name).write_text(f"# {name}\n\n{text}\n", "utf-8")

    def publish(self, keep: int = 7) -> str:
        with open_hades(self.settings) as hades:
            hades.ingest.documents(self.pages)
            report = release(hades.build_context, FIRST + timedelta(days=self.day), keep)
        self.day += 1
        return str(report["snapshot"])


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Place:
    live_in(tmp_path / "home", monkeypatch)
    place = Place(tmp_path)
    place.write("port.md", "The port of the service is 8377. It listens on every address.")
    place.write("owner.md", "Ada Holm owns the billing service.")
    return place


def test_the_log_says_what_each_night_changed_and_what_serves(place: Place) -> None:
    first = place.publish()
    place.write("port.md", "The port of the service is 9000. It listens on every address.")
    place.write("cat.md", "Mia Falk feeds the office cat.")
    (place.pages / "owner.md").unlink()
    second = place.publish()
    newest, oldest = run_json("log")["nights"]
    assert (newest["snapshot"], newest["serves"]) == (second, True)
    assert newest["documents"] == {"added": 1, "changed": 1, "removed": 1}
    assert (oldest["snapshot"], oldest["serves"]) == (first, False)
    assert "documents +1 ~1 -1" in run("log", "-n", "1").output
    rows = {row.name: row for row in changes_of(place.home, moves_of(place.home)[-1])}
    assert rows["port.md"].gone == ("The port of the service is 8377.",)
    assert rows["port.md"].came == ("The port of the service is 9000.",)


def test_a_night_that_changes_nothing_and_one_that_fails_have_lines(tmp_path: Path) -> None:
    with ingested(tmp_path) as hades:
        hades.build(as_of=MONDAY)
        nights = night_log(hades.home, 9)
        assert [night["kind"] for night in nights] == ["night"]
        assert nights[0]["seconds"] > 0
        (key, *_) = next(hades.store.scan("relations"))["_key"].to_pylist()
        hades.store.patch("relations", pa.table({"_key": [key], "weight": [0.9876]}))
        with pytest.raises(ContractBroken):
            hades.build(as_of=MONDAY)
        failed = night_log(hades.home, 9)[0]
    assert failed["kind"] == "failed"
    assert "ContractBroken" in failed["problem"]
    assert not failed["serves"]


def test_two_nights_of_one_second_have_a_report_each(tmp_path: Path) -> None:
    second = FIRST.timestamp()
    with ingested(tmp_path) as hades:
        for began in (second + 0.25, second + 0.5):
            build(hades.build_context, hades.ingest, replace(begin(MONDAY), began=began))
        assert len({night["build"] for night in night_log(hades.home, 9)}) == 2
        names = {path.stem for path in (hades.home / "reports").glob("nightly-*.json")}
        snapshot = served(hades.home)
        assert len(names) == 2
        assert {snapshot_of_night(hades.home, name) for name in names} == {snapshot}
        assert snapshot_of_night(hades.home, f"nightly-{FIRST:%Y%m%dT%H%M%S}") == snapshot
        assert snapshot_of_night(hades.home, "nightly-") == ""


def test_a_rollback_to_the_graph_of_a_night_that_changed_nothing_stays_a_rollback(
    place: Place,
) -> None:
    run_json("ingest", "documents", str(place.pages))
    run_json("build")
    first = served(place.home)
    run_json("build")
    assert served(place.home) == first
    place.write("port.md", "The port of the service is 9001.")
    run_json("build")
    run_json("rollback", "--to", first)
    nights = run_json("log")["nights"]
    newest = nights[0]
    assert (newest["kind"], newest["snapshot"], newest["build"]) == ("rollback", first, "")
    assert [night["serves"] for night in nights] == [True, False, False, False]
    assert run("log").output.count("(serves)") == 1


def test_a_tag_keeps_its_snapshot_and_every_command_knows_it(place: Place) -> None:
    first = place.publish()
    assert run_json("tag", "release-1") == {"tag": "release-1", "snapshot": first}
    for number in range(4):
        place.write("port.md", f"The port of the service is 900{number}.")
        newest = place.publish(keep=2)
    assert (root_of(place.home) / first).is_dir()
    assert run_json("compare", "--before", "release-1")["before"] == first
    assert run_json("rollback", "--to", "release-1")["snapshot"] == first
    assert run_json("log", "-n", "1")["nights"][0]["kind"] == "rollback"
    assert run_json("promote", "release-1")["snapshot"] == first
    assert run_json("promote", newest[:12])["snapshot"] == newest
    assert run_json("tag", "--list")["tags"] == {"release-1": first}
    run_json("tag", "--remove", "release-1")
    place.write("port.md", "The port of the service is 1.")
    place.publish(keep=2)
    assert not (root_of(place.home) / first).exists()
    assert run("tag", "--remove", "release-1").exit_code == 1


def test_names_of_snapshots(place: Place) -> None:
    first = place.publish()
    place.write("port.md", "The port of the service is 9000.")
    second = place.publish()
    home = place.home
    names = {"current": second, first: first, first[:8]: first, "2026-03-01": first}
    names |= {"2026-03-02": second, "2026-07-01": second}
    assert {name: resolve_snapshot(home, name) for name in names} == names
    for name in ("2026-02-01", "2026-02-31", "nothing", "../current", "g"):
        with pytest.raises(SnapshotError):
            resolve_snapshot(home, name)
    for name in ("current", "2026-03-01", "gabc", "a/b"):
        assert run("tag", name).exit_code == 1, name
    assert run("tag").exit_code == 2
    assert pins(root_of(home)) == {}


def test_a_name_means_one_snapshot(place: Place) -> None:
    place.publish()
    run_json("branch", "try-ports")
    run_json("tag", "release-1")
    assert "take another name" in run("tag", "try-ports").output
    for name in ("release-1", "current", "2026-03-01"):
        assert "take another name" in run("branch", name).output
    assert [row["branch"] for row in run_json("branch", "--list")["branches"]] == ["try-ports"]
    assert [*pins(root_of(place.home))] == ["release-1"]


def test_blame_of_what_was_never_answered_says_so(place: Place) -> None:
    place.publish()
    lines = run("blame", "Who paints the lighthouse of Bergen?").output.splitlines()
    assert lines[0] == "no answer"
    assert lines[1].startswith("at least since")
    assert "nothing that is kept tells" in lines[1]


def test_the_history_is_bounded_and_said_by_status(place: Place) -> None:
    place.publish()
    for number in range(6):
        place.write("port.md", " ".join(f"Port {number}{port} is open." for port in range(500)))
        place.publish()
    size = size_of_history(place.home)
    assert run_json("status")["history"] == {**size, "limit": 64 * 2**20}
    assert size["texts_since"] == "2026-03-02"
    bound_history(place.home, size["bytes"] // 2)
    after = size_of_history(place.home)
    assert after["moves"] == 7
    assert after["bytes"] <= size["bytes"] // 2
    assert after["texts_since"] > "2026-03-02"
    bound_history(place.home, 5000)
    assert size_of_history(place.home)["bytes"] <= 5000
    assert moves_of(place.home)[-1].snapshot == served(place.home)


SECRET = "Quintus Farnaby hid the marmalade of Zanzibar below the vermilion gate."
FORMER = "Quintus Farnaby hid the xylophones of Zanzibar below the cobalt gate."
WORDS = re.compile(rb"quintus|farnaby|marmalade|zanzibar|vermilion|xylophon|cobalt", re.IGNORECASE)


def test_forgetting_leaves_no_word_in_the_history_or_in_a_tagged_snapshot(place: Place) -> None:
    place.publish()
    place.write("old-name.md", FORMER)
    place.publish()
    place.write("old-name.md", SECRET)
    place.publish()
    run_json("tag", "with-the-secret")
    (place.pages / "old-name.md").rename(place.pages / "new-name.md")
    place.write("port.md", "The port of the service is 9000.")
    place.publish()
    assert _files_with_words(place.home / FOLDER)
    (place.pages / "new-name.md").unlink()
    run_json("forget", "new-name.md")
    assert _files_with_words(place.home / FOLDER) == []
    run_json("publish", "--prune", "1")
    assert _files_with_words(place.home) == []
    assert pins(root_of(place.home)) == {}
    ports = [row.came for move in moves_of(place.home) for row in changes_of(place.home, move)]
    assert ("The port of the service is 9000.",) in ports


def _files_with_words(folder: Path) -> list[str]:
    paths = [path for path in folder.rglob("*") if path.is_file()]
    return [str(path) for path in paths if WORDS.search(path.read_bytes())]


def test_a_backup_brings_the_history_and_the_tags_back(place: Place, tmp_path: Path) -> None:
    place.publish()
    place.write("port.md", "The port of the service is 9000.")
    place.publish()
    run_json("tag", "release-1")
    run_json("backup", str(tmp_path / "safe"))
    run_json("restore", str(tmp_path / "safe"), HADES_HOME=str(tmp_path / "other"))
    assert moves_of(tmp_path / "other") == moves_of(place.home)
    log = run_json("log", HADES_HOME=str(tmp_path / "other"))
    assert log["nights"][0]["tags"] == ["release-1"]


def test_without_a_limit_nothing_is_kept(place: Place) -> None:
    place.settings = settings_of(place.home, HADES_HISTORY_MIB="0")
    place.publish()
    assert not (place.home / FOLDER).exists()
    assert json.loads(run("log", "--json").stdout)["nights"][0]["serves"]


QUESTION = "Which port has the service?"


def test_blame_shows_both_sentences_and_the_commit(place: Place) -> None:
    _git(place.pages, "init", "--quiet")
    _commit(place.pages, "first pages")
    place.publish()
    place.write("port.md", "The port of the service is 9000. It listens on every address.")
    _commit(place.pages, "move the service to port 9000")
    second = place.publish()
    place.write("owner.md", "Ivo Kern owns the billing service.")
    place.publish()
    report = run_json("blame", QUESTION)
    assert (report["night"]["snapshot"], report["certainty"]) == (second, "asked")
    assert report["causes"][0]["sentence"] == "port.md was changed"
    assert report["document"]["before"] == "The port of the service is 8377."
    assert report["document"]["now"] == "The port of the service is 9000."
    assert report["git"]["subject"] == "move the service to port 9000"
    assert "because port.md was changed" in run("blame", QUESTION).output


def _git(folder: Path, *words: str) -> None:
    names = ("-c", "user.name=Ada", "-c", "user.email=ada@example.org")
    subprocess.run(["git", *names, *words], cwd=folder, check=True, capture_output=True)


def _commit(folder: Path, subject: str) -> None:
    _git(folder, "add", "--all")
    _git(folder, "commit", "--quiet", "-m", subject)


def test_blame_goes_on_by_sentences_where_snapshots_are_gone(place: Place) -> None:
    place.publish(keep=1)
    place.write("old.md", "The port of the service is 9000. Nobody else may take it.")
    (place.pages / "port.md").unlink()
    second = place.publish(keep=1)
    (place.pages / "old.md").rename(place.pages / "new.md")
    place.publish(keep=1)
    place.write("owner.md", "Ivo Kern owns the billing service.")
    place.publish(keep=1)
    report = run_json("blame", QUESTION)
    assert (report["night"]["snapshot"], report["certainty"]) == (second, "text")
    assert (report["document"]["name"], report["document"]["change"]) == ("old.md", "added")
    assert report["former_names"] == [{"name": "old.md", "until": "2026-03-03"}]
    older = run_json("blame", "Who owns the billing service?")
    assert (older["night"]["day"], older["document"]["name"]) == ("2026-03-04", "owner.md")


def test_blame_explains_an_answer_that_is_lost(place: Place) -> None:
    question = "Who feeds the office cat?"
    place.write("cat.md", "Mia Falk feeds the office cat.")
    place.publish()
    (place.pages / "cat.md").unlink()
    second = place.publish()
    place.write("port.md", "The port of the service is 9000.")
    place.publish()
    report = run_json("blame", question)
    assert (report["sentence"], report["source"]) == ("", "")
    assert (report["night"]["snapshot"], report["certainty"]) == (second, "asked")
    assert (report["document"]["name"], report["document"]["change"]) == ("cat.md", "removed")
    assert report["document"]["before"] == "Mia Falk feeds the office cat."
    assert "no answer" in run("blame", question).output


def test_blame_says_how_far_back_it_can_see(place: Place) -> None:
    place.publish(keep=1)
    place.write("owner.md", "Ivo Kern owns the billing service.")
    place.publish(keep=1)
    report = run_json("blame", QUESTION)
    assert report["certainty"] == "unknown"
    assert (report["kept_since"], report["texts_since"]) == ("2026-03-02", "2026-03-02")
    assert "at least since" in run("blame", QUESTION).output


def test_the_settings_that_a_night_changed_are_named(place: Place) -> None:
    place.publish()
    place.write("port.md", "The port of the service is 9000. It listens on every address.")
    place.settings = place.settings.model_copy(
        update={"hipporag": place.settings.hipporag.model_copy(update={"damping": 0.7})}
    )
    place.publish()
    (change,) = run_json("log")["nights"][0]["changed_settings"]
    assert re.fullmatch(r"hipporag\.damping: [0-9.]+ -> 0\.7", change)
    assert run_json("blame", QUESTION)["settings_of_night"] == [change]
    assert run("blame", "").exit_code == 1


STEPS = st.lists(
    st.sampled_from(["edit", "rename", "remove", "tag", "branch", "other page"]),
    min_size=2,
    max_size=5,
)


@pytest.mark.slow
@settings(max_examples=examples(2))
@example(steps=["branch", "rename"], rule=1)
@example(steps=["edit", "tag", "rename", "remove"], rule=2)
@given(steps=STEPS, rule=st.integers(1, 3))
def test_after_forgetting_no_byte_of_the_text_is_left(
    tmp_path_factory: pytest.TempPathFactory, steps: list[str], rule: int
) -> None:
    folder = tmp_path_factory.mktemp("forgotten")
    with pytest.MonkeyPatch.context() as patch:
        live_in(folder / "home", patch)
        place = Place(folder)
        place.write("port.md", "The port of the service is 8377.")
        name = "secret0.md"
        place.write(name, SECRET)
        place.publish(keep=rule)
        for number, step in enumerate(steps, 1):
            name = take_step(place, step, number, name)
            place.publish(keep=rule)
        (place.pages / name).unlink(missing_ok=True)
        run_json("forget", name, "--publish")
        assert _files_with_words(place.home) == []
        assert "8377" in run("answer", QUESTION).output


def take_step(place: Place, step: str, number: int, name: str) -> str:
    """Change the folder or the home; the name that the secret page has then."""
    page = place.pages / name
    if step == "edit":
        place.write(name, f"{FORMER} That was in the year {1800 + number}.")
    elif step == "rename" and page.exists():
        return page.rename(place.pages / f"secret{number}.md").name
    elif step == "remove":
        page.unlink(missing_ok=True)
    elif step == "tag":
        run_json("tag", f"tag-{number}")
    elif step == "branch":
        run_json("branch", f"branch-{number}")
    else:
        place.write("other.md", f"Nothing was written in the year {number}.")
    return name
