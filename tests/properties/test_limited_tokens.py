"""A caller whose token is limited to a part of the corpus sees nothing of the rest, whatever is
asked.
"""

from __future__ import annotations

import json
import random
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from hades.errors import HadesError
from hades.ports.graph import DocumentFilter
from hades.ports.store import Mode
from hades.settings.tree import Settings
from hades.surfaces.access.contexts import LIMITED, Service, ServiceContext
from hades.surfaces.access.limits import CallerRefused, Door
from hades.surfaces.capabilities.capability import document_of
from hades.surfaces.capabilities.registry import CAPABILITIES
from hades.wiring import open_hades
from tests.homes import settings_of

NAMED = {one.name: one for one in CAPABILITIES}

SECRET = "zq"  # stands in every word that only the other documents hold
SHARED = ("Ada Holm", "Jan Brod", "Lake Orin", "Karst", "Vesta")
OPEN = ("Ines Wald", "Tarn Abbey", "Olga Reim")  # in open pages only
RECIPES = (
    "auto",
    "vector",
    "lexical",
    "hirag",
    "pathrag",
    "hirag_pathrag",
    "hipporag",
    "hipporag_multihop",
    "nexus",
)
LIMITS = (
    DocumentFilter(paths=("open/*",)),
    DocumentFilter(sources=("open",)),
    DocumentFilter(tags=("public",)),
    DocumentFilter(authors=("Mira",), types=("markdown",)),
)


def build_corpus(folder: Path, chance: random.Random) -> Settings:
    """Pages of two folders that speak of the same names; each has names of its own, those of
    `closed` are secret.
    """
    for place in range(12):
        is_closed = place % 2 == 1
        secret = f"{SECRET}{chance.randrange(1000)}".title()
        names = chance.sample(SHARED, 3)
        own = f"{names[0]} {secret}" if is_closed else names[0]
        lines = [
            f"---\ntags: [{SECRET + 'tag' if is_closed else 'public'}]\nauthor: "
            f"{secret if is_closed else 'Mira'}\n---",
            f"# {secret + ' Report' if is_closed else 'Page ' + str(place)}",
            f"{own} is a painter who met {names[1]} in {names[2]}.",
            f"{names[1]}, also called {secret}, works with {names[0]}."
            if is_closed
            else f"{names[1]} came by ship.",
            f"The {secret} Treaty was signed by {names[2]}."
            if is_closed
            else f"In {names[2]} it rained.",
            ""
            if is_closed
            else "{} is a sculptor who met {} in {}.".format(*chance.sample(OPEN, 3)),
        ]
        page = (
            folder
            / "pages"
            / ("closed" if is_closed else "open")
            / f"{secret if is_closed else place}.md"
        )
        page.parent.mkdir(parents=True, exist_ok=True)
        page.write_text("\n\n".join(lines))
    settings = settings_of(folder / "home")
    with open_hades(settings) as hades:
        hades.ingest.documents(folder / "pages")
        hades.build()
        hades.memory.add(f"design/{SECRET}", f"Ada Holm keeps the {SECRET}7 plan in Karst.")
    return settings


def random_call(chance: random.Random, turns: list[str]) -> tuple[str, dict[str, object]]:
    """A question in any recipe with any filter, also one that names what is hidden."""
    words = [
        *SHARED,
        *OPEN,
        "painter",
        "treaty",
        "ship",
        "plan",
        "report",
        f"{SECRET}{chance.randrange(1000)}",
    ]
    text = " ".join(["who", *chance.sample(words, chance.randrange(1, 5))])
    given: dict[str, object] = {"query": text, "recipe": chance.choice(RECIPES)}
    filters = {
        "path": ["closed/*"],
        "source": ["closed"],
        "tag": ["public"],
        "type": ["markdown"],
        "domain": "closed",
    }
    for name in chance.sample(list(filters), chance.randrange(3)):
        given[name] = filters[name]
    if turns and chance.random() < 0.3:
        given["follow"] = chance.choice(turns)
    if chance.random() < 0.5:
        return "answer", given
    extra = {
        "near": ["entities/x"],
        "level": chance.choice(["file", "symbol"]),
        "anyway": True,
        "max_paths": 10,
    }
    return "query", given | {
        name: extra[name] for name in chance.sample(list(extra), chance.randrange(3))
    }


