"""Flows, deployments and the command line know the same flows, and both ways to run a night are one night."""

import inspect
import re
from pathlib import Path

import yaml

ROOT = Path(__file__).resolve().parents[2]
NOT_RUN_BY_HAND = {"alert", "local"}


def flows_there():
    return {path.stem for path in (ROOT / "flows").glob("*.py")} - {"__init__"}


def test_every_flow_is_deployed_and_can_be_run_here():
    from hades.surfaces.cli.build_commands import FLOWS

    deployed = {row["name"] for row in yaml.safe_load((ROOT / "prefect.yaml").read_text())["deployments"]}
    assert deployed == flows_there() - {"local"}
    assert set(FLOWS) == flows_there() - NOT_RUN_BY_HAND


def test_the_flow_and_the_library_run_the_same_stages_in_the_same_order():
    from flows.nightly import nightly
    from hades.stages.build_report import STAGES
    from hades.stages.run import build

    in_flow = re.findall(r'report\["(\w+)"\] = ', inspect.getsource(nightly.fn))
    in_library = re.findall(r'stage\("(\w+)"', inspect.getsource(build))
    assert tuple(name for name in in_flow if name != "contracts") == tuple(in_library) == STAGES


def test_the_contracts_after_each_stage_are_the_same():
    from flows.nightly import nightly
    from hades.stages.contracts.check_contracts import STORE_BOUNDARIES
    from hades.stages.run import AFTER_INGEST, build

    in_flow = re.findall(r'"(\w+)"', "".join(re.findall(r"check\(\[(.*?)\]\)", inspect.getsource(nightly.fn))))
    in_library = re.findall(r'gate\("(\w+)"\)', inspect.getsource(build))
    assert tuple(in_flow) == (*AFTER_INGEST, *in_library) == STORE_BOUNDARIES


def test_builds_never_overlap_and_the_schedule_is_at_night():
    rows = {row["name"]: row for row in yaml.safe_load((ROOT / "prefect.yaml").read_text())["deployments"]}
    assert all(row["concurrency_limit"] == 1 for row in rows.values() if "build" in row["tags"])
    assert rows["nightly"]["schedules"][0]["cron"] == "0 2 * * *"
