"""Rights of documents on every surface as it is served: command line, REST, MCP, tokens, doors."""

from __future__ import annotations

import json
import traceback
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from hades.compat.functions import get_best_paths
from hades.errors import HadesError
from hades.ingest.stated_rights import FILE
from hades.ports.store import Mode
from hades.settings.tree import Settings
from hades.snapshot.rights_file import OWNER, Readers, asker_of
from hades.surfaces.access.limits import Door, TokenError, Tokens
from hades.surfaces.mcp.server import ToolService, build_server
from hades.wiring import open_answers, open_hades
from tests.command_line import run, run_json
from tests.homes import live_in, settings_of
from tests.integration.rest_site import serving
from tests.mcp_client import call_tool, talk_to

QUESTION = "what is the salary of the Zorblat director?"
SECRET = "90000zorb"  # no figure of a turn can hold it
BODY = {"query": QUESTION}
ANNA = asker_of("anna")


@pytest.fixture(scope="module")
def settings(tmp_path_factory: pytest.TempPathFactory) -> Settings:
    folder = tmp_path_factory.mktemp("rights")
    (folder / "pages/hr").mkdir(parents=True)
    (folder / "pages" / FILE).write_text("hr/: [hr, user:anna]\n")
    (folder / "pages/hr/salaries.md").write_text(
        f"# Zorblat Salaries\n\nThe salary of the Zorblat director is {SECRET} euros.\n"
    )
    (folder / "pages/office.md").write_text("# Office\n\nThe salary office opens at nine.\n")
    settings = settings_of(folder / "home")
    with open_hades(settings) as hades:
        hades.ingest.documents(folder / "pages")
        hades.build()
    return settings


def tells(text: str) -> bool:
    """Whether a reply tells of the page, beyond the words of the question."""
    return SECRET in text or "salaries" in text.casefold()


