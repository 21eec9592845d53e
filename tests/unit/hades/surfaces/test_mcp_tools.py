"""The tools as the SDK's own client sees them, in one process."""

from __future__ import annotations

import json
import threading
from collections.abc import Awaitable, Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import anyio
import pytest
from mcp.client.client import Client
from mcp.shared.exceptions import MCPError

from hades.ports.store import Mode
from hades.settings.tree import Settings
from hades.surfaces.access.contexts import ServiceContext
from hades.surfaces.access.limits import Door
from hades.surfaces.capabilities.capability import QUESTION_CHARACTERS
from hades.surfaces.capabilities.replies import PathDocument
from hades.surfaces.mcp.server import ToolService, build_server
from tests.mcp_client import call_tool, talk_to
from tests.patience import HANG_SECONDS
from tests.unit.hades.surfaces.mcp_home import QUESTION, READING, WRITING, make_home

SERVERS: dict[int, Any] = {}


@pytest.fixture(scope="module")
def settings(tmp_path_factory: pytest.TempPathFactory) -> Settings:
    return make_home(tmp_path_factory.mktemp("mcp"))


@contextmanager
def serving(settings: Settings, mode: Mode) -> Iterator[ToolService]:
    service = ToolService(settings, Door(mode))
    SERVERS[id(service)] = build_server(service)
    try:
        yield service
    finally:
        del SERVERS[id(service)]
        service.close()


def asked(service: ToolService, talk: Callable[[Client], Awaitable[Any]], **options: Any) -> Any:
    """What a client finds in one session."""
    return talk_to(SERVERS[id(service)], talk, **options)


def call(service: ToolService, tool: str, **arguments: Any) -> Any:
    return call_tool(SERVERS[id(service)], tool, arguments)


def audit_lines(settings: Settings, mode: str) -> list[dict[str, Any]]:
    path = settings.home / "logs" / f"audit_{mode}.jsonl"
    return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []


@pytest.mark.parametrize(
    ("mode", "names"), [(Mode.READ_ONLY, READING), (Mode.READ_WRITE, [*READING, *WRITING])]
)
def test_a_mode_has_the_tools_it_covers_and_no_other(
    settings: Settings, mode: Mode, names: list[str]
) -> None:
    with serving(settings, mode) as service:
        tools = asked(service, lambda client: client.list_tools()).tools
    assert sorted(tool.name for tool in tools) == sorted(names)
    assert {tool.name for tool in tools if not tool.annotations.read_only_hint} == set(names) & set(
        WRITING
    )


def test_parameters_are_those_of_the_interface_each_described(settings: Settings) -> None:
    with serving(settings, Mode.READ_WRITE) as service:
        tools = {
            tool.name: tool for tool in asked(service, lambda client: client.list_tools()).tools
        }
    promised = {
        "pathrag_retrieve": [
            "query",
            "max_paths",
            "domain_filter",
            "as_of_version",
            "format_for_llm",
        ],
        "hipporag_retrieve": ["query", "limit", "mode"],
        "graph_query_paths": ["query", "k", "L"],
        "graph_entity_update": ["entity_id", "fields", "why", "confidence"],
    }
    for name, parameters in promised.items():
        assert list(tools[name].input_schema["properties"])[: len(parameters)] == parameters
    for tool in tools.values():
        assert all("description" in one for one in tool.input_schema["properties"].values()), (
            tool.name
        )
        assert tool.output_schema["properties"]["success"]["type"] == "boolean"
        assert len(tool.description) > 40


def test_a_write_tool_does_not_exist_in_a_reading_service(settings: Settings) -> None:
    with serving(settings, Mode.READ_ONLY) as service:
        result = call(service, "memory_add", topic="t", content="c")
        assert result.is_error
        assert "Unknown tool" in result.content[0].text
        assert service.writable is None


def test_pathrag_gives_typed_cited_paths(settings: Settings) -> None:
    with serving(settings, Mode.READ_ONLY) as service:
        found = call(service, "pathrag_retrieve", query=QUESTION, max_paths=2).structured_content
    assert (found["success"], found["query"], found["count"]) == (True, QUESTION, 2)
    paths = [PathDocument.model_validate(path) for path in found["paths"]]
    assert paths[0].edges[0].provenance.doc in ("ada.md", "babbage.md")
    assert found["pruned_from"] >= 2


def test_without_a_query_the_error_is_the_promised_one(settings: Settings) -> None:
    with serving(settings, Mode.READ_ONLY) as service:
        for tool in ("pathrag_retrieve", "hipporag_retrieve", "graph_query_paths", "memory_search"):
            result = call(service, tool, query="  \n")
            assert result.structured_content == {"success": False, "error": "Query is required"}
            assert result.is_error


def test_format_for_llm_gives_success_and_the_prompt(settings: Settings) -> None:
    with serving(settings, Mode.READ_ONLY) as service:
        result = call(service, "pathrag_retrieve", query=QUESTION, format_for_llm=True)
    assert list(result.structured_content) == ["success", "formatted_prompt"]
    assert "London" in result.structured_content["formatted_prompt"]
    assert result.content[0].text == result.structured_content["formatted_prompt"]


