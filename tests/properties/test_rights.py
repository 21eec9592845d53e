"""Whoever asks sees nothing of a document that they may not read, on any surface, through random
changes of rights, syncs, nights and forgetting.
"""

from __future__ import annotations

import json
import random
import re
from collections.abc import Iterator
from contextlib import closing, contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
import yaml

from hades.api import Hades
from hades.errors import HadesError
from hades.ingest.stated_rights import FILE
from hades.ports.store import Mode
from hades.settings.tree import Settings
from hades.snapshot.rights_file import Readers, asker_of
from hades.surfaces.access.contexts import LIMITED, Service, ServiceContext
from hades.surfaces.access.limits import Caller, Door
from hades.surfaces.capabilities.capability import document_of
from hades.surfaces.capabilities.registry import CAPABILITIES
from hades.wiring import open_hades
from tests.command_line import run
from tests.homes import settings_of

CAPABILITY = {capability.name: capability for capability in CAPABILITIES}
SHARED = ("Ada Holm", "Jan Brod", "Lake Orin", "Karst", "Vesta")
GROUPS = ("hr", "legal", "board")
USERS = ("anna", "bob", None)
FOLDERS = ("open", "mixed", "closed")
RECIPES = ("auto", "vector", "lexical", "pathrag", "hirag_pathrag", "hipporag")
SECRET = re.compile(r"zq[a-z]{5}")
AT = datetime(2026, 1, 2, tzinfo=UTC)


class World:
    """A folder of pages with rights, its home, and what each page alone says."""

    def __init__(self, folder: Path, seed: int) -> None:
        self.chance = random.Random(seed)
        self.pages = folder / "pages"
        self.settings: Settings = settings_of(folder / "home")
        self.owners: dict[str, str] = {}  # secret word -> path of its page
        self.rules: dict[str, list[str]] = {}
        self.readers: dict[str, Readers] = {}  # by path, as of the last sync
        self.published: set[str] = set()
        for _ in range(9):
            self.write_page()
        self.change_rights()

    def write_page(self, path: str | None = None) -> None:
        """A page with a word that nothing else says, in its name, title, text and tags."""
        secret = "zq" + "".join(self.chance.choices("abcdefghijklmnopqrstuvwxyz", k=5))
        name = self.chance.choice([secret, f"page{len(self.owners)}"])
        path = path or f"{self.chance.choice(FOLDERS)}/{name}.md"
        self.owners |= dict.fromkeys((secret, *SECRET.findall(path)), path)
        first, second, third = self.chance.sample(SHARED, 3)
        name = secret.title()
        text = (
            f"---\ntags: [{secret}tag]\nauthor: {name}\n---\n# {name} Report\n\n"
            f"{first} {name} is a painter who met {second} in {third}.\n\n"
            f"{second}, also called {name}, signed the {name} Treaty with {first}.\n"
        )
        plain = [other for other in self.owners.values() if not SECRET.search(other)]
        if plain:
            text += f"\nSee [it](../{self.chance.choice(plain)}).\n"
        file = self.pages / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)

    def change_rights(self) -> None:
        """Other rules; they hold from the next sync on."""
        patterns = ["*", "mixed/", "closed/", "open/", "z*.md", "zq[a-m]*"]
        self.rules = {}
        for pattern in self.chance.sample(patterns, self.chance.randrange(1, 4)):
            names = [*GROUPS, "user:anna", "user:bob", "public"]
            self.rules[pattern] = self.chance.sample(names, self.chance.randrange(3))
        (self.pages / FILE).parent.mkdir(parents=True, exist_ok=True)
        (self.pages / FILE).write_text(yaml.safe_dump(self.rules, sort_keys=False))

    def sync(self, hades: Hades) -> None:
        """Read the folder again, without a night."""
        hades.ingest.documents(self.pages)
        for file in self.pages.rglob("*.md"):
            path = file.relative_to(self.pages).as_posix()
            self.readers[path] = self._readers_by_hand(path)

    def _readers_by_hand(self, path: str) -> Readers:
        folder, _, name = path.partition("/")
        fits = {
            "*": True,
            f"{folder}/": True,
            "z*.md": name.startswith("z"),
            "zq[a-m]*": name.startswith("zq") and name[2] in "abcdefghijklm",
        }
        readers: Readers = ("public",)
        for pattern, names in self.rules.items():
            if fits.get(pattern, False):
                readers = tuple(names)
        return readers

    def step(self) -> None:
        """One thing that happens to a corpus."""
        action = self.chance.choice(
            ["rights", "rights", "edit", "new", "delete", "forget", "night"]
        )
        files = sorted(self.pages.rglob("*.md"))
        chosen = self.chance.choice(files).relative_to(self.pages).as_posix()
        with open_hades(self.settings) as hades:
            if action == "rights":
                self.change_rights()
            elif action == "edit":
                self.write_page(chosen)
            elif action == "new":
                self.write_page()
            elif action == "delete" and len(files) > 4:
                (self.pages / chosen).unlink()
            elif action == "forget" and len(files) > 4:
                (self.pages / chosen).unlink()
                hades.forget([chosen])
            self.sync(hades)
            if action == "night":
                hades.build()
                self.published = {
                    file.relative_to(self.pages).as_posix() for file in self.pages.rglob("*.md")
                }

    def may_read(self, asker: Readers, path: str) -> bool:
        if path == "memory":
            return not self.hides_some()
        readers = self.readers.get(path, ())
        return "public" in readers or bool(set(asker) & set(readers))

    def hides_some(self) -> bool:
        """Whether some document is not for everybody."""
        return any("public" not in readers for readers in self.readers.values())


