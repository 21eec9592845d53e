"""An answer as a picture: well-formed, every name and relation in it, arrows the way the edges are stored."""

from xml.etree import ElementTree

import pytest

from hades.reports.page import answer_picture
from hades.settings.tree import Settings
from hades.wiring import open_hades
from schemas.answer import Retrieval

SVG = "{http://www.w3.org/2000/svg}"


@pytest.fixture(scope="module")
def answer(tmp_path_factory) -> Retrieval:
    folder = tmp_path_factory.mktemp("picture")
    pages = folder / "pages"
    pages.mkdir()
    (pages / "a.md").write_text(
        "# Ada Lovelace\n\nAda Lovelace worked with Charles Babbage on the Analytical Engine.\n"
    )
    (pages / "b.md").write_text("# Charles Babbage\n\nCharles Babbage designed the Analytical Engine in London.\n")
    with open_hades(Settings(home=folder / "home", embedder="hashing")) as hades:
        hades.ingest.documents(pages)
        hades.publish()
        return hades.retrieve("who designed the <Analytical> Engine & why?", recipe="pathrag")


def test_every_path_is_a_row_of_its_names_and_relations(answer):
    assert answer.paths
    texts = [one.text for one in ElementTree.fromstring(answer_picture(answer)).iter(f"{SVG}text")]
    assert texts[0] == "who designed the <Analytical> Engine & why?"
    for path in answer.paths:
        assert {node.name for node in path.nodes} <= set(texts)
        assert {edge.type for edge in path.edges} <= set(texts)


def test_arrows_point_as_edges_are_stored(answer):
    drawn = ElementTree.fromstring(answer_picture(answer))
    arrows = [one.get("d") for one in drawn.iter(f"{SVG}path") if one.get("class") == "way"]
    ways = [edge.source == path.nodes[place].id for path in answer.paths for place, edge in enumerate(path.edges)]
    assert len(arrows) == len(ways)
    for arrow, outbound in zip(arrows, ways, strict=True):
        begin, end = (float(part.split()[0]) for part in arrow.removeprefix("M").split("L"))
        assert (begin < end) == outbound


def test_an_answer_without_paths_says_so(answer):
    bare = answer.model_copy(update={"paths": ()})
    assert "no path; the passages answer" in answer_picture(bare)
