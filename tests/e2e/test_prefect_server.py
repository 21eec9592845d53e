"""What runs on a Prefect server: the nightly build as a team deploys it, single flows, and delayed
questions.
"""

import json
import queue
import re
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import Any

import pyarrow as pa
import pytest
import yaml

from hades.night.stages import NIGHT
from hades.snapshot.pointer import served
from hades.wiring import hold_build, open_hades
from tests.chat_endpoint import chat_endpoint
from tests.e2e.prefect_site import ROOT, deploy, running_server
from tests.homes import live_in, settings_of
from tests.loopback import answering
from tests.patience import HANG_SECONDS, wait_until

pytestmark = [pytest.mark.integration, pytest.mark.slow]

WORKER = (
    "from prefect.task_worker import serve; from tasks.retrieval import DELAYABLE; "
    "serve(*DELAYABLE)"
)
ASKER = f"""
import json, sys
from tasks.retrieval import retrieve_paths
from tasks.unit import wait_for
for question in sys.stdin:
    future = retrieve_paths.delay(question.strip())
    answer = wait_for(future, {HANG_SECONDS})
    print(json.dumps([future.state.name, answer]), flush=True)
"""
PAST = datetime(2026, 1, 5, tzinfo=UTC)
PAGES = {
    "ada.md": "# Ada Lovelace\n\nAda Lovelace worked with Charles Babbage in London on the "
    "Analytical Engine.\n",
    "charles.md": "# Charles Babbage\n\nCharles Babbage designed the Analytical Engine and the "
    "Difference Engine.\n",
    "engine.md": "# Analytical Engine\n\nThe Analytical Engine was never built. Ada Lovelace wrote "
    "programs for it.\n",
    "grace.md": "# Grace Hopper\n\nGrace Hopper admired Ada Lovelace and built the first compiler "
    "in New York.\n",
}


@pytest.fixture(scope="module")
def server(tmp_path_factory, programs):
    """The server, and a way to start processes beside it."""
    from prefect.events.worker import EventsWorker
    from prefect.logging.handlers import APILogWorker

    with running_server(tmp_path_factory.mktemp("server"), programs) as running:
        yield running
        for worker in (
            APILogWorker,
            EventsWorker,
        ):  # at its end this process would seek a server that is gone
            worker.drain_all(timeout=HANG_SECONDS)


@pytest.fixture(scope="module")
def site(server, tmp_path_factory):
    """A work pool with a worker, and the deployments."""
    running, start = server
    pages = tmp_path_factory.mktemp("pages")
    for name, text in PAGES.items():
        (pages / name).write_text(text)
    running.pages = pages
    deploy(running, start)
    return running


@pytest.fixture
def prefect_server(server):
    """Flows that a test calls report to the server."""
    from prefect.settings import PREFECT_API_URL, temporary_settings

    running, _ = server
    with temporary_settings(updates={PREFECT_API_URL: running.environment["PREFECT_API_URL"]}):
        yield


@pytest.fixture
def ask(server, tmp_path):
    """Hands a question over from another process and waits for what becomes of it."""
    publish(
        tmp_path,
        "page.md",
        "# Rivers\n\nThe Rhine flows from Basel to the North Sea. Basel lies on the Rhine.\n",
    )
    site, start = server
    environment = site.environment | {"HADES_HOME": str(tmp_path / "home")}
    start(["python", "-c", WORKER], environment)
    command = [sys.executable, "-c", ASKER]
    pipes: dict[str, Any] = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
    with subprocess.Popen(command, cwd=ROOT, env=environment, **pipes) as asker:

        def asked(question: str) -> list[Any]:
            print(question, file=asker.stdin, flush=True)
            return json.loads(asker.stdout.readline())

        yield asked
        asker.stdin.close()


@pytest.fixture(scope="module")
def night(site):
    """The first night of the deployment."""
    sources = [{"source": "documents", "path": str(site.pages)}]
    run = site.wait_for(site.trigger("nightly", {"sources": sources}))
    assert run["state_type"] == "COMPLETED", site.logs(run["id"])
    return run


