"""The encoder for a GPU, run by torch on the processor: texts packed without padding get the
vectors and signs that the processor's own graph gives them.
"""

from __future__ import annotations

import base64
import json
import logging
import tempfile
from pathlib import Path

import numpy as np
import pytest

from hades.providers import minilm
from hades.providers.minilm import INT8, MiniLmEmbedder, open_gpu_encoder, rounded_weights
from tests.command_line import run

TEXTS = [
    "Ada Lovelace worked with Charles Babbage.",
    "ok",
    "The nightly build reads the sources again, derives the graph and publishes it. " * 30,
    "def embed(texts): return [vector for vector in texts]",
    "Wo steht das Handbuch? 手册在哪里？",
]


@pytest.fixture
def embedder(same_weights: None) -> MiniLmEmbedder:
    return MiniLmEmbedder(Path(tempfile.gettempdir()) / "hades-test-models-int8")


@pytest.fixture(scope="module")
def encoder() -> minilm.GpuEncoder:
    from hades.providers.minilm_gpu import GpuEncoder

    return GpuEncoder(rounded_weights(INT8.read()), device="cpu")


@pytest.fixture(autouse=True)
def same_weights(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(minilm, "PACKAGES", (INT8,))


def test_packed_texts_get_the_vectors_of_the_processor(embedder, encoder):
    expected, expected_signs = embedder.embed_signs(TEXTS)
    ((vectors, signs),) = encoder.embed(minilm._token_ids(TEXTS))
    likeness = (vectors * expected).sum(axis=1)
    assert likeness[2:].min() >= minilm.LEAST_LIKENESS  # passages
    assert likeness.min() >= 0.995  # also of a single word, whose rounding nothing evens out
    for text_signs, wanted_signs in zip(signs, expected_signs, strict=True):
        bits, wanted_bits = (
            np.unpackbits(np.frombuffer(base64.b64decode(packed), np.uint8))
            for packed in (text_signs, wanted_signs)
        )
        assert len(bits) == len(wanted_bits)
        assert (bits == wanted_bits).mean() > 0.95


def test_texts_keep_their_order_over_several_batches(encoder, monkeypatch):
    from hades.providers import minilm_gpu

    ((together, signs),) = encoder.embed(minilm._token_ids(TEXTS))
    monkeypatch.setattr(minilm_gpu, "BATCH_TOKENS", 260)
    batches = list(encoder.embed(iter(minilm._token_ids(TEXTS))))
    assert len(batches) > 1
    assert np.allclose(np.concatenate([vectors for vectors, _ in batches]), together, atol=1e-5)
    assert [text_signs for _, batch_signs in batches for text_signs in batch_signs] == signs


def test_a_gpu_that_gives_other_vectors_is_not_used(tmp_path, encoder, monkeypatch, caplog):
    monkeypatch.setattr(minilm, "open_gpu_encoder", lambda weights, device: encoder)
    broken = rounded_weights(INT8.read())
    broken["encoder.layer.3.output.dense.weight"] *= 0.5
    monkeypatch.setattr(encoder, "_layers", type(encoder)(broken, "cpu")._layers)
    embedder = MiniLmEmbedder(tmp_path, device="cuda")
    with caplog.at_level(logging.WARNING):
        assert embedder.open_gpu() is None
    assert "unlike those of the processor" in caplog.text


def test_many_texts_go_to_the_gpu_and_a_question_stays_on_the_processor(
    embedder, encoder, monkeypatch
):
    opened = []

    def open_encoder(weights, device):
        opened.append(device)
        return encoder

    monkeypatch.setattr(minilm, "open_gpu_encoder", open_encoder)
    with_gpu = MiniLmEmbedder(embedder._cache_dir, device="cuda")
    assert with_gpu.embed(TEXTS).tobytes() == embedder.embed(TEXTS).tobytes()
    assert opened == []
    many = TEXTS[2:4] * (minilm.GPU_TEXTS // 2)
    vectors, signs = with_gpu.embed_signs(many)
    assert opened == ["cuda"]
    assert (len(vectors), len(signs)) == (len(many), len(many))
    assert np.allclose(vectors[0::2], vectors[0], atol=1e-6)
    assert (vectors[:2] * embedder.embed(TEXTS[2:4])).sum(axis=1).min() >= minilm.LEAST_LIKENESS


def test_without_a_gpu_the_processor_embeds_and_one_line_says_so(caplog):
    import torch

    if torch.cuda.is_available():
        pytest.skip("this machine has a GPU")
    with caplog.at_level(logging.WARNING):
        assert open_gpu_encoder(INT8, "cuda") is None
    (record,) = caplog.records
    assert "HADES_DEVICE=cuda: no GPU is used" in record.getMessage()
    assert "the processor embeds" in record.getMessage()


def test_the_doctor_says_what_embeds_and_how_fast(tmp_path: Path, monkeypatch):
    monkeypatch.setenv("HADES_HOME", str(tmp_path / "home"))
    monkeypatch.setenv("HADES_EMBEDDER", "minilm")
    monkeypatch.chdir(tmp_path)
    (tmp_path / "note.md").write_text("# Note\n\nThe store keeps rows.\n")
    assert run("ingest", "documents", ".").exit_code == 0
    document = json.loads(run("doctor", "--json").stdout)
    (check,) = [check for check in document["checks"] if check["name"] == "device"]
    assert "passages of 128 tokens a second" in check["found"]
