"""Whether an answer shows the edge that joins the two things asked about.

    HADES_HOME=HOME python benchmarks/eval_connections.py [--sample 30] [--recipes auto,pathrag]
        [--json FILE]

HOME holds a published graph. Stored edges between two named entities are sampled by a hash of
their key, and each asks "How is A connected with B?". `shown` is the share of questions whose paths
hold an edge between A and B, `first` the share where it stands in the first path, and `prompt` the
share where the prompt names both ends in one line. `pathrag_retrieve` is `MemoryEnhancedPathRAG`,
which agents call: its window is that of the settings.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from statistics import mean
from typing import Any, NamedTuple

from rich.console import Console
from rich.table import Table

from hades.api import Hades
from hades.compat.pathrag import MemoryEnhancedPathRAG
from hades.ports.store import GraphStore, scan_rows
from hades.retrieval.core.words import PATH_TYPES
from hades.settings.load import load_settings
from hades.wiring import open_hades
from schemas.ids import content_key

CLASS = "pathrag_retrieve"
RECIPES = ("auto", "pathrag", "hirag_pathrag", CLASS)
UNCACHED = {"enable_caching": False}


class Connection(NamedTuple):
    """Two entities that a stored edge joins: their ids and their names."""

    ids: frozenset[str]
    names: tuple[str, str]

    @property
    def question(self) -> str:
        """What a reader would ask."""
        return f"How is {self.names[0]} connected with {self.names[1]}?"


class PathFound(NamedTuple):
    """One path of an answer: the pairs of entities that its edges join."""

    joins: list[frozenset[str]]


class Reply(NamedTuple):
    """The paths of an answer, best first, and its prompt."""

    paths: list[PathFound]
    prompt: str


Ask = Callable[[str], Reply]


def main() -> None:
    """Measure, print a table, and write the figures where asked."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--sample", type=int, default=30)
    parser.add_argument("--recipes", default=",".join(RECIPES))
    parser.add_argument("--json", type=Path)
    arguments = parser.parse_args()
    settings = load_settings()
    with open_hades(settings) as hades:
        connections = sample_connections(hades.store, arguments.sample)
        with MemoryEnhancedPathRAG(UNCACHED, settings=settings, answers=hades.answers) as rag:
            figures = {
                name: measure(connections, ask_by(name, hades, rag))
                for name in arguments.recipes.split(",")
            }
    show(figures)
    if arguments.json:
        arguments.json.write_text(json.dumps(figures, indent=1))


def sample_connections(store: GraphStore, size: int) -> list[Connection]:
    """At most this many pairs of entities with an edge, each pair once, the same at every run."""
    names = {
        f"entities/{row['_key']}": row["name"]
        for row in scan_rows(store, "entities", columns=["_key", "name"])
    }
    rows = scan_rows(store, "relations", columns=["_key", "_from", "_to", "type"])
    edges = [row for row in rows if row["type"] in PATH_TYPES and row["_from"] != row["_to"]]
    pairs: dict[frozenset[str], Connection] = {}
    for row in sorted(edges, key=lambda row: content_key("sample", row["_key"])):
        ends = row["_from"], row["_to"]
        if all(names.get(end) for end in ends):
            pair = frozenset(ends)
            pairs.setdefault(pair, Connection(pair, (names[ends[0]], names[ends[1]])))
    return list(pairs.values())[:size]


def ask_by(name: str, hades: Hades, rag: MemoryEnhancedPathRAG) -> Ask:
    """How a recipe, or the class that agents call, is asked."""

    def ask_recipe(question: str) -> Reply:
        answer = hades.retrieve(question, recipe=name)
        paths = [path.model_dump(mode="json") for path in answer.paths]
        return Reply([read_path(path) for path in paths], answer.prompt)

    def ask_class(question: str) -> Reply:
        answer = rag.retrieve_paths(question)
        prompt = rag.retrieve_and_format(question)["formatted_prompt"]
        return Reply([read_path(path) for path in answer["paths"]], prompt)

    return ask_class if name == CLASS else ask_recipe


def read_path(path: Mapping[str, Any]) -> PathFound:
    """The pairs of entities that the edges of a path join."""
    return PathFound([frozenset((edge["from"], edge["to"])) for edge in path["edges"]])


def measure(connections: Sequence[Connection], ask: Ask) -> dict[str, float]:
    """How often the joining edge is shown, stands in the first path, and is named in the prompt."""
    replies = [(pair, ask(pair.question)) for pair in connections]
    return {
        "questions": float(len(replies)),
        "shown": mean(is_joined(pair, reply.paths) for pair, reply in replies),
        "first": mean(is_joined(pair, reply.paths[:1]) for pair, reply in replies),
        "prompt": mean(is_named(pair, reply.prompt) for pair, reply in replies),
        "paths": mean(len(reply.paths) for _, reply in replies),
    }


def is_joined(pair: Connection, paths: Sequence[PathFound]) -> bool:
    """Whether an edge of the paths joins the two."""
    return any(pair.ids in path.joins for path in paths)


def is_named(pair: Connection, prompt: str) -> bool:
    """Whether a line of the prompt, other than the question, names both."""
    lines = [line for line in prompt.splitlines() if not line.startswith("Query:")]
    return any(all(name in line for name in pair.names) for line in lines)


def show(figures: Mapping[str, Mapping[str, float]]) -> None:
    """One row a recipe."""
    table = Table("", *next(iter(figures.values())))
    for name, row in figures.items():
        table.add_row(name, *(f"{value:,.3g}" for value in row.values()))
    Console().print(table)


if __name__ == "__main__":
    main()