def test_the_nightly_deployment_builds_publishes_and_leaves_one_page(site, night):
    assert (site.home / "snapshots" / "current").is_file()
    (page,) = [one for one in site.artifacts_of(night["id"]) if one["type"] == "markdown"]
    tables = [one["key"] for one in site.artifacts_of(night["id"]) if one["type"] == "table"]
    assert page["key"] == "nightly"
    assert tables == []
    assert f"| snapshot after | `{served(site.home)}` |" in page["data"]
    assert f"| documents | {len(PAGES)} | 0 | 0 |" in page["data"]
    (report,) = (site.home / "reports").glob("nightly-*.html")
    assert report.as_uri() in page["data"]


def test_a_run_is_called_by_its_day_and_graph_and_can_be_filtered_by_tag(site, night):
    day = datetime.now(UTC)
    names = {
        f"nightly {day - timedelta(days=back):%Y-%m-%d} of {site.home.name}" for back in (0, 1)
    }
    assert night["name"] in names
    tag = f"graph:{site.home.name}"
    assert {"hades", "build", tag} <= set(night["tags"])
    runs = {run["name"]: run for run in site.task_runs(night["id"])}
    assert {"stage:topics", tag} <= set(runs["build topics"]["tags"])
    assert all(tag in run["tags"] for run in runs.values())


def test_a_task_is_named_in_words_and_each_stage_has_a_key_of_its_own(site, night):
    runs = site.task_runs(night["id"])
    names = {run["name"] for run in runs}
    assert {stage.title for stage in NIGHT} - names == {"embed chunks"}  # a flow of shards
    assert {"check nodes and chunks", "check embeddings of doc chunks"} <= names
    assert not [name for name in names if "(" in name or "_" in name]
    keys = {run["task_key"] for run in runs if run["name"] in {stage.title for stage in NIGHT}}
    assert len(keys) == len(NIGHT) - 1


def test_the_log_of_a_run_says_when_each_stage_starts_and_what_it_did(site, night):
    last_line = f"{served(site.home)} serves, nothing did before"
    wait_until(lambda: last_line in site.logs(night["id"]))  # a server stores lines after the run
    log = site.logs(night["id"])
    for stage in NIGHT:
        assert f"{stage.title}: started" in log
    assert f"read sources: {len(PAGES)} new, 0 changed (" in log
    assert f"embed chunks: {len(PAGES)} chunks embedded (" in log
    assert re.search(r"check nodes and chunks: (\d+) of \1 rules hold", log)


def test_a_night_that_fails_says_at_which_stage_and_why(site, night):
    run = site.wait_for(site.trigger("nightly", {"sources": [not_a_file(site)]}))
    assert run["state_type"] == "FAILED"
    wait_until(lambda: ": failed in 'read sources'" in site.logs(run["id"]))
    (page,) = [one for one in site.artifacts_of(run["id"]) if one["type"] == "markdown"]
    assert page["data"].startswith("## Failed in 'read sources'")
    assert str(site.pages) in page["data"]
    _wait_for_alert(site, "nightly failed")


def test_schedules_limits_and_automations_come_with_the_deployments(site):
    deployment = site.api.get("/deployments/name/nightly/nightly").json()
    assert [schedule["schedule"]["cron"] for schedule in deployment["schedules"]] == ["0 2 * * *"]
    assert (
        deployment["concurrency_limit"] == 1 or deployment["global_concurrency_limit"]["limit"] == 1
    )
    assert deployment["parameter_openapi_schema"]["properties"]["time_box_minutes"]["description"]
    automations = site.api.post("/automations/filter", json={}).raise_for_status().json()
    names = {automation["name"] for automation in automations}
    assert names == {
        "hades contract broken",
        "hades nightly failed",
        "hades nightly late",
        "hades nightly missing",
        "hades retrieval got worse",
    }


