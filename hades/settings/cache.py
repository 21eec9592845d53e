"""The sections `cache:` and `pathrag:` of hades.yaml: the tiers of memory, and what answers with paths from them."""

from __future__ import annotations

from pathlib import Path

from pydantic import Field, model_validator

from hades.settings.hirag import Section


class CacheSettings(Section):
    """Tiers above the store (requirement A39). A path that is not set lies under HADES_HOME/cache."""

    ram_cache_size_mb: float = Field(8192, gt=0, description="most that the tier in memory holds, per process")
    nvme_cache_path: Path | None = Field(
        None, description="folder of the fast tier; unset: cache/nvme under HADES_HOME"
    )
    nvme_cache_size_gb: float = Field(50, gt=0, description="most that the fast tier holds")
    reliable_store_path: Path | None = Field(
        None, description="folder of the reliable tier; unset: cache/reliable under HADES_HOME"
    )
    reliable_store_size_gb: float = Field(500, gt=0, description="most that the reliable tier holds")
    promotion_threshold: int = Field(5, ge=1, description="accesses after which an entry moves a tier up")
    importance_threshold: float = Field(
        0.7,
        ge=0.0,
        le=1.0,
        description="importance from which an entry starts in memory; from half of it in the fast tier",
    )


class PathragSettings(Section):
    """How MemoryEnhancedPathRAG scores, packs and keeps paths (requirement A64)."""

    decay_rate: float = Field(0.85, gt=0.0, le=1.0, description="share of the flow that each hop passes on")
    pruning_threshold: float = Field(0.01, ge=0.0, le=1.0, description="paths of less reliability are dropped")
    max_cache_paths: int = Field(100, ge=0, description="an answer with more paths than this is not kept")
    path_token_estimate: int = Field(
        150, ge=1, description="tokens a path may take in a prompt; no more are fetched than the window could hold"
    )
    context_window_tokens: int = Field(4096, ge=1, description="tokens of the reader's window")
    reserve_tokens: int = Field(512, ge=0, description="tokens of it kept free for the instructions and the reply")
    enable_caching: bool = Field(True, description="whether answers are kept at all")

    @model_validator(mode="after")
    def _window_has_room(self) -> PathragSettings:
        if self.reserve_tokens >= self.context_window_tokens:
            raise ValueError(
                f"reserve_tokens ({self.reserve_tokens}) leaves nothing of context_window_tokens "
                f"({self.context_window_tokens}); lower it"
            )
        return self
