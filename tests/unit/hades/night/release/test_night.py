"""A whole night on a small graph: built, checked, published, repeated, rolled back."""

import json
from dataclasses import replace
from datetime import UTC, datetime
from math import log
from pathlib import Path
from statistics import median

import mlflow.data
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from mlflow import MlflowClient
from mlflow.models import get_model_info

from hades import stage_ledger
from hades.errors import ContractBroken, SnapshotError
from hades.night.bridges.stage import bridge
from hades.night.context import NotBuilt
from hades.night.contracts.check import check_contracts
from hades.night.forecast import forecast_build
from hades.night.model_versions import RankerError
from hades.night.release.publish import MODELS, append_alert, release, roll_back
from hades.night.report import last_runs, summary_lines
from hades.night.stage import begin
from hades.night.stages import NIGHT, STAGE_NAMES, STAGES, STORE_CONTRACTS, run_night
from hades.night.standing import add_standing
from hades.night.topics.stage import build_topics
from hades.night.weights.stage import weigh
from hades.settings.tree import HiragPathrag
from hades.snapshot import manifest
from hades.snapshot.open import open_snapshot
from hades.snapshot.pointer import read, root_of
from tests import installation
from tests.unit.hades.night.release.small_graphs import MONDAY, ingested, opened, write_pages

pytestmark = pytest.mark.slow
PARENT = "mlflow.parentRunId"
UNHURRIED = {"profile": "evaluation"}
QUESTIONS = [
    f"where did {name} meet {place}?"
    for name in ("Ada Lovelace", "Grace Hopper", "Kurt Goedel", "Alan Turing")
    for place in ("London", "Vienna", "New York", "Manchester", "the engine")
]


@pytest.fixture(scope="module")
def built(tmp_path_factory):
    """Two nights: the second after a page changed. What each said, and the top answers in
    between.
    """
    folder = tmp_path_factory.mktemp("nights")
    with ingested(folder) as hades:
        with installation.whole_installation():
            first = hades.build(as_of=MONDAY)
        with installation.mlflow_registry():
            answers = top_ten(hades)
            add_standing(
                hades.store, [(f"What happened on Page {page}?", "") for page in (3, 4)], MONDAY
            )
            (folder / "pages" / "page3.md").write_text(
                "# Page 3\n\nAda Lovelace met Kurt Goedel in Vienna.\n"
            )
            second = hades.build(as_of=MONDAY)
        yield folder, hades, first, second, answers


@pytest.fixture
def nights(built, with_mlflow):
    return built


def top_ten(hades):
    """The answers to twenty questions as bytes, without what is of this turn alone."""
    told = []
    for question in QUESTIONS:  # no turn ends by the clock: under load it would be another answer
        answer = hades.answers.retrieve(question, recipe="hipporag", plan=UNHURRIED).model_dump(
            mode="json"
        )
        assert "timeout" not in answer["reasons"]
        told.append([answer["passages"][:10], answer["paths"][:10], answer["hierarchy"]])
    return json.dumps(told, sort_keys=True)


def test_a_night_runs_every_stage_and_its_contracts_hold(nights):
    _, _, first, second, _ = nights
    contracts = [one["contract"] for outcome in first["contracts"] for one in outcome["contracts"]]
    assert contracts == [name for stage in NIGHT for name in stage.contracts]
    assert set(STORE_CONTRACTS) <= set(contracts)
    assert {one["engine"] for outcome in first["contracts"] for one in outcome["contracts"]} == {
        "great_expectations"
    }
    body = json.loads(Path(first["report"]).with_suffix(".json").read_text())
    assert [(one["contract"], one["broken"]) for one in body["contracts"]] == [
        (name, []) for name in contracts
    ]
    assert first["topics"]["mode"] == "full"
    assert second["topics"]["mode"] != "skipped"
    assert second["sources"]["sources"][0]["documents"]["changed"] == 1
    assert first["released"]["snapshot"] != second["released"]["snapshot"]


