"""Every setting, once, with its default and what it means."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any, Literal, Self
from urllib.parse import urlsplit

from pydantic import Field, SecretStr, field_validator, model_validator

from hades.settings.cache import CacheSettings, PathragSettings
from hades.settings.hipporag import HippoSettings
from hades.settings.hirag import HiragPathrag, Section
from hades.settings.history import HistorySettings
from hades.settings.learning import LearningSettings
from schemas.plan import Plan

DATABASE = "arxiv_repository"
SECTIONS = ("hirag_pathrag", "hipporag", "plan", "learning", "cache", "pathrag", "history")
_OTHER_NAMES = {
    "arango_ro_uds": "ARANGO_RO_UDS",
    "arango_rw_uds": "ARANGO_RW_UDS",
    "arango_admin_uds": "ARANGO_ADMIN_UDS",
    "prefect_api_url": "PREFECT_API_URL",
    "otlp_endpoint": "OTEL_EXPORTER_OTLP_ENDPOINT",
}
_CREDENTIALS = re.compile(r"//[^/@\s]+@")


class Settings(Section):
    """The whole tree. Code below wiring never sees it: it is handed what it needs."""

    home: Path = Field(Path(".hades"), description="folder for all that the embedded default writes")
    tenant: str | None = Field(
        None, description="namespace with its own store, snapshots, caches and registry; 1 to 63 of a-z, 0-9, _ and -"
    )
    store: Literal["sqlite", "arango"] = Field("sqlite", description="where the graph is kept")
    arango_url: str | None = Field(None, description="TCP endpoint of ArangoDB, for example http://127.0.0.1:8529")
    arango_database: str = Field(DATABASE, min_length=1, description="database of the graph")
    arango_user: str | None = Field(None, description="user of the database")
    arango_password: SecretStr | None = Field(None, description="password; environment only, never written or logged")
    arango_rw_user: str | None = Field(
        None, description="user that `hades provision` makes for builds, with rw on the database; needs its password"
    )
    arango_rw_password: SecretStr | None = Field(None, description="its password; environment only")
    arango_ro_user: str | None = Field(
        None, description="user that `hades provision` makes for questions, with ro on the database; needs its password"
    )
    arango_ro_password: SecretStr | None = Field(None, description="its password; environment only")
    arango_ro_uds: Path | None = Field(None, description="AF_UNIX endpoint for reading; wins over the URL")
    arango_rw_uds: Path | None = Field(None, description="AF_UNIX endpoint for writing rows; wins over the URL")
    arango_admin_uds: Path | None = Field(None, description="AF_UNIX endpoint for provisioning; wins over the URL")
    arango_transaction_share: float = Field(
        0.25, gt=0.0, le=0.9, description="share of the server's transaction limit that one unit of writing may take"
    )
    arango_transaction_limit_mib: int | None = Field(
        None,
        ge=1,
        description="the server's --transaction.streaming-max-transaction-size; unset: asked, else by its version",
    )
    arango_vector_index: bool = Field(
        False, description="search by vector through an index, approximately; `hades provision` builds or drops it"
    )
    view: Literal["snapshot", "arango"] = Field(
        "snapshot", description="what questions read: the memory-mapped snapshot, or AQL with one query a hop"
    )
    embedder: Literal["minilm", "hashing", "openai"] = Field("minilm", description="what turns text into vectors")
    embedder_model: str | None = Field(
        None, description="embedding model at HADES_LLM_BASE_URL, for HADES_EMBEDDER=openai; unset: HADES_LLM_MODEL"
    )
    llm_base_url: str | None = Field(None, description="OpenAI-compatible endpoint; unset means extractive")
    llm_model: str | None = Field(None, description="model to ask there")
    embedder_price: float | None = Field(
        None, ge=0.0, description="price of a million tokens to embed there, for forecasts; unset: not known"
    )
    llm_input_price: float | None = Field(
        None, ge=0.0, description="price of a million tokens sent to the language model, for forecasts"
    )
    llm_output_price: float | None = Field(
        None, ge=0.0, description="price of a million tokens that the language model writes, for forecasts"
    )
    llm_api_key: SecretStr | None = Field(None, description="its key; environment only, never written or logged")
    mlflow_uri: str | None = Field(None, description="MLflow tracking server; unset means files under HADES_HOME")
    prefect_api_url: str | None = Field(None, description="Prefect server; unset means an ephemeral one per run")
    task_runner: Literal["threads", "dask"] = Field(
        "threads", description="where shards of a stage run: threads of the flow's process, or a Dask cluster"
    )
    log_format: Literal["text", "json"] = Field("text", description="log lines for people, or one JSON object a line")
    log_level: Literal["debug", "info", "warning", "error"] = Field(
        "warning", description="from which level on HADES logs; questions are logged at info, without their text"
    )
    otlp_endpoint: str | None = Field(
        None, description="OpenTelemetry collector (OTLP over HTTP) that spans of turns and builds are sent to"
    )
    lineage_url: str | None = Field(
        None, description="OpenLineage endpoint that events of builds are sent to; a file under logs/ has them always"
    )
    ingest_workers: int = Field(
        0,
        ge=0,
        le=64,
        description="processes that read papers, parse files, cut texts and resolve code in a large ingestion; "
        "0: one a core, 1: none beside the one that parses files",
    )
    data: Path = Field(Path("../shared/data"), description="folder of the benchmark data")
    serve_port: int = Field(8377, ge=0, le=65535, description="TCP port of `hades serve` where --port is not given")
    serve_rate: float = Field(
        1000.0, ge=0.0, description="requests a second of one client in the long run; 0: no limit"
    )
    serve_burst: float = Field(2000.0, ge=1.0, description="requests of one client at once")
    serve_body_kib: int = Field(256, ge=1, le=65536, description="largest body of a request")
    serve_seconds: float = Field(30.0, gt=0.0, description="longest that a request may take")
    serve_threads: int = Field(0, ge=0, le=256, description="threads that answer; 0: one a core")
    serve_kept_mib: int = Field(64, ge=0, description="memory for answers kept while their snapshot serves")
    hirag_pathrag: HiragPathrag = Field(default_factory=HiragPathrag, description="narrowing by topics, then paths")
    hipporag: HippoSettings = Field(
        default_factory=HippoSettings, description="personalized PageRank: where it starts over, when it stops"
    )
    plan: Plan = Field(default_factory=Plan, description="what one turn may spend")
    history: HistorySettings = Field(
        default_factory=HistorySettings, description="how much of a repository's history is read"
    )
    learning: LearningSettings = Field(
        default_factory=LearningSettings, description="what judged answers may teach, and how carefully"
    )
    cache: CacheSettings = Field(default_factory=CacheSettings, description="tiers of memory above the store")
    pathrag: PathragSettings = Field(
        default_factory=PathragSettings, description="how MemoryEnhancedPathRAG scores, packs and keeps paths"
    )

    @field_validator("arango_url", "llm_base_url", "prefect_api_url", "otlp_endpoint", "lineage_url")
    @classmethod
    def _is_an_http_address(cls, address: str | None) -> str | None:
        if address is not None and (urlsplit(address).scheme not in ("http", "https") or not urlsplit(address).netloc):
            raise ValueError("expected an address that begins with http:// or https:// and names a host")
        return address

    @field_validator("arango_url", "llm_base_url", "otlp_endpoint", "lineage_url")
    @classmethod
    def _holds_no_credential(cls, address: str | None) -> str | None:
        if address is not None and _CREDENTIALS.search(address):
            raise ValueError("an address may not hold a user or password; they have variables of their own")
        return address

    @model_validator(mode="after")
    def _view_can_be_served(self) -> Self:
        if self.view == "arango" and self.store != "arango":
            raise ValueError(
                "HADES_VIEW is 'arango', which needs HADES_STORE 'arango'; set that too, or use 'snapshot'"
            )
        return self

    @field_validator("tenant")
    @classmethod
    def _is_not_set_by_hand(cls, tenant: str | None) -> str | None:
        if tenant is not None:
            raise ValueError("a tenant alone would share every file; `hades.settings.for_tenant` moves them as well")
        return tenant

    def secrets(self) -> list[str]:
        """Every secret in plain text, for whoever must keep them out of what is written."""
        values = (getattr(self, name) for name in Settings.model_fields)
        return [value.get_secret_value() for value in values if isinstance(value, SecretStr)]

    def masked(self) -> dict[str, Any]:
        """The effective values by variable name, sections by theirs, with every secret masked; ready for JSON."""
        values = self.model_dump(mode="json", by_alias=True)
        return {variable_of(name): without_credentials(value) for name, value in values.items()}


def variable_of(field: str) -> str:
    """The environment variable of a top-level field, or the section's own name."""
    return field if field in SECTIONS else _OTHER_NAMES.get(field, f"HADES_{field.upper()}")


def is_secret(field: str) -> bool:
    """Whether a top-level field holds a credential."""
    return field in Settings.model_fields and "SecretStr" in str(Settings.model_fields[field].annotation)


def without_credentials(value: object) -> object:
    """The value, with the user and password of an address masked."""
    return _CREDENTIALS.sub("//**********@", value) if isinstance(value, str) else value
