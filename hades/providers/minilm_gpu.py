"""MiniLM on a GPU: half precision, and texts packed one behind the other without padding.

It is for nights: thousands of texts at a time. Questions are embedded on the processor, where
torch need not be loaded. Matrices are rounded as in the graph for the processor, so that both give
the same text nearly the same vector; `hades.providers.minilm` checks that before it mixes them.
"""

from __future__ import annotations

import base64
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.nn import functional
from torch.nn.attention.varlen import varlen_attn

LAYERS, HEADS, DIMENSION = 6, 12, 384
EPSILON = 1e-12
# Every batch has this many places for tokens, the last ones filled up, so that a product of
# matrices always has one shape and a text gets the same vector in whatever company it is.
BATCH_TOKENS = 65_536
MAX_TOKENS = 256
SIGN_TOKENS = 4
_BITS = (128, 64, 32, 16, 8, 4, 2, 1)

Packed = tuple[NDArray[np.float32], list[str]]


class GpuEncoder:
    """The layers of MiniLM as tensors of one device."""

    def __init__(self, weights: dict[str, NDArray[Any]], device: str = "cuda") -> None:
        self.device = torch.device(device)
        is_gpu = self.device.type == "cuda"
        self.name = torch.cuda.get_device_name(self.device) if is_gpu else "processor, by torch"

        if self.device.type == "cuda":
            kind = torch.float16
        else:
            kind = torch.float32

        self._weights = {
            name: torch.tensor(
                array,
                dtype=kind,
                device=self.device,
            )
            for name, array in weights.items()
        }
        self._layers = [self._layer(f"encoder.layer.{layer}.") for layer in range(LAYERS)]

    def embed(self, ids: Iterable[list[int]]) -> Iterator[Packed]:
        """Vectors of texts given by their token ids, and the signs of their tokens, a batch at a
        time, in order.
        """
        return map(self._embed_batch, _batches(ids))

    @torch.inference_mode()
    def _embed_batch(self, ids: Sequence[Sequence[int]]) -> Packed:
        lengths = np.fromiter(map(len, ids), np.int64, len(ids))
        flat_ids = np.fromiter(
            chain.from_iterable(ids),
            np.int64,
            int(lengths.sum()),
        )
        states = self._states(flat_ids, lengths)[: len(flat_ids)].float()
        sums = torch.segment_reduce(
            states,
            "sum",
            lengths=self._to_device(lengths),
        )
        vectors = functional.normalize(sums).cpu().numpy()
        return vectors, self._signs(states, lengths)

    def _states(self, flat_ids: NDArray[np.int64], lengths: NDArray[np.int64]) -> Tensor:
        """The state of each token after the last layer, (places, 384)."""
        if self.device.type == "cuda":
            n_places = BATCH_TOKENS
        else:
            n_places = len(flat_ids)

        ends = np.cumsum(lengths)
        places = np.zeros((2, n_places), np.int64)
        places[0, : len(flat_ids)] = flat_ids
        places[1, : len(flat_ids)] = np.arange(len(flat_ids)) - np.repeat(ends - lengths, lengths)
        token_ids, positions = self._to_device(places)
        starts = self._to_device(np.concatenate([[0], ends]).astype(np.int32))
        words = self._weights["embeddings.word_embeddings.weight"][token_ids]
        turns = self._weights["embeddings.position_embeddings.weight"][positions]
        kind = self._weights["embeddings.token_type_embeddings.weight"][0]
        states = self._norm(words + turns + kind, "embeddings.LayerNorm")

        for layer in self._layers:
            states = self._apply(layer, states, starts)

        return states

    def _apply(
        self,
        layer: dict[str, Any],
        states: Tensor,
        starts: Tensor,
    ) -> Tensor:
        """One layer of the encoder: attention inside each text, then the two dense layers."""
        joint = functional.linear(states, *layer["joint"])
        query, key, value = joint.view(len(states), 3, HEADS, -1).unbind(1)
        context = self._attend(query, key, value, starts).reshape(len(states), DIMENSION)
        mixed = functional.linear(context, *layer["mix"])
        states = self._norm(mixed + states, layer["name"] + "attention.output.LayerNorm")
        inner = functional.gelu(
            functional.linear(states, *layer["inner"]),
            approximate="tanh",
        )
        outer = functional.linear(inner, *layer["outer"])
        return self._norm(outer + states, layer["name"] + "output.LayerNorm")

    def _attend(
        self,
        query: Tensor,
        key: Tensor,
        value: Tensor,
        starts: Tensor,
    ) -> Tensor:
        """Attention of each text over its own tokens."""
        if self.device.type == "cuda":
            attended = varlen_attn(
                query,
                key,
                value,
                starts,
                starts,
                MAX_TOKENS,
                MAX_TOKENS,
            )
            if isinstance(attended, Tensor):
                return attended
            return attended[0]

        context = torch.empty_like(query)
        for start, end in zip(starts[:-1].tolist(), starts[1:].tolist(), strict=True):
            rows = slice(start, end)
            attended = functional.scaled_dot_product_attention(
                query[rows].transpose(0, 1),
                key[rows].transpose(0, 1),
                value[rows].transpose(0, 1),
            )
            context[rows] = attended.transpose(0, 1)

        return context

    def _signs(self, states: Tensor, lengths: NDArray[np.int64]) -> list[str]:
        """Of the mean state of each few tokens, [CLS] and [SEP] left out, a bit a channel."""
        ends = np.cumsum(lengths)
        is_inner = np.ones(len(states), np.bool_)
        is_inner[ends - 1] = is_inner[ends - lengths] = False
        inner_lengths = lengths - 2
        group_counts = -(-inner_lengths // SIGN_TOKENS)
        group_lengths = np.full(int(group_counts.sum()), SIGN_TOKENS)
        last_lengths = inner_lengths - (group_counts - 1) * SIGN_TOKENS
        group_ends = np.cumsum(group_counts)
        group_lengths[group_ends - 1] = last_lengths
        rows = functional.normalize(states[self._to_device(is_inner)])
        sums = torch.segment_reduce(
            rows,
            "sum",
            lengths=self._to_device(group_lengths),
        )
        bits = (sums > 0.0).view(len(sums), DIMENSION // 8, 8)
        weights = torch.tensor(
            _BITS,
            dtype=torch.uint8,
            device=self.device,
        )
        packed = (bits * weights).sum(dim=2, dtype=torch.uint8).cpu().numpy()

        signs: list[str] = []
        for end, count in zip(group_ends.tolist(), group_counts.tolist(), strict=True):
            signs.append(base64.b64encode(packed[end - count : end].tobytes()).decode("ascii"))

        return signs

    def _layer(self, name: str) -> dict[str, Any]:
        """Matrices and biases of a layer; query, key and value as one product."""
        own = []
        for part in ("query", "key", "value"):
            own.append(name + f"attention.self.{part}")

        joint = (
            torch.cat([self._weights[part + ".weight"] for part in own]),
            torch.cat([self._weights[part + ".bias"] for part in own]),
        )
        return {
            "name": name,
            "joint": joint,
            "mix": self._dense(name + "attention.output.dense"),
            "inner": self._dense(name + "intermediate.dense"),
            "outer": self._dense(name + "output.dense"),
        }

    def _dense(self, name: str) -> tuple[Tensor, Tensor]:
        return self._weights[name + ".weight"], self._weights[name + ".bias"]

    def _norm(self, states: Tensor, name: str) -> Tensor:
        return functional.layer_norm(
            states,
            (DIMENSION,),
            *self._dense(name),
            EPSILON,
        )

    def _to_device(self, array: NDArray[Any]) -> Tensor:
        return torch.from_numpy(array).to(self.device, non_blocking=True)


def why_no_gpu() -> str:
    """Why torch can use no GPU here; empty where it can."""
    if torch.version.cuda is None:
        return f"torch {torch.__version__} is built without CUDA"
    if torch.cuda.is_available():
        return ""

    return "torch sees no CUDA device"


def _batches(ids: Iterable[list[int]]) -> Iterator[list[list[int]]]:
    """Texts in order, as many as have room in one batch."""
    batch: list[list[int]] = []

    tokens = 0
    for text_ids in ids:
        if tokens + len(text_ids) > BATCH_TOKENS:
            yield batch
            batch = []
            tokens = 0

        batch.append(text_ids)
        tokens += len(text_ids)

    if batch:
        yield batch