def test_the_command_line_shows_the_owner_all_and_says_so(
    settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    live_in(settings.home, monkeypatch)
    owner = run("answer", QUESTION)
    assert tells(owner.stdout)
    assert "Asked as the owner" in owner.output
    for command in ("answer", "query"):
        assert not tells(run(command, QUESTION, "--as-user", "bob").output)
        assert not tells(run(command, QUESTION, "--groups", "legal", "--json").output)
        anna = run(command, QUESTION, "--as-user", "Anna")
        assert tells(anna.stdout)
        assert "owner" not in anna.output
    turn = run_json("query", QUESTION)["query_id"]
    follow = run("query", "and for it?", "--follow", turn, "--as-user", "bob")
    assert follow.exit_code == 1
    assert "no query has the id" in follow.stderr


def test_python_answers_with_what_its_asker_may_read(settings: Settings) -> None:
    overview = "what is this corpus about?"
    changed = "what changed about the Zorblat director since last year?"
    with open_hades(settings) as hades:
        for question in (QUESTION, overview, changed):
            assert not tells(hades.answer(question).model_dump_json())
            assert not tells(hades.answer(question, as_user="bob").model_dump_json())
        assert tells(hades.answer(QUESTION, groups=["hr"]).model_dump_json())
        assert tells(hades.answer(QUESTION, as_owner=True).model_dump_json())


@pytest.mark.parametrize(("asker", "sees"), [(asker_of(None), False), (ANNA, True), (OWNER, True)])
def test_a_door_without_tokens_shows_what_its_asker_may_read(
    settings: Settings, asker: Readers, sees: bool
) -> None:
    with serving(settings, Door(Mode.READ_ONLY, asker=asker)) as site:
        for path in ("/v1/query", "/v1/answer", "/v1/answer/stream", "/v1/query/stream"):
            for _ in range(2):  # the second comes from the cache
                assert tells(site.client.post(path, json=BODY).text) is sees
        chat = {"model": "hades", "messages": [{"role": "user", "content": QUESTION}]}
        assert tells(site.client.post("/v1/chat/completions", json=chat).text) is sees
        refused = 200 if asker == OWNER else 403
        assert site.client.get("/v1/overview").status_code == refused
        assert site.client.get("/metrics").status_code == refused
        assert site.client.get("/ready").json()["nodes"] == {}


def test_no_route_tells_a_caller_of_what_they_may_not_read(settings: Settings) -> None:
    with serving(settings, Door(Mode.READ_WRITE)) as site:
        paths = site.client.get("/v1/openapi.json").json()["paths"]
        for path, methods in paths.items():
            url = path.replace("{id}", "entities/zorblat_salaries")
            for method in methods:
                reply = site.client.request(method, url, json=BODY if method == "post" else None)
                assert not tells(reply.text), (method, path)


def test_a_token_says_who_holds_it(settings: Settings, monkeypatch: pytest.MonkeyPatch) -> None:
    live_in(settings.home, monkeypatch)
    anna = run_json("token", "add", "anna", "--as-user", "anna")
    assert anna["names"] == ["public", "user:anna"]
    guest = run_json("token", "add", "guest")["token"]
    owner = run_json("token", "add", "owner", "--as-owner")["token"]
    writer = run_json("token", "add", "writer", "--mode", "rw")["token"]
    with serving(settings, Door(Mode.READ_ONLY, needs_token=True)) as site:
        for token, sees in ((anna["token"], True), (guest, False), (owner, True), (writer, True)):
            site.client.headers["Authorization"] = f"Bearer {token}"
            assert tells(site.client.post("/v1/query", json=BODY).text) is sees
    with pytest.raises(TokenError, match="sees everything"):
        Tokens(settings.home).add("x", Mode.READ_WRITE, datetime.now(UTC), names=ANNA)


@pytest.mark.parametrize(("asker", "sees"), [(asker_of(None), False), (ANNA, True)])
def test_tools_show_what_their_asker_may_read(
    settings: Settings, asker: Readers, sees: bool
) -> None:
    with closing(ToolService(settings, Door(Mode.READ_ONLY, asker=asker))) as service:
        server = build_server(service)
        answer = call_tool(server, "hades_answer", BODY)
        assert tells(answer.model_dump_json()) is sees
        for tool in ("pathrag_retrieve", "hipporag_retrieve"):
            assert tells(call_tool(server, tool, BODY).model_dump_json()) is sees
        refused = call_tool(server, "graph_query_paths", BODY)
        assert refused.is_error
        assert not tells(refused.model_dump_json())

        async def read(client: Any) -> str:
            return str(await client.read_resource("hades://nodes/entities/zorblat_salaries"))

        with pytest.raises(BaseException) as refusal:
            talk_to(server, read)
        assert "limited to a part" in "".join(traceback.format_exception(refusal.value))


def test_python_functions_that_do_not_know_who_asks_refuse(settings: Settings) -> None:
    with (
        open_answers(settings) as answers,
        pytest.raises(HadesError, match="not for everybody"),
    ):
        get_best_paths(answers, "Zorblat")


def test_the_live_view_refuses_by_name(settings: Settings, monkeypatch: pytest.MonkeyPatch) -> None:
    with open_answers(settings) as answers:
        monkeypatch.setattr("hades.retrieval.answers.RemoteView", type(answers.view))
        with pytest.raises(HadesError, match="HADES_VIEW=snapshot"):
            answers.retrieve(QUESTION)
        assert tells(answers.retrieve(QUESTION, asker=OWNER).model_dump_json())


def test_a_backup_holds_the_rights(settings: Settings, tmp_path: Path) -> None:
    environment = {"HADES_HOME": str(settings.home), "HADES_EMBEDDER": "hashing"}
    assert run("backup", str(tmp_path / "kept"), **environment).exit_code == 0
    kept = json.loads((tmp_path / "kept/home/rights.json").read_text())
    assert len(kept["documents"]) == 1
