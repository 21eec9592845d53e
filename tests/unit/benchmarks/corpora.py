"""Corpora that can be checked by hand, and a bench that builds them with the hashing embedder."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from benchmarks.evaluation.workbench import Workbench
from hades.providers.tokens import MiniLmTokenizer
from hades.retrieval.pipeline import Tools
from hades.wiring import open_build_context, open_hades
from tests.homes import settings_of

PASSAGES = [
    {
        "id": "p1",
        "title": "Lake Orin",
        "text": "Lake Orin lies in Vesta. The painter Ada Holm was born at Lake Orin.",
    },
    {
        "id": "p2",
        "title": "Ada Holm",
        "text": "Ada Holm painted ships. Ada Holm studied in Karst under Jan Brod.",
    },
    {
        "id": "p3",
        "title": "Jan Brod",
        "text": "Jan Brod taught drawing in Karst. Jan Brod was the teacher of Ada Holm.",
    },
    {"id": "p4", "title": "Pike", "text": "Pike live in cold water and hunt small fish."},
    {
        "id": "p5",
        "title": "Vesta",
        "text": "Vesta is a land of lakes. Lake Orin is the largest lake of Vesta.",
    },
]
QUESTIONS = [
    {
        "id": "q1",
        "question": "Who taught the painter born at Lake Orin?",
        "gold": ["p1", "p2"],
        "type": "bridge",
    },
    {
        "id": "q2",
        "question": "Where did Jan Brod teach?",
        "gold": ["p3"],
        "type": "single",
        "answer": "Karst",
    },
    {
        "id": "q3",
        "question": "What do Pike hunt?",
        "gold": ["p4"],
        "type": "single",
        "answer": "yes",
    },
]
PAPERS = [
    {
        "id": "1",
        "title": "Parsing With Trees",
        "abstract": "Parsing With Trees maps words to Tree Banks.",
        "authors": ["A. Ames"],
    },
    {
        "id": "2",
        "title": "Tree Banks At Scale",
        "abstract": "Tree Banks hold parsed sentences.",
        "authors": ["B. Bohr"],
    },
    {
        "id": "3",
        "title": "Neural Chart Decoding",
        "abstract": "Chart decoding with networks.",
        "authors": ["C. Cole"],
    },
    {
        "id": "4",
        "title": "Speech Lattices",
        "abstract": "Lattices hold what was said.",
        "authors": ["D. Dahl"],
    },
]
CITATIONS = [
    {"src": "1", "dst": "2", "n_mentions": 2},
    {"src": "3", "dst": "1", "n_mentions": 1},
    {"src": "4", "dst": "2", "n_mentions": 1},
]
CONTEXTS = [
    {"src": "1", "dst": "2", "context": "We train on tree banks of parsed sentences [2]."},
    {"src": "3", "dst": "1", "context": "Parsing with trees maps words to structure [1]."},
]
LINKS = [
    {"id": "1", "repo": "ames/trees"},
    {"id": "3", "repo": "ames/trees"},
    {"id": "2", "repo": "bohr/banks"},
]


def write_rows(path: Path, rows: Sequence[Mapping[str, Any]]) -> Path:
    """Rows as a file of JSON lines."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), "utf-8")
    return path


@contextmanager
def hashing_bench(home: Path) -> Iterator[Workbench]:
    """A home of its own that needs no model."""
    settings = settings_of(home)
    with open_hades(settings) as hades, open_build_context(settings) as context:
        tools = Tools(MiniLmTokenizer(), hades.embedder, settings.hirag_pathrag, settings.hipporag)
        yield Workbench(context, hades.ingest, tools)
