"""The ranker through its nights: trained, refused or promoted, published, rolled back and forward
again.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from hades import stage_ledger
from hades.api import Hades
from hades.night import model_versions
from hades.night.exam.stage import build_exam, path_of, read_exam
from hades.night.model_versions import CHALLENGER, CHAMPION, RANKER_MODEL, RankerError
from hades.night.ranker import stage
from hades.night.ranker.questions import Quality
from hades.night.ranker.stage import check_graph, train
from hades.night.release.publish import release, roll_back
from hades.ports.services import utc_now
from hades.retrieval.turn_result import judge
from models.ranker.infer import RankerModel, StateRules
from schemas.plan import Reason
from schemas.telemetry import JudgedRanks
from tests.unit.hades.night.release.small_graphs import MONDAY, ingested, opened
from tests.unit.models.ranker.rankers import random_model, ring

pytestmark = [pytest.mark.slow, pytest.mark.filterwarnings("ignore")]
QUICK = StateRules(hidden=8, state=4, epochs=2)
NAMES = ("timeouts", "proxies", "cookies", "redirects", "certificates", "streaming")


def link_to(place: int) -> str:
    """A link to the section on tuning of another page."""
    return f"[Tuning {NAMES[place]} level{place % len(NAMES)}]({NAMES[place]}.md)"


@pytest.fixture
def manual(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Hades]:
    """A published manual that is small enough to learn from at once."""
    monkeypatch.setattr(stage, "LEAST_QUESTIONS", 5)
    monkeypatch.setattr(stage, "LEAST_OWN", 4)
    folder = tmp_path / "docs"
    folder.mkdir()
    for place, name in enumerate(NAMES):
        before, after = place - 1, (place + 1) % len(NAMES)
        text = (
            f"# Client {name}\n\nThe client has {name} by number{place}, and people read "
            f"{link_to(before)} before support calls. Slow machines want {link_to(after)} as well "
            f"when they send {name}."
        )
        text += f"\n\n## Tuning {name} level{place}\n\n"
        (folder / f"{name}.md").write_text(
            f"{text}Set the {name} value before sending anything to slow servers.\n"
        )
    with opened(tmp_path / "home") as hades:
        hades.ingest.documents(folder)
        release(hades.build_context, MONDAY, 9)
        yield hades


def answers(hades: Hades) -> str:
    """What the default says, as bytes, without what is of this turn alone."""
    asked = (f"how are {name} set before sending?" for name in NAMES)
    told = [hades.answers.retrieve(one).model_dump(mode="json", by_alias=True) for one in asked]
    return json.dumps(
        [[one["passages"], one["paths"], one["reasons"], one["snapshot"]] for one in told]
    )


def registered(hades: Hades, model: RankerModel) -> str:
    """A model in the registry."""
    return model_versions.log_ranker(
        hades.build_context.open_tracker(), model, {}, {}, [], "made for a test", "refused"
    )


def served(hades: Hades, version: str) -> str:
    """The answers of a night that ends with this ranker."""
    model_versions.promote_ranker(
        hades.build_context.store, hades.home, hades.build_context.open_tracker(), version, MONDAY
    )
    release(hades.build_context, MONDAY, 9)
    return answers(hades)


def models(hades: Hades) -> list[RankerModel]:
    dimension = len(hades.embedder.embed(["x"])[0])
    return [random_model(hades.build_context.model, dimension, seed) for seed in (1, 2)]


def test_three_nights_back_and_forward_again_end_in_equal_answers(manual: Hades) -> None:
    context, first = manual.build_context, answers(manual)
    one, two = (registered(manual, model) for model in models(manual))
    second, third = served(manual, one), served(manual, two)
    assert len({first, second, third}) == 3
    assert str(Reason.RANKER_UNAVAILABLE) not in third
    for to, version, expected in (
        (None, one, second),
        ("none", "none", first),
        (two, two, third),
        ("0", "0", first),
    ):
        assert roll_back(context, "ranker", to).ranker_version == version
        assert answers(manual) == expected
        champion = None if version in ("none", "0") else version
        assert context.open_tracker().alias(RANKER_MODEL, CHAMPION) == champion
    note = roll_back(context, "ranker", two).note
    assert note == (
        f"the ranker of version {two}, which was refused when it was trained, serves; "
        "verdict: made for a test"
    )
    assert context.open_tracker().alias(RANKER_MODEL, CHAMPION) == two
    snapshot = json.loads(second)[0][3]
    before = json.loads(first)[0][3]
    assert roll_back(context, "graph", before).ranker_version is None
    assert context.open_tracker().alias(RANKER_MODEL, CHAMPION) is None
    went = roll_back(context, "graph", snapshot)
    assert (went.snapshot, went.ranker_version) == (snapshot, one)
    assert answers(manual) == second
    release(context, MONDAY, 9)  # the store agrees with what serves
    assert answers(manual) == second


def test_before_the_first_ranker_are_the_shipped_weights(manual: Hades) -> None:
    with pytest.raises(RankerError, match="no ranker serves"):
        roll_back(manual.build_context, "ranker", None)
    served(manual, registered(manual, models(manual)[0]))
    assert roll_back(manual.build_context, "ranker", None).ranker_version == "none"


@pytest.mark.usefixtures("with_mlflow")
def test_a_version_holds_its_exam_and_is_refused_where_it_is_not_better(manual: Hades) -> None:
    before, context = answers(manual), manual.build_context
    report = train(context, MONDAY)
    assert (report["skipped"], report["is_champion"], report["has_states"]) == (False, False, False)
    assert "questions tell nothing" in report["why"]  # too few are held out
    tracker = context.open_tracker()
    assert tracker.alias(RANKER_MODEL, CHALLENGER) == report["version"]
    assert tracker.alias(RANKER_MODEL, CHAMPION) is None
    version = tracker.versions(RANKER_MODEL)[0]
    assert version.tags["data"] == stage_ledger.digest_of(build_exam(context)["data_hash"], [])
    assert version.tags["verdict"] == report["why"]
    folder = tracker.fetch(RANKER_MODEL, report["version"]).parent
    assert {"ranker.npz", "MLmodel", "exam.parquet"} <= {one.name for one in folder.iterdir()}
    assert "nothing that a ranker learns from has changed" in train(context, MONDAY)["why"]
    release(context, MONDAY, 9)
    assert answers(manual) == before


def labelled(folder: Path) -> Path:
    """A file of people's questions, one of them about nothing that is there."""
    path = folder / "questions.jsonl"
    rows = [
        {"question": f"how do I tune {name}?", "gold": [f"{name}.md"]}
        for name in (*NAMES, "nobody")
    ]
    path.write_text("\n".join(map(json.dumps, rows)))
    return path