@pytest.mark.usefixtures("prefect_server")
def test_a_missing_night_is_noticed_and_people_are_told(site, tmp_path):
    from prefect.blocks.notifications import CustomWebhookNotificationBlock

    triggers = yaml.safe_load((ROOT / "prefect.yaml").read_text())["deployments"][-1]["triggers"]
    missing = next(
        dict(trigger) for trigger in triggers if trigger["name"] == "hades nightly missing"
    )
    alert = site.deployment("alert")
    asked = {
        "type": "run-deployment",
        "deployment_id": alert,
        "parameters": missing.pop("parameters"),
    }
    told = {name: missing.pop(name) for name in ("name", "description", "enabled")}
    short = {
        **told,
        "trigger": {**missing, "within": 10},
        "actions": [asked],
    }  # the least that Prefect accepts
    heard: queue.Queue[dict[str, str]] = queue.Queue()

    def hear(path, headers, content):
        heard.put(json.loads(content))
        return 204, {}, []

    with answering(hear) as address:
        block = CustomWebhookNotificationBlock(
            name="hades", url=address, json_data={"title": "{{subject}}", "text": "{{body}}"}
        ).save("hades-alerts")
        notify = tmp_path / "notify.yaml"
        notify.write_text(
            (ROOT / "deployments/prefect/notify.yaml").read_text().replace("BLOCK", str(block))
        )
        site.prefect("automation", "create", "--from-file", str(notify))
        made = site.api.post("/automations/", json=short).raise_for_status().json()
        message = heard_after(lambda: site.complete_run("nightly"), heard)
        site.api.delete(
            f"/automations/{made['id']}"
        ).raise_for_status()  # it would start a run every ten seconds
    assert message["title"] == "HADES: nightly missing"
    assert message["text"].startswith("no nightly build completed for 26 hours\nthe last one was ")


def test_a_red_contract_stops_the_flow_alerts_and_leaves_what_serves_alone(site):
    from hades.ports.store import Mode
    from hades.stores.sqlite.store import SqliteStore

    before = (site.home / "snapshots" / "current").read_bytes()
    store = SqliteStore.open(site.home / "graph.db", Mode.READ_WRITE)
    key = next(iter(store.scan("relations", columns=["_key"]))).column("_key")[0].as_py()
    store.patch("relations", pa.table({"_key": [key], "weight": [0.123456], "cost": [2.0]}))
    store.close()
    log = site.home / "logs" / "alerts.jsonl"
    alerts = log.read_text() if log.is_file() else ""
    run = site.wait_for(site.trigger("nightly"))
    assert run["state_type"] == "FAILED"
    assert "weights." in run["state"]["message"]
    assert (site.home / "snapshots" / "current").read_bytes() == before
    (table,) = [one for one in site.artifacts_of(run["id"]) if one["type"] == "table"]
    assert "weights." in str(table["data"])
    _wait_for_alert(site, "contract broken")
    failed = site.wait_for(site.trigger("nightly", {"sources": [not_a_file(site)]}))
    assert failed["state_type"] == "FAILED"
    _wait_for_alert(site, "nightly failed", alerts)  # the server has worked off both failures
    told = [json.loads(line)["what"] for line in log.read_text().removeprefix(alerts).splitlines()]
    # "nightly missing" is of the clock, not of these runs
    assert sorted(set(told) - {"nightly missing"}) == ["contract broken", "nightly failed"]
    assert told.count("contract broken") == told.count("nightly failed") == 1


@pytest.mark.usefixtures("prefect_server")
def test_provision_flow_creates_the_store_and_can_be_repeated(tmp_path, monkeypatch):
    from flows.provision import provision

    monkeypatch.setenv("HADES_HOME", str(tmp_path))
    monkeypatch.delenv("HADES_STORE", raising=False)
    assert "relations" in provision().created
    assert provision(check=True).created == ()
    assert (tmp_path / "graph.db").is_file()


@pytest.mark.usefixtures("prefect_server")
def test_a_corpus_is_ingested_published_and_embedded_again_by_one_builder(
    server, tmp_path, monkeypatch
):
    from flows.ingest import ingest
    from flows.publish import publish
    from flows.reembed import reembed

    pages = tmp_path / "pages"
    pages.mkdir()
    (pages / "one.md").write_text(
        "# Ada Lovelace\n\nAda Lovelace worked with Charles Babbage in London.\n"
    )
    (pages / "two.md").write_text(
        "# Charles Babbage\n\nCharles Babbage designed the Analytical Engine.\n"
    )
    live_in(tmp_path / "home", monkeypatch)
    done = ingest(source="documents", path=str(pages))
    assert done["nodes"]["documents"]["new"] == 2
    assert done["edges"]["derived"]["entities"]["added"] >= 2
    first = publish(keep=2)
    monkeypatch.setenv("HADES_EMBEDDER", "minilm")
    second = reembed(keep=2)
    assert second["embedded"]["embedded"] == 2
    assert second["released"]["snapshot"] != first["snapshot"]
    with open_hades() as hades:
        view = hades.view()
        assert view.info.models["doc_chunks"] == (hades.embedder.model.tag,)
    limits = server[0].api.post("/v2/concurrency_limits/filter", json={}).raise_for_status().json()
    named = {one["name"]: (one["limit"], one["active_slots"]) for one in limits}
    assert named[f"hades-build-{str(tmp_path / 'home').strip('/').replace('/', '-')}"] == (1, 0)