def test_an_answer_outlives_its_call_and_its_session(settings: Settings) -> None:
    with serving(settings, Mode.READ_ONLY) as service:
        first = call(
            service, "pathrag_retrieve", query="Who admired Ada Lovelace?"
        ).structured_content
        again = call(
            service, "pathrag_retrieve", query="Who admired Ada Lovelace?"
        ).structured_content
    assert first["tier"] == "RAID5"
    assert again["tier"] != "RAID5"
    assert again["paths"] == first["paths"]


def test_a_bad_version_is_a_failure_that_names_it(settings: Settings) -> None:
    with serving(settings, Mode.READ_ONLY) as service:
        result = call(service, "pathrag_retrieve", query=QUESTION, as_of_version="yesterday")
        gone = call(service, "pathrag_retrieve", query=QUESTION, as_of_version="g" + "0" * 24)
    assert "'yesterday'" in result.structured_content["error"]
    assert not gone.structured_content["success"]


def test_hipporag_gives_retrieval_results_with_the_entities_of_each_passage(
    settings: Settings,
) -> None:
    with serving(settings, Mode.READ_ONLY) as service:
        for mode in ("single", "multi_hop", "execution"):
            found = call(
                service,
                "hipporag_retrieve",
                query="Who designed the Analytical Engine?",
                limit=1,
                mode=mode,
            )
            (result,) = found.structured_content["results"]
            assert set(result) == {"chunk_id", "text", "score", "rank", "entities", "metadata"}
            assert (result["rank"], result["metadata"]["document"]) == (1, "babbage.md")
            assert result["metadata"]["path"] == "babbage.md"
            assert "Analytical Engine" in result["entities"]


def test_query_paths_gives_strings_with_citations(settings: Settings) -> None:
    with serving(settings, Mode.READ_ONLY) as service:
        found = call(
            service, "graph_query_paths", query="Ada Lovelace, Charles Babbage, London", k=2, L=2
        )
    paths = found.structured_content["paths"]
    assert len(paths) == found.structured_content["count"] <= 2
    for path in paths:
        assert len(path["nodes"]) == len(path["citations"]) + 1 <= 3
        assert all(one["doc"].endswith(".md") and one["span"] for one in path["citations"])


def test_arguments_out_of_bounds_are_refused_before_anything_is_read(settings: Settings) -> None:
    with serving(settings, Mode.READ_ONLY) as service:
        for tool, arguments in (
            ("pathrag_retrieve", {"query": "x", "max_paths": 0}),
            ("pathrag_retrieve", {"query": "x" * (QUESTION_CHARACTERS + 1)}),
            ("graph_query_paths", {"query": "x", "L": 6}),
            ("hipporag_retrieve", {"query": "x", "mode": "sideways"}),
            ("pathrag_retrieve", {}),
        ):
            assert call(service, tool, **arguments).is_error
    assert [line["status"] for line in audit_lines(settings, "ro")[-5:]] == ["BadCall"] * 5


def test_each_stage_is_reported_in_order(settings: Settings) -> None:
    told: list[tuple[float, str]] = []

    async def heard(progress: float, total: float | None, message: str | None) -> None:
        told.append((progress, (message or "").partition(":")[0]))

    async def talk(client: Client) -> Any:
        return await client.call_tool(
            "pathrag_retrieve", {"query": "Is Hopper near London?"}, progress_callback=heard
        )

    with serving(settings, Mode.READ_ONLY) as service:
        asked(service, talk)
    assert [number for number, _ in told] == list(range(1, len(told) + 1))
    stages = [stage for _, stage in told]
    assert [stage for stage in stages if stage in ("seeds", "graph", "pack")] == [
        "seeds",
        "graph",
        "pack",
    ]


class Held:
    """The embedder of a service, which waits until it is let go."""

    def __init__(self, inner: Any) -> None:
        self.inner, self.began, self.let_go = inner, threading.Event(), threading.Event()

    @property
    def model(self) -> Any:
        return self.inner.model

    def embed(self, texts: Sequence[str], **more: Any) -> Any:
        self.began.set()
        assert self.let_go.wait(HANG_SECONDS)
        return self.inner.embed(texts, **more)