def test_mlflow_shows_every_night_with_its_times_figures_files_and_versions(nights):
    _, hades, first, second, _ = nights
    client = MlflowClient(f"sqlite:///{hades.home.resolve() / 'mlflow.db'}")
    (experiment,) = (one for one in client.search_experiments() if one.name == "hades-nightly")
    every = sorted(
        client.search_runs([experiment.experiment_id]), key=lambda run: run.info.start_time
    )
    runs = [run for run in every if PARENT not in run.data.tags]
    for run, report in zip(runs, (first, second), strict=True):
        parts = {
            one.info.run_name: one for one in every if one.data.tags.get(PARENT) == run.info.run_id
        }
        assert set(parts) == set(STAGE_NAMES)
        for name, part in parts.items():
            assert (
                run.info.start_time
                <= part.info.start_time
                <= part.info.end_time
                <= run.info.end_time
            )
            assert part.info.end_time - part.info.start_time == pytest.approx(
                1000 * report[name]["took"], abs=2
            )
            assert part.data.metrics["took"] == report[name]["took"]
            assert {one.dataset.name for one in part.inputs.dataset_inputs} == set(
                STAGES[name].reads
            )
        assert parts["sources"].data.metrics["documents.read"] == 24
        assert set(parts["embeddings"].data.metrics) == {"embedded", "memory", "took"}
        assert all(
            name == "took" or name.startswith("derived.") for name in parts["edges"].data.metrics
        )
        (corpus,) = (one.dataset for one in run.inputs.dataset_inputs)
        assert (corpus.name, json.loads(corpus.profile)["num_rows"]) == ("documents", 24)
        assert mlflow.data.get_source(corpus).uri.endswith("pages")
        assert run.info.status == "FINISHED"
        began = datetime.fromtimestamp(run.info.start_time / 1000, UTC)
        assert run.info.run_name == Path(report["report"]).stem
        assert run.info.run_name.startswith(f"nightly-{began:%Y%m%dT%H%M%S}")
        spent = sum(report[name]["took"] for name in STAGE_NAMES)
        assert run.info.end_time - run.info.start_time >= 1000 * spent - len(STAGE_NAMES)
        assert (
            run.data.metrics["weights.changed.relations"]
            == report["weights"]["changed"]["relations"]
        )
        assert run.data.params["snapshot"] == report["released"]["snapshot"]
        assert {one.path for one in client.list_artifacts(run.info.run_id)} >= {
            Path(report["report"]).name
        }
        version = client.get_model_version("hades-weights", report["released"]["weights_version"])
        weights = client.get_run(version.run_id)
        assert weights.data.tags[PARENT] == run.info.run_id
        assert (
            weights.data.metrics["changed.relations"]
            == report["weights"]["changed"]["relations"]
            > 0
        )
        assert weights.data.metrics["seconds"] == report["weights"]["seconds"] > 0
    assert client.get_model_version_by_alias("hades-weights", "champion").version == version.version
    standing = second["released"]["standing"]
    assert run.data.metrics["released.standing.asked"] == standing["asked"] == 2
    assert run.data.metrics["released.standing.changed"] == standing["changed"]
    assert (
        json.loads(Path(second["report"]).with_suffix(".json").read_text())["standing"] == standing
    )


def test_mlflow_names_what_serves_and_what_it_was_made_of(nights):
    _, hades, first, second, _ = nights
    uri = f"sqlite:///{hades.home.resolve() / 'mlflow.db'}"
    client = MlflowClient(uri, uri)
    for model in MODELS:
        served = client.get_model_version_by_alias(model, "champion")
        assert served.tags["snapshot"] == second["released"]["snapshot"]
        assert str(served.version) == (
            "1" if model == "hades-exam" else "2"
        )  # both nights wrote the same exam
        run = client.get_run(served.run_id)
        assert run.data.tags[PARENT]
        assert len(run.inputs.dataset_inputs) >= 3
        first_version = client.get_model_version(model, "1")
        assert f"snapshot.{first['released']['snapshot']}" in first_version.tags
    mlflow.set_tracking_uri(uri)
    signature = get_model_info("models:/hades-hierarchy@champion").signature
    assert signature.inputs.input_names() == ["centroid"]
    assert {"_key", "name", "size"} <= set(signature.outputs.input_names())
    topics = pq.read_table(hades.build_context.open_tracker().fetch("hades-hierarchy", "2"))
    assert topics.num_rows == second["topics"]["topics"] + second["topics"]["supertopics"]


