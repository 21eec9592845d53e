"""A small published graph for tests of the MCP server."""

from __future__ import annotations

from pathlib import Path

from hades.settings.tree import Settings
from hades.wiring import open_hades
from tests.homes import settings_of

TEXTS = {
    "ada.md": "# Ada Lovelace\n\nAda Lovelace worked with Charles Babbage on the Analytical Engine "
    "in London.\n",
    "babbage.md": "# Charles Babbage\n\nCharles Babbage designed the Analytical Engine. He was "
    "born in London.\n",
    "hopper.md": "---\ndate: 2020-05-17\n---\n# Grace Hopper\n\nGrace Hopper wrote the first "
    "compiler and admired Ada Lovelace.\n",
}
QUESTION = "How is Ada Lovelace connected to London?"
READING = [
    "graph_query_paths",
    "hades_answer",
    "hades_explain",
    "hipporag_retrieve",
    "memory_at",
    "memory_latest",
    "memory_recall",
    "memory_search",
    "pathrag_retrieve",
]
WRITING = ["graph_entity_update", "memory_add", "memory_rate", "memory_trust"]


def make_home(folder: Path) -> Settings:
    """Ingested and published under `folder/home`, with hashing vectors."""
    documents = folder / "docs"
    documents.mkdir(parents=True)
    for name, text in TEXTS.items():
        (documents / name).write_text(text, encoding="utf-8")
    settings = settings_of(folder / "home")
    with open_hades(settings) as hades:
        hades.ingest.documents(documents)
        hades.publish()
    return settings
