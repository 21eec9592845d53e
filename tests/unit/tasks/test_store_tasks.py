"""Tasks without a workflow server: a policy and one call, on a real store in a temporary home."""

import pytest
from prefect.states import Completed, Failed

from hades.errors import BadRows, NotProvisioned, StoreBusy
from tasks import policies
from tasks.build import STAGE_TASKS, check_store, embed_shard, provision_store
from tasks.unit import unit, without_server

waited: list[float] = []


@pytest.fixture(autouse=True)
def home(tmp_path, monkeypatch):
    monkeypatch.setenv("HADES_HOME", str(tmp_path))
    monkeypatch.delenv("HADES_STORE", raising=False)


def test_provisioning_twice_creates_once():
    assert "entities" in provision_store.fn().created
    assert provision_store.fn().created == ()
    assert check_store.fn() == []


@pytest.mark.parametrize(
    ("error", "again"),
    [
        (StoreBusy("held"), True),
        (ConnectionError("gone"), True),
        (BadRows("entities", 3, "weight must be <= 1"), False),
        (NotProvisioned("nothing there"), False),
        (TypeError("a bug"), False),
    ],
)
def test_only_what_may_pass_is_tried_again(error, again):
    assert policies.is_transient(None, None, Failed(data=error)) is again


def test_success_is_not_tried_again():
    assert policies.is_transient(None, None, Completed(data=1)) is False


@pytest.mark.parametrize("policy", [policies.NETWORK, policies.HEAVY, policies.LOCAL])
def test_every_policy_has_a_time_limit(policy):
    assert policy["timeout_seconds"] > 0


def test_tasks_carry_their_policy():
    assert (provision_store.retries, provision_store.timeout_seconds) == (3, 300)
    assert check_store.timeout_seconds == 6 * 3600


def test_every_stage_is_tried_again_for_a_busy_store_and_for_nothing_else():
    stages = [task for task in STAGE_TASKS.values() if task.timeout_seconds == 6 * 3600]
    assert {"read sources", "embed chunks", "derive edges"} <= {task.name for task in stages}
    for task in (*stages, embed_shard):
        assert task.retries == 2
        assert task.retry_condition_fn(None, None, Failed(data=StoreBusy("held")))
        assert not task.retry_condition_fn(None, None, Failed(data=OSError("disk full")))
        assert not task.retry_condition_fn(None, None, Failed(data=BadRows("entities", 3, "no")))


def test_without_a_server_the_same_errors_are_tried_again(monkeypatch):
    monkeypatch.setattr("time.sleep", waited.append)
    waited.clear()

    @unit("write rows", policies.HEAVY)
    def write_rows(error: Exception) -> None:
        raise error

    with without_server():
        with pytest.raises(OSError, match="disk full"):
            write_rows(OSError("disk full"))
        assert waited == []
        with pytest.raises(StoreBusy):
            write_rows(StoreBusy("held"))
    assert waited == policies.HEAVY["retry_delay_seconds"]