def test_rolling_back_answers_every_question_byte_for_byte_as_before(nights):
    _, hades, first, second, answers = nights
    assert top_ten(hades) != answers
    weights = hades.store.get("relations", keys_of(hades)).select(["_key", "weight"])
    went = roll_back(hades.build_context, "graph", None)
    assert went.snapshot == first["released"]["snapshot"]
    assert went.weights_version == first["released"]["weights_version"]
    tracker = hades.build_context.open_tracker()
    assert [tracker.alias(model, "champion") for model in MODELS] == ["1"] * len(MODELS)
    assert top_ten(hades) == answers
    assert went.bridges is not None
    assert "bridges were built again" in went.note
    assert check_contracts(hades.build_context, STORE_CONTRACTS).broken_rules == []
    forward = roll_back(hades.build_context, "graph", second["released"]["snapshot"])
    assert forward.snapshot == second["released"]["snapshot"]
    assert hades.store.get("relations", keys_of(hades)).select(["_key", "weight"]).equals(weights)


def keys_of(hades):
    return [
        key
        for batch in hades.store.scan("relations", columns=["_key"])
        for key in batch["_key"].to_pylist()
    ]


def test_weights_alone_can_go_back(nights):
    _, hades, first, _, _ = nights
    went = roll_back(hades.build_context, "weights", first["released"]["weights_version"])
    assert went.weighed > 0  # the second night brought edges that the first did not know
    tracker = hades.build_context.open_tracker()
    assert tracker.alias("hades-weights", "champion") == went.weights_version
    assert check_contracts(hades.build_context, STORE_CONTRACTS).broken_rules == []
    served = tracker.known("hades-weights", went.weights_version)
    assert served.tags["restored_from"] == first["released"]["weights_version"]
    assert read(root_of(hades.home)).snapshot == went.snapshot
    with pytest.raises(RankerError, match="no ranker serves"):
        roll_back(hades.build_context, "ranker", None)


def test_the_same_corpus_in_another_home_gives_the_same_manifest(tmp_path, built):
    _, _, first, _, _ = built
    with ingested(tmp_path) as other:
        assert other.build(as_of=MONDAY)["released"]["manifest"] == first["released"]["manifest"]
        again = other.build(as_of=MONDAY)
    assert again["released"]["manifest"] == first["released"]["manifest"]
    assert again["released"]["is_new"] is False
    assert again["topics"]["mode"] == "skipped"
    assert again["weights"]["skipped"] is True
    assert again["bridges"]["skipped"] is True
    assert (again["bridges"]["labels_changed"], again["topics"]["moved"]) == (0, 0)
    assert again["weights"]["changed"]["relations"] == 0


def test_a_night_that_stopped_goes_on_from_its_last_good_stage(tmp_path):
    with ingested(tmp_path) as hades:
        build_topics(hades.build_context, MONDAY)
        weigh(hades.build_context, MONDAY)
    with opened(tmp_path / "home") as hades:
        report = hades.build(as_of=MONDAY)
    assert report["topics"]["mode"] == "skipped"
    assert report["weights"]["skipped"] is True
    assert report["bridges"]["skipped"] is False


def test_a_snapshot_of_another_format_is_replaced_by_the_next_night(tmp_path, monkeypatch):
    with ingested(tmp_path) as hades:
        add_standing(hades.store, [("Who worked with Charles Babbage?", "")], MONDAY)
        hades.build(as_of=MONDAY)
        monkeypatch.setattr(manifest, "FORMAT", manifest.FORMAT + 1)  # HADES was upgraded
        with pytest.raises(SnapshotError, match=r"run `hades build`"):
            open_snapshot(hades.home)
        after = hades.build(as_of=MONDAY)["released"]["snapshot"]
        assert open_snapshot(hades.home).info.snapshot == after