@pytest.mark.usefixtures("prefect_server")
def test_a_rollback_waits_for_a_persons_approval_and_silence_refuses_it(
    server, tmp_path, monkeypatch
):
    from flows.rollback import rollback
    from hades.errors import NotApproved, SettingsError, StoreBusy
    from tasks.unit import without_server

    site, _ = server
    publish(tmp_path, "one.md", "# Rivers\n\nThe Rhine flows to the North Sea.\n")
    first = served(tmp_path / "home")
    publish(tmp_path, "two.md", "# More\n\nThe Aare flows into the Rhine.\n")
    second = served(tmp_path / "home")
    live_in(tmp_path / "home", monkeypatch)
    monkeypatch.setenv("HADES_APPROVAL_MINUTES", "0.05")
    with (
        without_server(),
        pytest.raises(SettingsError, match="nobody can be asked and nothing was changed"),
    ):
        rollback.fn()
    with pytest.raises(NotApproved, match="nobody approved rolling back the graph"):
        rollback()
    assert served(tmp_path / "home") == second
    monkeypatch.setenv("HADES_APPROVAL_MINUTES", "5")

    def build_meanwhile() -> None:
        publish(tmp_path, "three.md", "# Later\n\nThe Moselle flows into the Rhine.\n")

    person = threading.Thread(target=approve_paused_run, args=(site, build_meanwhile))
    person.start()
    with pytest.raises(
        StoreBusy, match="changed by another command while flow rollback waited for a person"
    ):
        rollback()
    person.join()
    third = served(tmp_path / "home")
    assert third not in (first, second)

    def hold_meanwhile() -> None:
        with hold_build("hades watch", wait_seconds=0):
            held.append(True)

    held: list[bool] = []
    person = threading.Thread(target=approve_paused_run, args=(site, hold_meanwhile))
    person.start()
    rollback(to=first)
    person.join()
    assert held  # nobody builds while a person is asked
    assert served(tmp_path / "home") == first
    assert any(
        "Roll back the graph?" in str(one["data"])
        for one in site.artifacts()
        if one["key"] == "decision"
    )


@pytest.mark.usefixtures("prefect_server", "whole_installation")
def test_a_plan_waits_for_a_persons_approval_and_is_then_applied(server, tmp_path, monkeypatch):
    from flows.plan_then_apply import plan_then_apply

    site, _ = server
    publish(tmp_path, "one.md", "# Rivers\n\nThe Rhine flows to the North Sea.\n")
    before = served(tmp_path / "home")
    (tmp_path / "one.md").write_text("# Rivers\n\nThe Rhine flows through Basel.\n")
    live_in(tmp_path / "home", monkeypatch)
    unasked = plan_then_apply()
    assert not unasked["applied"]
    assert "HADES_APPROVAL_MINUTES is 0" in unasked["why"]
    assert served(tmp_path / "home") == before
    monkeypatch.setenv("HADES_APPROVAL_MINUTES", "5")
    person = threading.Thread(target=approve_paused_run, args=(site,))
    person.start()
    applied = plan_then_apply()
    person.join()
    assert applied["applied"]
    assert applied["as_planned"]
    assert served(tmp_path / "home") == applied["snapshot"] != before
    pages = [one["data"] for one in site.artifacts() if one["key"] == "plan"]
    assert "documents: 1 changed" in str(pages)