def count_leaks(folder: Path, seed: int, calls: int) -> list[str]:
    """What replies and refusals to limited callers say of hidden documents, over random calls."""
    chance, leaks, told, shown = random.Random(seed), [], 0, 0
    with closing(Service(build_corpus(folder, chance), Door(Mode.READ_ONLY))) as service:
        everything = ServiceContext(service, "owner", Mode.READ_ONLY)
        seen = document_of(everything.ask(f"who is {SHARED[0]} with the treaty?"))
        assert SECRET in json.dumps(seen).casefold()  # who may see everything sees it
        turns = [seen["query_id"]]
        for _ in range(calls):
            context = ServiceContext(service, "guest", Mode.READ_ONLY, chance.choice(LIMITS))
            name, given = random_call(chance, turns)
            called = NAMED[name]
            try:
                reply = document_of(called.call(called.check(given), context))
                turns.append(reply["query_id"])
            except HadesError as error:
                reply = {"error": str(error)}
            said = json.dumps(reply, default=str).casefold()
            for asked in {
                str(given["query"]),
                str(reply.get("query", "")),
            }:  # what the caller said is no news
                for word in asked.casefold().split():
                    said = said.replace(word, "") if SECRET in word else said
            told += bool(reply.get("passages") or reply.get("sources"))
            shown += bool(reply.get("paths"))
            stray = [one for one in reply.get("paths", ()) if not is_of_open_pages(one)]
            counts_all = reply.get("excluded") is not None or reply.get("hierarchy")
            if SECRET in said or "closed/" in said.replace("closed/*", "") or counts_all or stray:
                leaks.append(f"{name} {given}: {said}")
    assert told > calls / 4  # callers do find what they may see
    assert shown  # paths too
    return leaks


def test_a_limited_caller_sees_paths_of_the_documents_inside(tmp_path: Path) -> None:
    with closing(
        Service(build_corpus(tmp_path, random.Random(3)), Door(Mode.READ_ONLY))
    ) as service:
        for recipe in ("auto", "pathrag"):
            reply = ServiceContext(service, "guest", Mode.READ_ONLY, LIMITS[0]).ask(
                f"who is {OPEN[0]}?", recipe=recipe
            )
            assert reply.document["paths"]
            assert all(map(is_of_open_pages, reply.document["paths"]))
            shared = ServiceContext(service, "guest", Mode.READ_ONLY, LIMITS[0]).ask(
                f"who is {SHARED[0]}?", recipe=recipe
            )
            assert all(
                map(is_of_open_pages, shared.document["paths"])
            )  # closed pages tell of Ada Holm as well


def is_of_open_pages(path: dict[str, Any]) -> bool:
    """Whether a path joins names that only open pages hold, by what those say."""
    names = [node["name"] for node in path["nodes"] if node["id"].startswith("entities/")]
    documents = [node["document"] for node in path["nodes"]] + [
        edge["provenance"]["doc"] for edge in path["edges"]
    ]
    return not set(names) & set(SHARED) and all(one.startswith("open/") for one in documents if one)


@pytest.mark.parametrize("seed", [1, 2])
def test_no_reply_tells_of_a_document_outside(tmp_path: Path, seed: int) -> None:
    assert count_leaks(tmp_path, seed, 60) == []


def test_a_limited_caller_may_ask_and_nothing_else(tmp_path: Path) -> None:
    settings = settings_of(tmp_path / "home")
    with open_hades(settings) as hades:
        hades.publish()
    with closing(Service(settings, Door(Mode.READ_ONLY))) as service:
        context = ServiceContext(service, "guest", Mode.READ_ONLY, LIMITS[0])
        for one in CAPABILITIES:
            if one.name not in LIMITED:
                with pytest.raises(CallerRefused, match="limited to a part of the corpus"):
                    one.call(one.request.model_construct(), context)
