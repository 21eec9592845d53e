"""A written answer cites sources of its turn, marks what they do not say, and survives any reply of
a model.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from hades.providers.openai import OpenAILanguageModel
from hades.retrieval.answer.quote_answer import MAX_CODE_LINES, MAX_WORDS, quote_blocks
from hades.retrieval.answer.write_answer import (
    NO_ANSWER,
    AnswerBudgetError,
    AnswerLimits,
    check_sentence,
    split_reply,
    stream_answer,
    write_answer,
)
from hades.text.blocks import as_markdown
from hades.wiring import open_hades
from schemas.answer import AnswerSource, Retrieval
from schemas.plan import Reason
from tests.chat_endpoint import ChatEndpoint, chat_endpoint
from tests.homes import settings_of
from tests.patience import wait_until

PAGES = {
    "rhine.md": "# Rhine\n\nThe Rhine flows from Basel to the North Sea. It carries 300 ships a "
    "day.\n",
    "bread.md": "# Bread\n\nBread is baked in Basel with salt from the North Sea.\n",
}
QUESTION = "Where does the Rhine flow?"


@pytest.fixture(scope="module")
def asked(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Retrieval, dict[str, Any]]]:
    folder = tmp_path_factory.mktemp("answered")
    (folder / "pages").mkdir()
    for name, text in PAGES.items():
        (folder / "pages" / name).write_text(text)
    settings = settings_of(folder / "home")
    with open_hades(settings) as hades:
        hades.ingest.documents(folder / "pages")
        hades.publish()
        tools = hades.answers.tools
        yield hades.retrieve(QUESTION), {"tokenizer": tools.tokenizer, "embedder": tools.embedder}


@pytest.fixture
def endpoint(monkeypatch: pytest.MonkeyPatch) -> Iterator[ChatEndpoint]:
    for name in ("HTTP_PROXY", "http_proxy", "ALL_PROXY", "all_proxy"):
        monkeypatch.delenv(name, raising=False)
    with chat_endpoint() as told:
        yield told


def model_of(endpoint: ChatEndpoint, timeout_seconds: float = 20.0) -> OpenAILanguageModel:
    return OpenAILanguageModel(endpoint.url, "writer", timeout_seconds=timeout_seconds)


def number_of(found: Retrieval, tools: dict[str, Any], document: str) -> int:
    answer = write_answer(found, model=None, **tools)
    return next(
        one.number for one in answer.sources if one.document == document and one.kind == "passage"
    )


def test_without_a_model_the_sentence_that_answers_is_quoted_with_its_source(asked: Any) -> None:
    found, tools = asked
    answer = write_answer(found, model=None, **tools)
    assert answer.mode == "extracted"
    rhine = number_of(found, tools, "rhine.md")
    quoted = next(one for one in answer.sentences if "flows from Basel" in one.text)
    assert quoted.citations == (rhine,)
    source = answer.sources[rhine - 1]
    assert source.id == found.passages[source.rank - 1].id
    assert f"[{rhine}]" in answer.text


@pytest.mark.parametrize(
    ("text", "told"),
    [
        (
            "# Returns\n\nUnclaimed parcels are kept for **60** days.",
            "Unclaimed parcels are kept for **60** days.",
        ),
        (
            "Returns\nUnclaimed parcels are kept for 60 days.",
            "Unclaimed parcels are kept for 60 days.",
        ),
        (
            "| what | how long |\n|---|---|\n| unclaimed `parcels` | 60 days |",
            "| what | how long |\n|---|---|\n| unclaimed `parcels` | 60 days |",
        ),
        (
            "Rules\n=====\n\n- Unclaimed ``parcels``: see [list](a.md).",
            "- Unclaimed `parcels`: see list.",
        ),
    ],
)
def test_a_quotation_is_rendered_without_its_heading_and_keeps_the_words_of_the_source(
    text: str, told: str
) -> None:
    source = AnswerSource(
        number=1,
        kind="passage",
        rank=1,
        id="c",
        title="Handbook",
        headings=("Handbook", "Returns"),
        text=text,
    )
    (block,) = quote_blocks("how long are unclaimed parcels kept?", [source], None)
    assert (block.text, block.heading) == (told, "Handbook › Returns")
    assert " ".join(block.quote.split()) in " ".join(text.split())


def test_short_lines_are_shown_as_a_list_and_wrapped_prose_as_a_paragraph() -> None:
    assert (
        as_markdown("Passports, renew\nHealth cards\n2 towels")
        == "- Passports, renew\n\n- Health cards\n\n- 2 towels"
    )
    assert (
        as_markdown("The pump leaks\nin the winter.\nAda knows.")
        == "The pump leaks in the winter. Ada knows."
    )


PUMP = (
    "The pump of the mill leaks in winter. The pump was made by Ada Marlow. It was painted "
    "green by the makers."
)
ADA = "Ada Marlow lived in York. She kept bees."


def quote_of(question: str, **texts: str) -> list[str]:
    sources = [
        AnswerSource(
            number=n,
            kind="passage",
            rank=n,
            score=1 / n,
            id=str(n),
            title=title.replace("_", " "),
            text=text,
        )
        for n, (title, text) in enumerate(texts.items(), 1)
    ]
    return [block.text for block in quote_blocks(question, sources, None)]


def test_a_question_of_two_steps_is_answered_with_a_block_of_each() -> None:
    told = quote_of(
        "where did whoever made the pump live?",
        Pump=PUMP,
        Bees="Bees live in hives.",
        Ada_Marlow=ADA,
    )
    assert told[:2] == [PUMP, ADA]


def test_what_the_turn_is_sure_of_is_quoted_before_what_shares_more_words() -> None:
    texts = (
        "Labels of the scraped data are renamed.",
        "Why you see the instance: see the instance label there.",
    )
    sources = [
        AnswerSource(
            number=n, kind="passage", rank=n, score=score, id=str(n), document=f"{n}.md", text=text
        )
        for n, (text, score) in enumerate(zip(texts, (1.0, 0.02), strict=True), 1)
    ]
    assert quote_blocks("why do I see renamed instance labels?", sources, None)[0].text == texts[0]


def test_every_passage_of_the_best_section_counts_as_the_best() -> None:
    texts = ("It leaks in winter.", "The pump is made in York.", "The pump is made in Leeds.")
    sections = (("Mill", "Old"), ("Mill", "New"), ("Mill", "Old"))
    sources = [
        AnswerSource(
            number=n,
            kind="passage",
            rank=n,
            score=1 / n,
            id=str(n),
            document="mill.md",
            headings=headings,
            text=text,
        )
        for n, (text, headings) in enumerate(zip(texts, sections, strict=True), 1)
    ]
    assert quote_blocks("where is the pump made?", sources, None)[0].text == texts[2]


def test_a_section_that_only_opens_what_its_own_sections_say_is_followed_by_the_best_of_them() -> (
    None
):
    opening, usage = (
        "The lockfile can be exported to the format of pip.",
        "```sh\ntool export --format pip\n```",
    )
    other = "Exporting a lockfile of another tool to the format of pip is told in its guide."
    sources = [
        AnswerSource(
            number=n,
            kind="passage",
            rank=n,
            score=1 / n,
            id=str(n),
            document=document,
            headings=headings,
            text=text,
        )
        for n, (document, headings, text) in enumerate(
            [
                ("export.md", ("Exporting", "Format of pip"), opening),
                ("guide.md", ("Guide",), other),
                ("export.md", ("Exporting", "Format of pip", "Basic usage"), usage),
                (
                    "export.md",
                    ("Exporting", "Format of others"),
                    "Other formats are exported by a lockfile's owner.",
                ),
            ],
            1,
        )
    ]
    shown = [block.text for block in quote_blocks("export the lockfile to pip", sources, None)]
    assert shown[:2] == [opening, usage]


HELP = (
    "```\nUsage: tool add [OPTIONS] TABLE\n\n  Add a column.\n\nOptions:\n"
    + "".join(f"  --quux{n} TEXT      Something that nobody asks about\n" for n in range(30))
    + "  --dimensions TEXT   Number of coordinates of a point,\n                      "
    "such as XYZ\n  -h, --help          Show this message\n```"
)


def test_an_option_is_shown_with_its_description_however_late_the_usage_message_has_it() -> None:
    shown = quote_of("how do I add a point with three coordinates?", Page=HELP)
    assert "`--dimensions TEXT`: Number of coordinates of a point, such as XYZ" in shown
    assert shown[0].startswith("```\nUsage: tool add")


def test_room_that_the_best_section_leaves_goes_to_further_ones_that_fit() -> None:
    shown = quote_of(
        "how do I drain the pump?",
        Pump="The pump is drained by its lower valve.",
        Season="Drain the pump before the first frost of each year.",
        Paint="A coat of paint lasts for nine years in the sun.",
    )
    assert "The pump is drained by its lower valve." in shown
    assert "Drain the pump before the first frost of each year." in shown
    assert not any("paint" in block for block in shown)


def test_a_step_that_announces_its_command_answers_with_it() -> None:
    text = (
        "1. Collect the badge.\n2. VPN: import the key, then run:\n\n```sh\nwg-quick up "
        "office\n```\n"
    )
    assert quote_of("vpn", guide=text)[-1] == "```sh\nwg-quick up office\n```"


def test_the_end_of_output_is_no_answer_where_a_sentence_fits() -> None:
    said = [
        {"text": "prune old backups: 12 of 40 files\ndone\n```\n", "begins_in_code": True},
        {"text": "The old ones go with a run of prune."},
        {"text": "Backups are made at night."},
    ]
    sources = [
        AnswerSource(
            number=n, kind="passage", rank=n, id=str(n), document=f"{n}.md", score=0.5, **one
        )
        for n, one in enumerate(said, 1)
    ]
    assert quote_blocks("prune old backups", sources, None)[0].text == said[1]["text"]


def test_an_answer_that_abstains_names_the_nearest_passages(asked: Any) -> None:
    found, tools = asked
    weak = found.model_copy(update={"reasons": (Reason.ABSTAINED,)})
    answer = write_answer(weak, model=None, **tools)
    assert (answer.mode, answer.sentences) == ("no_answer", ())
    assert answer.text.startswith(f"{NO_ANSWER}\n\nNearest:\n\n- **")
    assert "The Rhine flows from Basel" in answer.text


def test_nothing_is_quoted_where_no_sentence_fits() -> None:
    assert quote_of("who painted the ceiling?", Bees="Bees live in hives.") == []


SETUP = (
    "Text before.\n\nInstall the server like this:\n\n    $ pip install it\n\n"
    + "Filler of the page. " * 30
)
STEPS = "Filler of the page. " * 30 + "\n\n1. Stop the mill.\n2. Drain the pump.\n3. Start again.\n"


@pytest.mark.parametrize(
    ("question", "page", "told"),
    [
        (
            "how is the server installed?",
            SETUP,
            ["Install the server like this:", "```\n$ pip install it\n```"],
        ),
        (
            "how do I drain the pump?",
            STEPS,
            ["1. Stop the mill.", "2. Drain the pump.", "3. Start again."],
        ),
    ],
)
def test_a_command_comes_with_its_line_and_a_step_with_its_list(
    question: str, page: str, told: list[str]
) -> None:
    shown = quote_of(question, Page=page)
    assert [one for one in shown if one in told] == told


@pytest.mark.parametrize(
    ("page", "told"),
    [
        (
            "The size of a page of rows. The page size defaults to 1,000 rows.",
            "**Default**: 1,000 rows",
        ),
        ("- `page`: size of a page, default is `None`.", "**Default**: `None`"),
    ],
)
def test_a_default_has_a_line_of_its_own(page: str, told: str) -> None:
    assert quote_of("what is the default page size?", Rows=page)[0] == told
    assert told not in quote_of("what is a page size?", Rows=page)


@pytest.mark.parametrize(
    ("question", "page"),
    [
        ("what is the default port?", "The port is 9090. Workers have a default: 8080 megabytes."),
        ("how do I change the default port?", "The port can be changed; its default is 8080."),
        ("which default port?", "Ports are listed. The workers' queue defaults to 8080 jobs."),
    ],
)
def test_a_default_of_something_else_is_no_default_of_what_is_asked(
    question: str, page: str
) -> None:
    assert not any(text.startswith("**Default**") for text in quote_of(question, Rows=page))


def test_of_several_defaults_in_a_sentence_the_one_that_is_asked_for_is_shown() -> None:
    page = "The server takes a port (default: 9090) and a number of workers (default: 4)."
    assert quote_of("what is the default number of workers?", Rows=page)[0] == "**Default**: 4"
    assert quote_of("what is the default port?", Rows=page)[0] == "**Default**: 9090"


def test_the_default_of_a_table_is_that_of_the_row_of_what_is_asked() -> None:
    table = (
        "| option | default | meaning |\n|---|---|---|\n| `--port` | | port, 0 for a free port |\n"
        "| `--host` | `127.0.0.1` | address for the port |\n| `--workers` | `1` | processes |\n"
    )
    assert "**Default**: `1`" in quote_of("what is the default number of workers?", Serve=table)
    shown = quote_of("what is the default port?", Serve=table)
    assert not any(text.startswith("**Default**") for text in shown)


def test_a_row_that_was_cut_off_gets_the_heading_of_its_table() -> None:
    texts = [
        "| setting | default | meaning |\n|---|---|---|\n| `PUMP_HOME` | `pump` | its folder |",
        "| `PUMP_PORT` | `8377` | port that the pump listens on |",
    ]
    sources = [
        AnswerSource(
            number=number,
            kind="passage",
            rank=number,
            id=str(number),
            document="settings.md",
            headings=("Settings",),
            text=text,
        )
        for number, text in enumerate(texts, 1)
    ]
    shown = [
        block.text for block in quote_blocks("what is the default of PUMP_PORT?", sources, None)
    ]
    assert shown[:2] == [
        "**Default**: `8377`",
        "| setting | default | meaning |\n|---|---|---|\n"
        "| `PUMP_PORT` | `8377` | port that the pump listens on |",
    ]


def test_a_row_without_the_heading_of_its_table_reads_as_a_term() -> None:
    row = "| `PUMP_PORT` | `8377` | | yes | port that the pump listens on |"
    told = quote_of("which port does the pump listen on?", Settings=row)
    assert told == ["`PUMP_PORT`: `8377`, yes, port that the pump listens on"]


def test_a_table_that_is_not_shown_whole_says_so() -> None:
    rows = "\n".join(f"| pump{n} | {'drains the lower mill slowly ' * 8} |" for n in range(9))
    (table,) = quote_of("what drains pump3?", Pumps=f"| pump | what it does |\n|---|---|\n{rows}")
    assert table.splitlines()[-1] == "| … | |"
    whole = quote_of("what is pump1?", Pumps="| pump | what |\n|---|---|\n| pump1 | drains |")
    assert "…" not in whole[0]


def test_passages_of_one_section_stand_together() -> None:
    sections = [("Pump",), ("Mill",), ("Pump",)]
    texts = ["The pump is drained first.", "The mill has a gate.", "All valves open with a key."]
    sources = [
        AnswerSource(
            number=number,
            kind="passage",
            rank=number,
            id=str(number),
            document="guide.md",
            headings=headings,
            text=text,
        )
        for number, (headings, text) in enumerate(zip(sections, texts, strict=True), 1)
    ]
    shown = quote_blocks("drained, gate, valves", sources, None)
    assert [block.citations for block in shown] == [(1,), (3,), (2,)]


def test_of_a_row_too_long_to_show_the_cells_that_answer_are_shown_under_their_names() -> None:
    junior = " ".join(f"Word{number} is learned slowly." for number in range(30))
    row = f"| **Craft** | {junior} | The lead has duties: a roadmap. |"
    told = quote_of(
        "which duties has a lead?", a=f"| Skill | Junior | Lead |\n|---|---|---|\n{row}"
    )
    assert told == ["**Craft, Lead**: The lead has duties: a roadmap."]


def test_nothing_is_announced_that_is_not_shown_and_a_nested_item_stands_at_the_margin() -> None:
    many = "\n".join(f"- duty {number}: {'word ' * 130}" for number in range(4))
    assert quote_of("who leads a team?", a=f"Ann leads a team. Her duties are:\n\n{many}") == [
        "Ann leads a team. …"
    ]
    deep = f"- {'one ' * 130}\n    - two leads: {'two ' * 130}\n        - ann leads a team"
    assert quote_of("who is ann?", a=deep)[-1] == "- ann leads a team"


def test_a_paragraph_is_shown_whole_where_there_is_room() -> None:
    page = (
        "If you become the first to care for a child, you can be away for up to 16 weeks with all "
        "of your pay. If you "
        "become the second to care for it, you can be away for up to 6 weeks with all of your pay. "
        "You may choose to "
        "be away for longer without any pay, as the first or as the second. The leave that parents "
        "take must lie "
        "in the first year after the birth or the arrival of the child, whatever the country in "
        "which you all live."
    )
    assert quote_of("how long is the leave that parents take?", leave=page) == [page]


def test_a_long_page_is_cut_to_what_fits_the_question() -> None:
    code = "\n".join(f"    line_{n} = {n}" for n in range(60)) + "\n    drain_pump()\n"
    shown = quote_of(
        "how do I drain the pump?", Page=f"{STEPS}\nThe code to drain the pump::\n\n{code}"
    )
    lines = [line for one in shown if one.startswith("```") for line in one.split("\n")[1:-1]]
    assert "drain_pump()" in lines
    assert len(lines) <= MAX_CODE_LINES
    assert sum(len(one.split()) for one in shown if not one.startswith("```")) <= MAX_WORDS


def test_a_right_reply_is_streamed_and_its_numbers_are_sources_of_the_turn(
    asked: Any, endpoint: ChatEndpoint
) -> None:
    found, tools = asked
    rhine = number_of(found, tools, "rhine.md")
    endpoint.pieces = [
        "The Rhine flows from Basel ",
        f"to the North Sea [{rhine}",
        "]. It carries 300",
        f" ships a day. [{rhine}]",
    ]
    events = list(stream_answer(found, model=model_of(endpoint), **tools))
    assert [one.name for one in events] == ["sources", "cost", "sentence", "sentence", "answer"]
    answer = events[-1].value
    assert (answer.mode, answer.model, answer.unknown_citations) == ("written", "writer", ())
    assert [(one.citations, one.is_supported) for one in answer.sentences] == [
        ((rhine,), True),
        ((rhine,), True),
    ]
    assert answer.cost.completion_tokens > 0
    told = endpoint.seen[0]["messages"][0]["content"]
    assert f"[{rhine}] Rhine" in told
    assert endpoint.seen[0]["stream"] is True


def test_a_wrong_reply_is_marked_sentence_by_sentence(asked: Any, endpoint: ChatEndpoint) -> None:
    found, tools = asked
    rhine, bread = (number_of(found, tools, name) for name in ("rhine.md", "bread.md"))
    endpoint.pieces = [
        f"The Rhine carries 700 ships a day [{rhine}]. ",
        f"Captain Ivanov sails on it [{rhine}]. ",
        "Elephants graze peacefully beside volcanoes. ",
        "Cargo is taxed twice [99]. ",
        f"The Rhine flows from Basel to the North Sea [{rhine}][{bread}].",
    ]
    answer = write_answer(found, model=model_of(endpoint), **tools)
    problems = [one.problem for one in answer.sentences]
    assert "does not hold 700" in problems[0]
    assert "does not name Ivanov" in problems[1]
    assert problems[2] == "it cites no source"
    assert problems[3] == "it cites 99, which is no source of this turn"
    assert answer.sentences[4].is_supported
    assert answer.unknown_citations == (99,)
    assert answer.text.count("(unsupported)") == 4
    assert "[99]" not in answer.text


def test_a_sentence_without_a_citation_gets_the_source_that_states_it(
    asked: Any, endpoint: ChatEndpoint
) -> None:
    found, tools = asked
    endpoint.pieces = ["The Rhine carries 300 ships a day."]
    (sentence,) = write_answer(found, model=model_of(endpoint), **tools).sentences
    assert sentence.citations == (number_of(found, tools, "rhine.md"),)


def test_a_model_that_finds_no_answer_may_say_so(asked: Any, endpoint: ChatEndpoint) -> None:
    found, tools = asked
    endpoint.pieces = [NO_ANSWER]
    answer = write_answer(found, model=model_of(endpoint), **tools)
    assert [(one.text, one.is_supported) for one in answer.sentences] == [(NO_ANSWER, True)]


@pytest.mark.parametrize(
    ("status", "content_type", "raw", "told"),
    [
        (200, "text/event-stream", b"data: [DONE]\n\n", "wrote no sentence"),
        (200, "text/event-stream", b"", "wrote no sentence"),
        (200, "text/event-stream", b"data: {not json\n\n", "not JSON"),
        (200, "text/event-stream", b"data: [1]\n\n", "wrote no sentence"),
        (
            200,
            "text/event-stream",
            b'data: {"choices": [{"delta": {"content": 7}}]}\n\n',
            "wrote no sentence",
        ),
        (200, "text/event-stream", b"data: " + b"x" * (2 << 20), "wrote no sentence"),
        (200, "application/json", b'{"choices": []}', "no text in the answer"),
        (500, "text/plain", b"boom", "HTTP 500: boom"),
        (401, "text/plain", b"who are you", "HTTP 401"),
    ],
)
def test_an_empty_broken_or_refused_reply_is_replaced_by_quotation(
    asked: Any, endpoint: ChatEndpoint, status: int, content_type: str, raw: bytes, told: str
) -> None:
    found, tools = asked
    endpoint.status, endpoint.content_type, endpoint.raw = status, content_type, raw
    answer = write_answer(found, model=model_of(endpoint), **tools)
    assert answer.mode == "extracted"
    assert told in answer.problem
    assert answer.sentences


def test_an_endpoint_that_does_not_stream_is_read_too(asked: Any, endpoint: ChatEndpoint) -> None:
    found, tools = asked
    endpoint.content_type = "application/json"
    endpoint.raw = b'{"choices": [{"message": {"content": "The Rhine carries 300 ships a day."}}]}'
    assert write_answer(found, model=model_of(endpoint), **tools).mode == "written"


def test_a_reply_that_breaks_off_keeps_its_sentences(asked: Any, endpoint: ChatEndpoint) -> None:
    found, tools = asked
    piece = '{"choices": [{"delta": {"content": "The Rhine carries 300 ships a day. And then"}}]}'
    endpoint.raw = f"data: {piece}\n\ndata: broken\n\n".encode()
    answer = write_answer(found, model=model_of(endpoint), **tools)
    assert [one.text for one in answer.sentences] == ["The Rhine carries 300 ships a day."]
    assert answer.problem.startswith("the reply broke off")


def test_a_slow_reply_ends_at_its_time_limit(asked: Any, endpoint: ChatEndpoint) -> None:
    found, tools = asked
    endpoint.pieces, endpoint.pause = ["word "] * 1000, 0.05
    answer = write_answer(found, model=model_of(endpoint, timeout_seconds=1.0), **tools)
    assert "did not end in time" in answer.problem
    wait_until(lambda: endpoint.seen)
    assert len(endpoint.seen) == 1


def test_an_endless_reply_ends_at_its_length(asked: Any, endpoint: ChatEndpoint) -> None:
    found, tools = asked
    endpoint.pieces = ["a very long word " * 100] * 1000
    answer = write_answer(
        found, model=model_of(endpoint), limits=AnswerLimits(completion_tokens=16), **tools
    )
    assert len(answer.text) < 16 * 16 + 200


def test_marks_that_a_terminal_or_page_would_obey_are_removed(
    asked: Any, endpoint: ChatEndpoint
) -> None:
    found, tools = asked
    endpoint.pieces = ["\x1b[2JThe Rhine\u202e carries\x00 300 ships a day.\x07"]
    (sentence,) = write_answer(found, model=model_of(endpoint), **tools).sentences
    assert sentence.text == "The Rhine carries 300 ships a day."


def test_the_cost_is_told_and_capped_before_any_call(asked: Any, endpoint: ChatEndpoint) -> None:
    found, tools = asked
    told = write_answer(found, model=model_of(endpoint), estimate_only=True, **tools)
    assert (told.mode, told.cost.completion_tokens_at_most) == ("estimate", 512)
    assert told.cost.prompt_tokens > 100
    tight = AnswerLimits(completion_tokens=16, total_tokens=told.cost.prompt_tokens)
    fewer = write_answer(found, model=model_of(endpoint), estimate_only=True, limits=tight, **tools)
    assert 0 < len(fewer.sources) < len(told.sources)
    assert fewer.cost.prompt_tokens + 16 <= tight.total_tokens
    with pytest.raises(AnswerBudgetError, match="raise token_cap"):
        write_answer(
            found,
            model=model_of(endpoint),
            limits=AnswerLimits(completion_tokens=16, total_tokens=60),
            **tools,
        )
    assert endpoint.seen == []


def test_marks_are_read_wherever_models_put_them() -> None:
    text = "One is so [1, 2]. Two is so. [3] Three [4][5] is so!"
    assert list(split_reply(text)) == [
        ("One is so.", (1, 2)),
        ("Two is so.", (3,)),
        ("Three is so!", (4, 5)),
    ]


def test_a_paraphrase_is_supported_and_another_subject_is_not() -> None:
    source = AnswerSource(
        number=1,
        kind="passage",
        rank=1,
        id="c",
        title="Parser",
        text="The parser reads tokens and builds a syntax tree.",
    )
    ask = "What does the parser do?"
    assert check_sentence("It builds a syntax tree from tokens.", (1,), [source], ask).is_supported
    assert not check_sentence("It sends mail to every customer.", (1,), [source], ask).is_supported