@contextmanager
def open_world(folder: Path, seed: int) -> Iterator[tuple[World, Service]]:
    world = World(folder, seed)
    with open_hades(world.settings) as hades:
        world.sync(hades)
        hades.build()
        hades.memory.add("design/zqmemry", "Ada Holm keeps the zqmemry plan in Karst.")
    world.published = set(world.readers)
    world.owners["zqmemry"] = "memory"
    with closing(Service(world.settings, Door(Mode.READ_ONLY))) as service:
        yield world, service


def ask(
    world: World, service: Service, surface: str, who: tuple[str | None, tuple[str, ...]]
) -> tuple[str, str]:
    """What was asked, and everything that the surface said."""
    chance = world.chance
    words = [*SHARED, *world.owners, "painter", "treaty", "report"]
    text = " ".join(["who signed", *chance.sample(words, chance.randrange(1, 4))])
    recipe = chance.choice(RECIPES)
    name = chance.choice(["query", "answer"])
    user, groups = who
    try:
        if surface == "python":
            with open_hades(world.settings) as hades:
                answer = hades.retrieve(text, as_user=user, groups=groups, recipe=recipe)
            return text, answer.model_dump_json()
        if surface == "command line":
            options = ["--as-user", user] if user else []
            options += ["--groups", ",".join(groups)]
            plain = [] if chance.random() < 0.5 else ["--json"]
            done = run(name, text, "--recipe", recipe, *options, *plain)
            assert done.exit_code == 0, done.output
            return text, done.output
        caller = service.admit(Caller("guest", Mode.READ_ONLY, names=asker_of(user, groups)))
        context = ServiceContext(service, "guest", Mode.READ_ONLY, caller.limit, caller.asker)
        given: dict[str, Any] = {"query": text, "recipe": recipe}
        if surface == "any capability" and world.hides_some():
            name = chance.choice([*CAPABILITY, *8 * sorted(LIMITED)])
            request = CAPABILITY[name].request.model_construct(query=text)
            if name in LIMITED:
                request = CAPABILITY[name].check({"query": text})
        else:
            request = CAPABILITY[name].check(given | ({"anyway": True} if name == "query" else {}))
        reply = document_of(CAPABILITY[name].call(request, context))
        assert name in LIMITED or not world.hides_some()
        return text, json.dumps(reply, default=str)
    except HadesError as error:
        return text, str(error)


def find_leaks(folder: Path, seed: int, rounds: int, calls: int) -> list[str]:
    """What was said of documents to those who may not read them."""
    leaks = []
    shown = 0
    with open_world(folder, seed) as (world, service):
        for _ in range(rounds):
            for _ in range(calls):
                groups = tuple(world.chance.sample(GROUPS, world.chance.randrange(3)))
                who = world.chance.choice(USERS), groups
                asker = asker_of(*who)
                surfaces = ("service", "any capability", "python", "command line")
                surface = world.chance.choices(surfaces, (70, 12, 9, 9))[0]
                question, reply = ask(world, service, surface, who)
                said = set(SECRET.findall(reply.casefold()))
                said -= set(SECRET.findall(question.casefold()))
                shown += bool(said)
                hidden = [word for word in said if not world.may_read(asker, world.owners[word])]
                if hidden:
                    leaks.append(f"{surface} {who} {question}: {hidden} in {reply[:3000]}")
                leaks += wrong_counts(world, asker, reply)
            world.step()
    assert shown > rounds * calls / 8  # who may read something is shown something
    return leaks


def wrong_counts(world: World, asker: Readers, reply: str) -> list[str]:
    """Replies that count documents which the asker may not read."""
    counted = re.findall(r'"passages": ?(\d+)', reply)
    visible = [path for path in world.readers if world.may_read(asker, path)]
    return [reply for count in counted if int(count) > 2 * len(visible)]


@pytest.fixture(autouse=True)
def _environment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HADES_HOME", str(tmp_path / "home"))
    monkeypatch.setenv("HADES_EMBEDDER", "hashing")


@pytest.mark.parametrize(
    ("seed", "rounds", "calls"),
    [
        (1, 6, 25),
        (2, 6, 25),
        *(pytest.param(seed, 20, 125, marks=pytest.mark.soak) for seed in range(11, 13)),
    ],
)
def test_nobody_is_told_of_a_document_that_they_may_not_read(
    tmp_path: Path, seed: int, rounds: int, calls: int
) -> None:
    assert find_leaks(tmp_path, seed, rounds, calls) == []
