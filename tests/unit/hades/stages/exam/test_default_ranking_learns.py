"""The default ranking learned from the exam: registered with it, gated, published, and rolled back to the byte."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from hades.api import Hades
from hades.build.exam.stage import build_exam
from hades.build.ranker import default
from hades.build.ranker.questions import Verdict
from hades.build.ranker.stage import train
from hades.build.registry import CHALLENGER, CHAMPION, RANKER_MODEL
from hades.build.release.publish import release, roll_back
from tests.unit.hades.stages.release.small_graphs import MONDAY, opened

QUESTIONS = [f"how are {name} set before sending?" for name in ("timeouts", "proxies", "cookies", "redirects")]


@pytest.fixture
def manual(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(default, "LEAST_QUESTIONS", 5)
    folder = tmp_path / "docs"
    folder.mkdir()
    for place, name in enumerate(("timeouts", "proxies", "cookies", "redirects", "certificates", "streaming")):
        text = f"# Client {name}\n\nThe client has {name} by number{place}.\n\n## Tuning {name} level{place}\n\n"
        (folder / f"{name}.md").write_text(f"{text}Set the {name} value before sending anything to slow servers.\n")
    with opened(tmp_path / "home") as hades:
        hades.ingest.documents(folder)
        release(hades.build_context, MONDAY, 9)
        yield hades


def answers(hades: Hades) -> str:
    """What the default says, as bytes."""
    told = [hades.answers.retrieve(one).model_dump(mode="json", by_alias=True) for one in QUESTIONS]
    return json.dumps([[one["passages"], one["paths"], one["reasons"], one["snapshot"]] for one in told])


def test_a_version_holds_its_exam_and_is_refused_where_it_is_not_better(manual: Hades):
    before = answers(manual)
    report = train(manual.build_context, MONDAY)
    assert (report["skipped"], report["is_champion"]) == (False, False)
    assert "questions tell nothing" in report["why"]  # too few are held out
    tracker = manual.build_context.open_tracker()
    assert tracker.alias(RANKER_MODEL, CHALLENGER) == report["version"]
    assert tracker.alias(RANKER_MODEL, CHAMPION) is None
    version = tracker.versions(RANKER_MODEL)[0]
    assert version.tags["data"] == build_exam(manual.build_context)["data_hash"]
    folder = tracker.fetch(RANKER_MODEL, report["version"]).parent
    assert {"ranker.npz", "MLmodel", "exam.parquet"} <= {one.name for one in folder.iterdir()}
    assert "the exam has not changed" in train(manual.build_context, MONDAY)["why"]
    release(manual.build_context, MONDAY, 9)
    assert answers(manual) == before


def test_a_better_line_serves_and_rolling_back_gives_the_same_bytes(manual: Hades, monkeypatch: pytest.MonkeyPatch):
    shipped = answers(manual)
    served = []
    for place, line in enumerate(([3.0, -3.0, 0.0, 0.0], [-4.0, 4.0, 0.0, 1.0])):
        monkeypatch.setattr(default, "fit_line", lambda choices, width, line=line: np.array(line))
        monkeypatch.setattr(default, "decide", lambda *given: Verdict(True, "better than what serves", {}))
        monkeypatch.setattr(default, "STAGE", f"default_training_{place}")  # as if the exam had changed
        assert train(manual.build_context, MONDAY)["is_champion"]
        release(manual.build_context, MONDAY, 9)
        served.append(answers(manual))
    assert len({shipped, *served}) == 3
    assert "ranker_unavailable" not in served[1]
    assert roll_back(manual.build_context, "ranker", None).ranker_version == "1"
    assert answers(manual) == served[0]
    assert roll_back(manual.build_context, "ranker", None).ranker_version == "none"
    assert answers(manual) == shipped
    assert roll_back(manual.build_context, "ranker", "2").ranker_version == "2"
    assert answers(manual) == served[1]
    assert roll_back(manual.build_context, "ranker", "0").note == "questions are judged by hand"
    assert answers(manual) == shipped


def test_a_build_that_somebody_waits_for_learns_nothing(tmp_path: Path):
    (tmp_path / "docs").mkdir()
    (tmp_path / "docs" / "a.md").write_text("# Title\n\nA body of words.\n")
    with opened(tmp_path / "home") as hades:
        hades.refresh_folder(tmp_path / "docs", "documents")
        assert hades.build_context.open_tracker().versions(RANKER_MODEL) == []
