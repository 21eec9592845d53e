"""Flows, deployments and the command line know the same flows, and every part of a night reads one
list of stages.
"""

import inspect
from pathlib import Path

import yaml

ROOT = Path(__file__).resolve().parents[2]
NOT_RUN_BY_HAND = {"alert", "local"}


def flows_there():
    return {path.stem for path in (ROOT / "flows").glob("*.py")} - {"__init__"}


def test_every_flow_is_deployed_and_can_be_run_here():
    from hades.surfaces.cli.build import FLOWS

    deployed = {
        row["name"] for row in yaml.safe_load((ROOT / "prefect.yaml").read_text())["deployments"]
    }
    assert deployed == flows_there() - {"local"}
    assert set(FLOWS) == flows_there() - NOT_RUN_BY_HAND


def test_the_flow_has_a_task_for_each_stage_of_the_night():
    from flows.nightly import RUNS
    from hades.night.stages import STAGE_NAMES

    assert tuple(RUNS) == STAGE_NAMES


def test_the_flow_takes_the_parameters_that_a_night_without_a_server_takes():
    from flows.nightly import nightly
    from hades.night.stage import begin

    ours, theirs = inspect.signature(begin).parameters, nightly.parameters.properties
    assert {name: one.default for name, one in ours.items()} == {
        name: one.get("default") for name, one in theirs.items()
    }


def test_a_stage_needs_only_stages_before_it():
    from hades.night.stages import NIGHT

    before: set[str] = set()
    for stage in NIGHT:
        assert set(stage.needs) <= before
        before.add(stage.name)


def test_a_night_checks_each_store_contract_once_and_the_snapshot_when_it_is_published():
    from hades.night.contracts.check import CONTRACT_NAMES
    from hades.night.stages import STORE_CONTRACTS

    assert (*STORE_CONTRACTS, "snapshot") == CONTRACT_NAMES


def test_every_stage_with_a_record_in_the_store_is_a_part_of_the_snapshot():
    from hades.night.stages import NIGHT
    from hades.snapshot.manifest import PARTS

    assert {stage.ledger for stage in NIGHT if stage.ledger} <= set(PARTS)


def test_builds_never_overlap_and_the_schedule_is_at_night():
    rows = {
        row["name"]: row
        for row in yaml.safe_load((ROOT / "prefect.yaml").read_text())["deployments"]
    }
    assert all(row["concurrency_limit"] == 1 for row in rows.values() if "build" in row["tags"])
    assert rows["nightly"]["schedules"][0]["cron"] == "0 2 * * *"
