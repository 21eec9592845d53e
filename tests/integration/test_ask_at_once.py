"""A folder that was never read can be asked by its words at once; vectors and the graph arrive
later.
"""

from __future__ import annotations

from pathlib import Path

from hades.ingest.chunks import embed_range
from hades.ingest.phases import Phase
from hades.settings.tree import Settings
from hades.snapshot.pointer import snapshots
from hades.wiring import open_hades
from schemas.plan import Reason
from tests.command_line import run

PAGES = {
    "retry.md": "# Retries\n\nA request that fails is sent again three times, with a growing "
    "pause.\n",
    "proxy.md": "# Proxies\n\nTraffic goes through the address of the variable HTTPS_PROXY.\n",
    "cookies.md": "# Cookies\n\nA session stores cookies and sends them with the next request.\n",
    "logs.md": "# Logging\n\nSet the level to debug and each header is written to the log.\n",
}


def write_pages(folder: Path) -> Path:
    folder.mkdir()
    for name, text in PAGES.items():
        (folder / name).write_text(text)
    return folder


def test_words_answer_before_any_vector_is_made_and_say_how_much_is_ready(tmp_path: Path) -> None:
    folder = write_pages(tmp_path / "pages")
    with open_hades(Settings(home=tmp_path / "home", embedder="hashing")) as hades:
        hades.ingest.documents(folder, [Phase.NODES, Phase.CHUNKS])
        hades.publish()
        found = hades.retrieve("which pause is there when a request fails?")
        assert found.passages[0].document == "retry.md"
        assert Reason.EMBEDDINGS_MISSING in found.reasons
        assert found.why.startswith("vectors 0%")

        keys = [
            key
            for batch in hades.store.scan("doc_chunks", columns=["_key"])
            for key in batch["_key"].to_pylist()
        ]
        embed_range(hades.store, hades.embedder, keys[0], keys[1])
        hades.publish()
        assert hades.retrieve("where are cookies stored?").why.startswith("vectors 50%")

        hades.build()
        found = hades.retrieve("which pause is there when a request fails?")
        assert Reason.EMBEDDINGS_MISSING not in found.reasons
        assert "vectors" not in found.why


def test_a_watched_folder_says_when_it_can_be_asked_and_leaves_the_whole_build_only(
    tmp_path: Path,
) -> None:
    folder, home = write_pages(tmp_path / "pages"), tmp_path / "home"
    (folder / "scan.pdf").write_bytes(b"no PDF")
    environment = {"HADES_HOME": str(home), "HADES_EMBEDDER": "hashing"}
    first = run("watch", str(folder), "--once", **environment)
    assert first.exit_code == 0, first.output
    assert "ready to be asked by words after" in first.stderr
    assert "4 new; set aside: 1 malformed (`hades status` says why); snapshot" in first.stderr
    assert "1 update, 0 failed" in first.stdout
    assert len(snapshots(home)) == 1
    again = run("watch", str(folder), "--once", **environment)
    assert "ready to be asked by words" not in again.stderr