def test_a_call_that_is_let_go_stops_at_the_next_stage_and_the_server_goes_on(
    settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    from hades.retrieval import pipeline

    sought: list[str] = []
    real = pipeline.find_seeds
    monkeypatch.setattr(
        pipeline,
        "find_seeds",
        lambda *given, **more: sought.append("seeds") or real(*given, **more),
    )

    async def talk(client: Client) -> Any:
        with anyio.move_on_after(HANG_SECONDS) as scope:
            async with anyio.create_task_group() as group:
                group.start_soon(
                    client.call_tool, "hipporag_retrieve", {"query": "a question nobody waits for"}
                )
                await anyio.to_thread.run_sync(held.began.wait)
                group.cancel_scope.cancel()
        assert not scope.cancelled_caught
        await (
            client.list_tools()
        )  # the server takes messages in order: it has read the cancellation before this one
        held.let_go.set()
        with anyio.fail_after(HANG_SECONDS):
            while audit_lines(settings, "ro")[-1]["status"] != "Cancelled":
                await anyio.sleep(0.01)
        assert sought == []
        return await client.call_tool(
            "hipporag_retrieve", {"query": "Who wrote the first compiler?"}
        )

    with serving(settings, Mode.READ_ONLY) as service:
        held = Held(service.answers.tools.embedder)
        object.__setattr__(service.answers.tools, "embedder", held)
        after = asked(service, talk, mode="legacy")
    assert after.structured_content["success"]


def test_a_passage_says_its_file_and_the_date_of_its_document(settings: Settings) -> None:
    with serving(settings, Mode.READ_ONLY) as service:
        found = call(service, "hipporag_retrieve", query="Who wrote the first compiler?")
    metadata = found.structured_content["results"][0]["metadata"]
    assert metadata["file_path"] == "hopper.md"
    assert metadata["timestamp"] == "2020-05-17T00:00:00Z"


def test_what_a_tool_remembers_names_the_tool_as_its_author(settings: Settings) -> None:
    with serving(settings, Mode.READ_WRITE) as service:
        state = call(
            service, "memory_add", topic="user/tea", content="The user drinks tea."
        ).structured_content["state"]
        audit = ServiceContext(service, "test", Mode.READ_ONLY).memory.audit(state["id"])
    assert audit[0].who.startswith("mcp:")


def test_every_call_leaves_a_line_where_it_belongs(settings: Settings) -> None:
    before = len(audit_lines(settings, "ro")), len(audit_lines(settings, "rw"))
    with serving(settings, Mode.READ_WRITE) as service:
        query_id = call(
            service, "pathrag_retrieve", query="What did Hopper write?"
        ).structured_content["query_id"]
        call(service, "memory_add", topic="x", content=" ")
        service.turns.flush()
        assert service.turns.find(query_id).query == "What did Hopper write?"
    (read,), (wrote,) = (
        audit_lines(settings, "ro")[before[0] :],
        audit_lines(settings, "rw")[before[1] :],
    )
    assert (read["mode"], read["path"], read["status"], read["query_id"]) == (
        "RO",
        "mcp/tool/pathrag_retrieve",
        "ok",
        query_id,
    )
    assert (wrote["mode"], wrote["path"], wrote["status"]) == (
        "RW",
        "mcp/tool/memory_add",
        "MemoryRefused",
    )
    assert read["ms"] > 0
    assert read["who"]


def test_the_snapshot_and_a_node_can_be_read(settings: Settings) -> None:
    async def talk(client: Client) -> Any:
        snapshot = json.loads(
            (await client.read_resource("hades://snapshot/current")).contents[0].text
        )
        node = json.loads(
            (await client.read_resource("hades://nodes/entities/london")).contents[0].text
        )
        with pytest.raises(MCPError, match="nowhere"):
            await client.read_resource("hades://nodes/entities/nowhere")
        with pytest.raises(MCPError, match="does not serve"):
            await client.read_resource("hades://snapshot/g0")
        return snapshot, node

    with serving(settings, Mode.READ_ONLY) as service:
        snapshot, node = asked(service, talk)
    assert snapshot["nodes"]["doc_chunks"] == 3
    assert (node["name"], node["snapshot"]) == ("London", snapshot["snapshot"])


@pytest.mark.parametrize(
    "hostile",
    ["' OR 1=1 --", '"*" NEAR("', "RETURN 1", "../../etc/passwd", "\x00\x1b[31m", "𝔘" * 500],
)
def test_hostile_text_is_only_text(settings: Settings, hostile: str) -> None:
    with serving(settings, Mode.READ_WRITE) as service:
        counts = service.readable.counts()
        for tool in ("pathrag_retrieve", "hipporag_retrieve", "graph_query_paths", "memory_search"):
            result = call(service, tool, query=hostile)
            assert "success" in result.structured_content
        edit = call(service, "graph_entity_update", entity_id=hostile[:300], fields={"name": "x"})
        assert not edit.structured_content["success"]
        service.turns.flush()
        after = service.readable.counts()
    assert {name for name in counts if counts[name] != after[name]} <= {"query_logs"}


def test_a_door_that_asks_for_tokens_trusts_no_pipe(settings: Settings) -> None:
    service = ToolService(settings, Door(Mode.READ_WRITE, needs_token=True))
    SERVERS[id(service)] = build_server(service)
    try:
        refused = call(service, "memory_add", topic="t", content="c").structured_content
    finally:
        del SERVERS[id(service)]
        service.close()
    assert refused == {"success": False, "error": "Not authenticated"}