@pytest.mark.usefixtures("prefect_server", "whole_installation")
def test_a_person_may_accept_a_broken_contract(server, tmp_path, monkeypatch):
    from flows.publish import publish as publish_flow

    site, _ = server
    publish(
        tmp_path,
        "one.md",
        "# Rivers\n\nThe Rhine flows from Basel to the North Sea. Basel lies on the Rhine.\n",
    )
    live_in(tmp_path / "home", monkeypatch)
    with open_hades() as hades:
        hades.build()
    before = served(tmp_path / "home")
    rule = {
        "name": "long_titles",
        "collection": "documents",
        "type": "expect_column_value_lengths_to_be_between",
    }
    rule |= {
        "kwargs": {"column": "title", "min_value": 200},
        "severity": "stop",
        "sentence": "a title is long",
    }
    (tmp_path / "home" / "expectations.yaml").write_text(yaml.safe_dump({"expectations": [rule]}))
    with open_hades() as hades:
        key = next(iter(hades.store.scan("relations", columns=["_key"]))).column("_key")[0].as_py()
        hades.store.patch(
            "relations", pa.table({"_key": [key], "weight": [0.123456], "cost": [2.0]})
        )
    monkeypatch.setenv("HADES_APPROVAL_MINUTES", "5")
    person = threading.Thread(target=approve_paused_run, args=(site,))
    person.start()
    accepted = publish_flow()
    person.join()
    assert served(tmp_path / "home") == accepted["snapshot"] != before
    assert {"own.long_titles", "weights.weight_recomputes"} <= set(accepted["accepted"])
    about = json.loads(
        (tmp_path / "home" / "snapshots" / accepted["snapshot"] / "about.json").read_text()
    )
    assert about["accepted"] == accepted["accepted"]
    with open_hades() as hades:
        tracker = hades.build_context.open_tracker()
        champion = next(
            one for one in tracker.versions("hades-weights") if "champion" in one.aliases
        )
    assert champion.version == accepted["weights_version"]
    assert champion.tags["snapshot"] == accepted["snapshot"]


@pytest.mark.usefixtures("prefect_server")
def test_a_person_may_pay_for_more_calls_of_a_language_model_than_its_cap(
    server, tmp_path, monkeypatch
):
    from flows.build_hierarchy import build_hierarchy
    from flows.consolidate_memory import consolidate_memory

    site, _ = server
    publish(
        tmp_path,
        "one.md",
        "# Rivers\n\nThe Rhine flows from Basel to the North Sea. Basel lies on the Rhine.\n",
    )
    with chat_endpoint() as writer:
        writer.raw = json.dumps(
            {"choices": [{"message": {"content": "A river of Europe."}}]}
        ).encode()
        writer.content_type = "application/json"
        given = {
            "HOME": str(tmp_path / "home"),
            "EMBEDDER": "hashing",
            "LLM_BASE_URL": writer.url,
            "LLM_MODEL": "w",
        }
        for name, value in {**given, "LLM_MAX_CALLS": "0", "APPROVAL_MINUTES": "0.05"}.items():
            monkeypatch.setenv(f"HADES_{name}", value)
        with open_hades() as hades:
            hades.memory.add(
                "rivers/rhine", "The Rhine is high.", who="ana", why="seen", valid_from=PAST
            )
        quoted = build_hierarchy()["topics"]  # nobody answers in time
        assert (quoted["summaries_written"], writer.seen) == (0, [])
        assert quoted["summaries_left_out"] > 0
        monkeypatch.setenv("HADES_APPROVAL_MINUTES", "5")
        for run in (partial(build_hierarchy, mode="full"), consolidate_memory):
            person = threading.Thread(target=approve_paused_run, args=(site,))
            person.start()
            run()
            person.join()
        assert len(writer.seen) == quoted["summaries_left_out"] + 1
        decisions = [str(one["data"]) for one in site.artifacts() if one["key"] == "decision"]
        assert any(
            f"{quoted['summaries_left_out']} calls of w of up to" in one for one in decisions
        )
        assert any("1 calls of w of up to" in one for one in decisions)


