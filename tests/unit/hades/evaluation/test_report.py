"""The pages that show figures show those that are kept, and nothing else of a page is touched."""

import json
from pathlib import Path

import pytest

from benchmarks import eval_report

ROOT = Path(__file__).resolve().parents[4]

ROW = {
    "recall": {"5": 0.5, "10": 0.75},
    "all_gold": {"5": 0.25, "10": 0.5},
    "ci95": {"recall@5": [0.4, 0.6]},
    "mrr": 0.5,
    "ndcg": {"10": 0.5},
    "reads": {"mean": 20.0, "max": 20},
    "tokens": {"mean": 1000.0},
    "ms": {"p50": 2.0, "p95": 3.0},
}
AGAINST = {"baseline": "fusion", "recall@5": 0.1, "ci95": [0.05, 0.15], "p": 0.0001}


def test_figures_stand_between_the_markers(tmp_path, monkeypatch):
    better = {**ROW, "recall": {"5": 0.6, "10": 0.9}, "against": AGAINST}
    document = {
        "dataset": {"passages": 1000, "questions": 20, "sha256": "ab" * 32},
        "build": {"seconds": 1.0, "peak_mb": 300.0, "embedded": 20},
        "snapshot": "g1",
        "compared_at": 5,
        "recipes": {"bm25": ROW, "dense": ROW, "fusion": ROW, "hipporag": better},
    }
    (tmp_path / "eval_tiny.json").write_text(json.dumps(document), "utf-8")
    monkeypatch.setattr(eval_report, "RESULTS", tmp_path)
    page = "before\n<!-- eval:short -->\nstale\n<!-- eval:end -->\nafter\n"
    filled = eval_report.filled(page)
    assert filled.startswith("before\n")
    assert filled.endswith("after\n")
    assert "stale" not in filled
    assert "| tiny R@5 | bm25 50.0 | hipporag 60.0 | 25.0 | +10.0 [5.0, 15.0] | < 0.001 |" in filled
    assert eval_report.filled(filled) == filled
    assert "| hipporag | 60.0 | 90.0 | 40.0 to 60.0 |" in eval_report.filled(page.replace("short", "full"))


def test_sets_of_memory_are_shown_by_kind_of_question_and_by_half(tmp_path, monkeypatch):
    row = {**ROW, "groups": {"temporal": {"questions": 20, "recall@5": 0.7}}}
    halves = {
        half: {"questions": 10, "recall": {"bm25": {"5": share}}}
        for half, share in (("fitted", 0.4), ("held out", 0.6))
    }
    document = {
        "dataset": {"passages": 1000, "questions": 20, "sha256": "ab" * 32},
        "build": {"seconds": 1.0, "peak_mb": 300.0, "embedded": 20},
        "snapshot": "g1",
        "compared_at": 5,
        "recipes": {"bm25": row},
        "splits": halves,
    }
    (tmp_path / "eval_talks.json").write_text(json.dumps(document), "utf-8")
    monkeypatch.setattr(eval_report, "RESULTS", tmp_path)
    filled = eval_report.filled("<!-- eval:memory -->\n<!-- eval:end -->\n")
    assert "| R@5 | temporal (20) | fitted half (10) | held out half (10) |" in filled
    assert "| bm25 | 70.0 | 40.0 | 60.0 |" in filled


@pytest.mark.parametrize("name", ["docs/evaluation.md", "docs/memory_evaluation.md", "README.md"])
def test_pages_are_up_to_date(name):
    text = (ROOT / name).read_text("utf-8")
    assert eval_report.filled(text) == text, "run `python benchmarks/eval_report.py`"


def test_the_ladder_has_a_row_for_each_rung_and_a_column_for_each_set(tmp_path, monkeypatch):
    def row(recall, paths=None):
        interval = {"recall@5": [recall - 0.1, recall + 0.1]}
        return {"recall": {"5": recall}, "all_gold": {"5": 0.5}, "ci95": interval, "path_recall": paths}

    for name, rungs in (("one", {"auto": row(0.8, 0.9)}), ("two", {"auto": row(0.7), "pathrag": row(0.6)})):
        body = {"compared_at": 5, "dataset": {"questions": 150}, "recipes": rungs}
        (tmp_path / f"ladder_{name}.json").write_text(json.dumps(body), "utf-8")
    monkeypatch.setattr(eval_report, "RESULTS", tmp_path)
    filled = eval_report.filled("<!-- eval:ladder -->\n<!-- eval:end -->")
    assert "| rung | one (150 questions) | two (150 questions) |" in filled
    assert "| auto | 80.0 [70.0, 90.0] / 50.0, paths 90.0 | 70.0 [60.0, 80.0] / 50.0 |" in filled
    assert "| pathrag |  | 60.0 [50.0, 70.0] / 50.0 |" in filled