def test_a_rule_of_abstention_serves_without_a_better_ranking_and_is_taken_back_to_the_byte(
    manual: Hades, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    before, context = answers(manual), manual.build_context

    def verdict(ours: Quality, *given: object) -> dict[str, Any]:
        return {"is_better": "decided" in ours, "reason": "by decree", "figures": {}}

    monkeypatch.setattr(stage, "decide", verdict)
    monkeypatch.setattr(stage, "fit_margin", lambda *given: np.array([0.0, 0.0, 0.0, 0.0, -50.0]))
    report = train(context, MONDAY, labelled(tmp_path), rules=QUICK)
    assert (report["is_champion"], report["abstain"]["bias"], set(report["line"].values())) == (
        True,
        -50.0,
        {0.0},
    )
    release(context, MONDAY, 9)
    assert str(Reason.ABSTAINED) in answers(manual)
    assert roll_back(context, "ranker", "none").ranker_version == "none"
    assert answers(manual) == before


def test_labelled_questions_fit_states_and_a_better_ranker_serves(
    manual: Hades, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path, before = labelled(tmp_path), answers(manual)
    monkeypatch.setattr(
        stage, "fit_line", lambda choices, width: np.array([3.0, -3.0, 0.0, 0.0, 5.0])
    )
    verdict = {"is_better": True, "reason": "better than the shipped weights", "figures": {}}
    monkeypatch.setattr(stage, "decide", lambda *given: verdict)

    def trained() -> dict[str, Any]:
        return train(manual.build_context, MONDAY, path, rules=QUICK)

    report = trained()
    assert (report["has_states"], report["is_champion"]) == (True, True)
    release(manual.build_context, MONDAY, 9)
    learned = answers(manual)
    assert learned != before
    assert str(Reason.RANKER_UNAVAILABLE) not in learned
    stage_ledger.forget(manual.build_context.store, stage.LEDGER_KEY)
    again = trained()
    assert (again["version"], again["data_hash"]) == (
        report["version"],
        report["data_hash"],
    )  # same data, same weights


def test_a_night_without_questions_or_time_trains_nothing(tmp_path: Path) -> None:
    with ingested(tmp_path) as hades:
        assert "nothing is published" in train(hades.build_context, MONDAY)["why"]
        release(hades.build_context, MONDAY, 3)
        assert "60 are needed" in train(hades.build_context, MONDAY)["why"]
        assert "too few to train" in train(hades.build_context, MONDAY, seconds_left=10.0)["why"]
        answer = hades.retrieve("who worked with Ada Lovelace?")
        judge(hades.store, answer.query_id, good=JudgedRanks(passages=(1,)), at=utc_now())
        assert build_exam(hades.build_context)["kinds"]["judged"] == 1


def test_quotations_and_what_has_no_answer_do_not_count_as_known(
    manual: Hades, monkeypatch: pytest.MonkeyPatch
) -> None:
    exam = build_exam(manual.build_context)
    assert exam["unanswerable"]
    assert exam["kinds"]["heading"]
    monkeypatch.setattr(stage, "LEAST_QUESTIONS", exam["questions"])
    monkeypatch.setattr(
        stage, "record_turns", lambda *given: pytest.fail("asked, though too few are known")
    )
    known = [one for one in read_exam(manual.home) if one.is_answerable and one.kind == "link"]
    assert f"{len(known)} questions are known" in train(manual.build_context, MONDAY)["why"]


def test_a_build_that_somebody_waits_for_learns_nothing_and_reads_its_folder_once(
    tmp_path: Path,
) -> None:
    (tmp_path / "docs").mkdir()
    (tmp_path / "docs" / "a.md").write_text("# Title\n\nA body of words.\n")
    with opened(tmp_path / "home") as hades:
        hades.refresh_folder(tmp_path / "docs", "documents")
        assert not path_of(hades.home).exists()
        (page,) = (hades.home / "reports").glob("nightly-*.json")
        assert json.loads(page.read_text())["log"]["sources"] == "nothing to read"
        assert hades.build_context.open_tracker().versions(RANKER_MODEL) == []


def test_states_are_not_fitted_to_a_graph_that_breaks_its_contract() -> None:
    graph = ring(4, 3)
    assert check_graph(graph).is_green
    graph.features[1, 1] = np.nan
    empty = replace(
        graph, features=graph.features[:0], starts=graph.starts[:1], targets=graph.targets[:0]
    )
    broken = [check_graph(one).findings[0].rule for one in (graph, empty)]
    assert broken == ["ranker.features_finite", "ranker.some_nodes"]