@pytest.mark.usefixtures("prefect_server")
def test_two_shards_are_embedded_on_dask_clusters_of_this_machine_and_by_address(
    tmp_path, monkeypatch
):
    from distributed import LocalCluster

    from flows.embed import embed
    from hades.ingest import chunks as embeddings
    from hades.ingest.phases import Phase
    from tasks.unit import without_server

    corpus = tmp_path / "corpus.jsonl"
    rows = (
        {"id": str(n), "title": f"Note {n}", "text": f"Note number {n} speaks of engines."}
        for n in range(15)
    )
    corpus.write_text("\n".join(json.dumps(row) for row in rows))
    monkeypatch.setenv("HADES_EMBEDDER", "hashing")
    monkeypatch.setattr(embeddings, "WINDOW", 10)
    vectors = []
    with LocalCluster(
        n_workers=1, processes=False, protocol="tcp://", dashboard_address=None
    ) as cluster:
        for runner in ("dask", cluster.scheduler_address, "threads"):
            monkeypatch.setenv("HADES_HOME", str(tmp_path / str(len(vectors))))
            monkeypatch.setenv("HADES_TASK_RUNNER", runner)
            with open_hades() as hades:
                hades.ingest.passages(corpus, phases=[Phase.NODES, Phase.CHUNKS])
            if runner != "threads":
                assert embed() | {"took": 0} == {
                    "embedded": 15,
                    "memory": 0,
                    "shards": 2,
                    "took": 0,
                }
            else:
                with without_server():
                    embed.fn()
            with open_hades() as hades:
                columns = ["_key", "embedding", "embedding_model"]
                vectors.append(
                    [batch.to_pydict() for batch in hades.store.scan("doc_chunks", columns=columns)]
                )
    assert vectors[0] == vectors[1] == vectors[2]


def test_a_delayed_question_is_answered_once_for_each_snapshot(ask, tmp_path):
    state, first = ask("Which river flows from Basel?")
    assert (state, first["success"]) == ("Completed", True)
    assert ask("Which river flows from Basel?") == ["Cached", first]
    publish(tmp_path, "more.md", "# More\n\nThe Aare flows into the Rhine.\n")
    state, later = ask("Which river flows from Basel?")
    assert state == "Completed"
    assert later["snapshot"] != first["snapshot"]


def not_a_file(site) -> dict[str, str]:
    """A corpus that no night can read: passages stand in a file."""
    return {"source": "passages", "path": str(site.pages)}


def publish(folder, name: str, text: str) -> None:
    (folder / name).write_text(text, encoding="utf-8")
    settings = settings_of(folder / "home")
    with open_hades(settings) as hades:
        hades.ingest.documents(folder / name)
        hades.publish()


def _wait_for_alert(site, told: str, before: str = "") -> None:
    """Until a run of an automation has written this to the log of alerts, after what was there."""
    log = site.home / "logs" / "alerts.jsonl"
    give_up = time.monotonic() + HANG_SECONDS
    while time.monotonic() < give_up:
        if log.is_file() and told in log.read_text().removeprefix(before):
            return
        time.sleep(0.5)
    runs = site.api.post("/flow_runs/filter", json={"limit": 20}).raise_for_status().json()
    states = [(run["name"], run["state"]) for run in runs]
    raise AssertionError(f"no alert {told!r} after {HANG_SECONDS} s; runs: {states}")


def heard_after(act: Callable[[], None], heard: "queue.Queue[dict[str, str]]") -> dict[str, str]:
    """The first message; the act is repeated, because a server takes new automations up in its own
    time.
    """
    give_up = time.monotonic() + HANG_SECONDS
    while time.monotonic() < give_up:
        act()
        with suppress(queue.Empty):
            return heard.get(timeout=40)
    raise AssertionError(f"no message after {HANG_SECONDS} s")


def approve_paused_run(site, meanwhile: Callable[[], None] = lambda: None) -> None:
    """Approve the next run that pauses, as the form of the UI does; something may happen before."""
    give_up = time.monotonic() + HANG_SECONDS
    paused = {"flow_runs": {"state": {"type": {"any_": ["PAUSED"]}}}}
    while time.monotonic() < give_up:
        for run in site.api.post("/flow_runs/filter", json=paused).raise_for_status().json():
            meanwhile()
            if site.api.post(
                f"/flow_runs/{run['id']}/resume", json={"run_input": {"approve": True}}
            ).is_success:
                return
        time.sleep(0.5)