def test_a_broken_row_stops_the_release_and_what_served_still_serves(tmp_path):
    with ingested(tmp_path) as hades:
        before = hades.build(as_of=MONDAY)["released"]["snapshot"]
        hades.store.patch(
            "relations", pa.table({"_key": keys_of(hades)[:1], "weight": [0.987654], "cost": [0.5]})
        )
        with pytest.raises(ContractBroken, match=r"weights\."):
            hades.build(as_of=MONDAY)
        assert read(root_of(hades.home)).snapshot == before
        outcome = check_contracts(hades.build_context, ["weights"])
        assert outcome.broken_rules
        assert outcome.page.read_text().count(keys_of(hades)[0]) >= 1


def test_later_stages_are_told_which_rules_a_person_accepted():
    told = {}

    def run(stage, night):
        told[stage.name] = night.accepted
        return {}

    def check(names):
        broken = [{"rule": "weights.cost_given"}] if "weights" in names else []
        return {"contracts": [{"findings": broken}]}

    run_night(begin(MONDAY), run, check, lambda report, error: None)
    assert (told["weights"], told["released"]) == ((), ("weights.cost_given",))


def test_weights_take_the_floor_of_the_settings(tmp_path):
    with ingested(tmp_path) as hades:
        largest = []
        for section in ({}, {"eps": 0.6}):
            context = replace(
                hades.build_context, path=HiragPathrag.model_validate({"path": section}).path
            )
            weigh(context, MONDAY)
            costs = [
                row["cost"] for batch in hades.store.scan("relations") for row in batch.to_pylist()
            ]
            largest.append(max(costs))
    assert largest[0] > largest[1] == pytest.approx(-log(0.6))


def test_stages_say_what_they_need(tmp_path):
    with opened(tmp_path / "home") as hades:
        with pytest.raises(NotBuilt, match="hades ingest"):
            build_topics(hades.build_context, MONDAY)
        hades.ingest.documents(write_pages(tmp_path / "pages", 3))
        with pytest.raises(NotBuilt, match="hierarchy has not completed"):
            bridge(hades.build_context, MONDAY)


def test_retention_keeps_what_serves_and_its_weights(tmp_path):
    with ingested(tmp_path) as hades:
        names = []
        for number in range(3):
            (tmp_path / "pages" / f"new{number}.md").write_text(
                f"# New {number}\n\nGrace Hopper met Ada Lovelace.\n"
            )
            names.append(hades.build(as_of=MONDAY, keep=2)["released"])
        assert names[-1]["removed"] == [names[0]["snapshot"]]
        tracker = hades.build_context.open_tracker()
        versions = [one.version for one in tracker.versions("hades-weights")]
        assert names[0]["weights_version"] not in versions
        assert tracker.alias("hades-weights", "champion") == names[-1]["weights_version"]


def test_reports_tell_people_and_status_what_happened(nights):
    _, hades, first, second, _ = nights
    assert first["topics"]["biggest"][0]["name"] in Path(first["report"]).read_text()
    assert any(line.startswith("topics") for line in summary_lines(first))
    runs = last_runs(hades.home)
    assert runs[0]["snapshot"] == second["released"]["snapshot"]
    assert runs[0]["seconds"]["weights"] == second["weights"]["took"]
    found = forecast_build(hades.store, hades.home)
    assert found["chunks_to_embed"] == 0
    assert found["stages"]["contracts"] == round(
        median(run["seconds"]["contracts"] for run in runs), 1
    )


def test_release_without_weights_publishes_and_registers_nothing(tmp_path):
    with ingested(tmp_path) as hades:
        assert stage_ledger.last_completion(hades.store, stage_ledger.WEIGHTS) is None
        assert release(hades.build_context, MONDAY, None)["weights_version"] is None


def test_alerts_are_lines_of_json(tmp_path):
    append_alert(tmp_path, MONDAY, "contract broken", "weights.sum", "page")
    path = append_alert(tmp_path, MONDAY, "nightly late", "", "")
    assert [json.loads(line)["what"] for line in path.read_text().splitlines()] == [
        "contract broken",
        "nightly late",
    ]
