"""Every setting, once."""

from __future__ import annotations

import re
from collections.abc import Callable
from enum import StrEnum
from functools import partial
from pathlib import Path
from typing import Annotated, Any, Literal, Self
from urllib.parse import urlsplit

from pydantic import (
    BaseModel,
    ConfigDict,
    Field,
    SecretStr,
    ValidationInfo,
    field_validator,
    model_validator,
)
from pydantic.fields import FieldInfo

from schemas.nodes import MAX_LEARNED, RelationType
from schemas.plan import Plan
from schemas.sources import RemoteSource

# Specification 002 gives five boosts. The other three stand below the strongest of them, so that a
# type nobody thought about never outranks one that somebody did (requirement X-53).
DEFAULT_BOOSTS: dict[RelationType, float] = {
    RelationType.REFERS_TO: 0.8,
    RelationType.IMPLEMENTS: 0.7,
    RelationType.CITES: 0.6,
    RelationType.DERIVES_FROM: 0.6,
    RelationType.EXTENDS: 0.6,
    RelationType.RELATED_TO: 0.5,
    RelationType.COREF: 0.4,
    RelationType.SIMILAR_TO: 0.4,
}

# How much the type of an edge tells alone, as a part of its weight (a boost is a factor on the
# whole): stated by an author outranks read by a rule, which outranks counted or measured. A value
# that a person wrote into `weight_config` wins over these and over the setting.
DEFAULT_PRIORS: dict[RelationType, float] = {
    RelationType.IMPLEMENTS: 0.9,
    RelationType.EXTENDS: 0.8,
    RelationType.DERIVES_FROM: 0.8,
    RelationType.CITES: 0.7,
    RelationType.REFERS_TO: 0.5,
    RelationType.COREF: 0.4,
    RelationType.RELATED_TO: 0.3,
    RelationType.SIMILAR_TO: 0.3,
}


class Guard(StrEnum):
    """What it takes for hades.yaml to give a key: the file may have come with a cloned folder."""

    NONE = "none"  # any file may; nothing leaves the machine or the folder by it
    INSIDE = "inside"  # any file may name a path inside its folder; others need a trusted folder
    TRUST = "trust"  # decides where texts and credentials go, so only in a trusted folder
    ENVIRONMENT = "environment"  # never in a file


# Every top-level key is declared by one of these instead of `Field`; a key of a section has the
# guard of its section unless it declares its own.
harmless: Callable[..., Any] = partial(Field, json_schema_extra={"guard": Guard.NONE})
place: Callable[..., Any] = partial(Field, json_schema_extra={"guard": Guard.INSIDE})
outside: Callable[..., Any] = partial(Field, json_schema_extra={"guard": Guard.TRUST})
environment_only: Callable[..., Any] = partial(
    Field, json_schema_extra={"guard": Guard.ENVIRONMENT}
)


def guard_of(field: FieldInfo, inherited: Guard = Guard.TRUST) -> Guard:
    """The guard that a key declares, else that of its section."""
    extra = field.json_schema_extra
    if isinstance(extra, dict):
        declared = extra.get("guard")
    else:
        declared = None

    if declared is None:
        return inherited

    return Guard(str(declared))


class Section(BaseModel):
    """A part of the tree: immutable, and strict about names."""

    model_config = ConfigDict(
        frozen=True,
        extra="forbid",
        defer_build=True,
    )


class PathSettings(Section):
    """How paths are searched and scored."""

    max_paths: int = Field(
        6,
        alias="M",
        ge=1,
        description="paths returned, where the question does not say how many",
    )
    max_hops: int = Field(
        5,
        alias="L",
        ge=1,
        description="edges of the longest path that the bridges stage searches; for a question it "
        "is plan.graph.hops",
    )
    length_penalty: float = Field(
        0.3,
        alias="lambda",
        ge=0.0,
        description="mean log weight - lambda * (edges - 1): what each further edge costs",
    )
    eps: float = Field(
        1e-6,
        gt=0.0,
        description="smallest weight a cost is taken of; keeps -ln finite",
    )
    relation_boost: dict[RelationType, Annotated[float, Field(gt=0.0, le=1.0)]] = Field(
        default_factory=lambda: dict(DEFAULT_BOOSTS),
        description="factor on the weight of each relation type; every type has one",
    )
    relation_prior: dict[RelationType, Annotated[float, Field(ge=0.0, le=1.0)]] = Field(
        default_factory=lambda: dict(DEFAULT_PRIORS),
        description="how much each relation type tells alone, a part of every weight from the "
        "next night on; every type has one",
    )

    @field_validator(
        "relation_boost",
        "relation_prior",
        mode="before",
    )
    @classmethod
    def _has_every_type(cls, numbers: object, info: ValidationInfo) -> object:
        """Types that are left out keep their default; one that is set to nothing is refused."""
        if not isinstance(numbers, dict):
            return numbers

        if info.field_name == "relation_boost":
            defaults = DEFAULT_BOOSTS
        else:
            defaults = DEFAULT_PRIORS

        return {str(kind): number for kind, number in defaults.items()} | numbers


class BeamDemotion(Section):
    """How hubs are kept from drowning the beam."""

    deg_alpha: float = Field(
        0.005,
        ge=0.0,
        description="score / (1 + deg_alpha * out-degree)",
    )


class BeamTerms(Section):
    """What each term of a path's score counts in the beam."""

    seed_sim: float = Field(
        0.3,
        ge=0.0,
        le=1.0,
        description="how well the seed matches the question",
    )
    edge_weight: float = Field(
        0.2,
        ge=0.0,
        le=1.0,
        description="mean weight of the edges",
    )
    lex_match: float = Field(
        0.5,
        ge=0.0,
        le=1.0,
        description="how well the nodes match the question",
    )
    depth_penalty: float = Field(
        0.1,
        ge=0.0,
        le=1.0,
        description="what the length of the path counts against it",
    )
    redundancy: float = Field(
        0.3,
        ge=0.0,
        le=1.0,
        description="what overlap with better paths counts against it",
    )


class TopicThresholds(Section):
    """The least cosine of a topic with the question; topics below it are not entered."""

    super_topic: float = Field(
        -1.0,
        ge=-1.0,
        le=1.0,
        description="of a topic of the upper level; -1: any",
    )
    topic: float = Field(
        -1.0,
        ge=-1.0,
        le=1.0,
        description="of a topic of the lower level; -1: any",
    )


class HiragPathrag(Section):
    """Narrowing by topics, then paths: keys and defaults of specification 002."""

    topic_k: int = Field(
        8,
        ge=1,
        description="topics the question is compared with first",
    )
    beam: tuple[int, ...] = Field(
        (8, 4, 2),
        min_length=1,
        description="kept per level on the way down the hierarchy",
    )
    cand_cap: int = Field(
        500,
        ge=1,
        description="nodes of the candidate graph",
    )
    path: PathSettings = Field(default_factory=PathSettings, description="path search")
    beam_demote: BeamDemotion = Field(default_factory=BeamDemotion, description="hub demotion")
    beam_terms: BeamTerms = Field(
        default_factory=BeamTerms,
        description="weights of the beam's score",
    )
    topic_thresholds: TopicThresholds = Field(
        default_factory=TopicThresholds,
        description="least cosine of a topic that is entered",
    )

    @field_validator("beam")
    @classmethod
    def _widths_are_positive(cls, beam: tuple[int, ...]) -> tuple[int, ...]:
        if min(beam) < 1:
            raise ValueError(f"every width of the beam must be at least 1, not {list(beam)}")
        return beam


class CacheSettings(Section):
    """Tiers above the store (requirement A39). A path that is not set lies under
    HADES_HOME/cache.
    """

    ram_cache_size_mb: float = Field(
        8192,
        gt=0,
        description="most that the tier in memory holds, per process",
    )
    nvme_cache_path: Path | None = place(
        None,
        description="folder of the fast tier; unset: cache/nvme under HADES_HOME",
    )
    nvme_cache_size_gb: float = Field(
        50,
        gt=0,
        description="most that the fast tier holds",
    )
    reliable_store_path: Path | None = place(
        None,
        description="folder of the reliable tier; unset: cache/reliable under HADES_HOME",
    )
    reliable_store_size_gb: float = Field(
        500,
        gt=0,
        description="most that the reliable tier holds",
    )
    promotion_threshold: int = Field(
        5,
        ge=1,
        description="accesses after which an entry moves a tier up",
    )
    importance_threshold: float = Field(
        0.7,
        ge=0.0,
        le=1.0,
        description="importance from which an entry starts in memory; from half of it in the fast "
        "tier",
    )


class PathragSettings(Section):
    """How MemoryEnhancedPathRAG scores, packs and keeps paths (requirement A64)."""

    decay_rate: float = Field(
        0.85,
        gt=0.0,
        le=1.0,
        description="share of the flow that each hop passes on",
    )
    pruning_threshold: float = Field(
        0.01,
        ge=0.0,
        le=1.0,
        description="paths of less reliability are dropped",
    )
    max_cache_paths: int = Field(
        100,
        ge=0,
        description="an answer with more paths than this is not kept",
    )
    path_token_estimate: int = Field(
        150,
        ge=1,
        description="tokens a path may take in a prompt; no more are fetched than the window could "
        "hold",
    )
    context_window_tokens: int = Field(
        4096,
        ge=1,
        description="tokens of the reader's window",
    )
    reserve_tokens: int = Field(
        512,
        ge=0,
        description="tokens of it kept free for the instructions and the reply",
    )
    enable_caching: bool = Field(True, description="whether answers are kept at all")

    @model_validator(mode="after")
    def _window_has_room(self) -> PathragSettings:
        if self.reserve_tokens >= self.context_window_tokens:
            raise ValueError(
                f"reserve_tokens ({self.reserve_tokens}) leaves nothing of context_window_tokens "
                f"({self.context_window_tokens}); lower it"
            )

        return self


# The section `hipporag:` of hades.yaml: personalized PageRank, where it starts over and when it
# stops. Specification 004 gives damping .85, passage mass .05, tolerance 1e-6 and 100 iterations
# for power iteration. The defaults here differ where docs/hipporag.md shows a figure for another
# value.


class HippoSettings(Section):
    """How the walk of `hipporag`, `hipporag_multihop` and the default recipe goes."""

    damping: float = Field(
        0.5,
        ge=0.0,
        lt=1.0,
        description="chance to walk on instead of starting over, at each step",
    )
    passage_mass: float = Field(
        0.08,
        ge=0.0,
        le=1.0,
        description="share of the restart mass on the passages nearest to the question",
    )
    tolerance: float = Field(
        1e-5,
        gt=0.0,
        lt=1.0,
        description="largest residual of a node, as a share of its weighted degree",
    )
    max_work: int = Field(
        2_000_000,
        ge=1,
        description="edges that a walk may look at; takes the place of a number of iterations",
    )
    relaxed_tolerance: float = Field(
        1e-4,
        gt=0.0,
        lt=1.0,
        description="tolerance for the last third of the work, where the first was not reached",
    )
    specificity: float = Field(
        0.5,
        ge=0.0,
        le=2.0,
        description="a named entity counts (passages that name it) ** -specificity",
    )


class HistorySettings(Section):
    """Bounds of the history that `hades ingest workspace` reads."""

    max_commits: int = Field(
        2_000,
        ge=0,
        description="newest commits that are read; 0: none",
    )
    max_age_days: int = Field(
        1_826,
        ge=1,
        description="commits older than this before the newest one are not read",
    )
    keep_emails: bool = Field(
        False,
        description="keep e-mail addresses in messages and names of authors",
    )


class LearningSettings(Section):
    """What may be learned from `query_logs`, and how carefully."""

    rate: float = Field(
        0.25,
        gt=0.0,
        le=1.0,
        description="one judged answer moves the logit of a weight by less",
    )
    radius: float = Field(
        1.5,
        gt=0.0,
        le=MAX_LEARNED,
        description="judged answers together move the logit of a weight by at most this",
    )
    held_out: float = Field(
        0.2,
        ge=0.05,
        le=0.5,
        description="share of judged questions that never teach, only test",
    )
    least_held_out: int = Field(
        5,
        ge=2,
        description="judged questions held out before anything learned is used",
    )
    position_power: float = Field(
        0.5,
        ge=0.0,
        le=2.0,
        description="a result at rank r is taken to be looked at with the chance r ** -this",
    )
    explore: float = Field(
        0.0,
        ge=0.0,
        le=0.5,
        description="chance that two neighbouring results change places, logged; 0: never",
    )
    explore_seed: int = Field(
        0,
        ge=0,
        description="another seed, other neighbours of the same question",
    )

    @model_validator(mode="after")
    def _steps_fit_the_radius(self) -> Self:
        if self.rate > self.radius:
            raise ValueError(
                f"rate {self.rate} is larger than radius {self.radius}; one step would leave the "
                "region"
            )

        return self


DATABASE = "arxiv_repository"
SOURCE_NAME = r"^[a-z0-9][a-z0-9_-]{0,62}$"
SECTIONS = (
    "hirag_pathrag",
    "hipporag",
    "plan",
    "learning",
    "cache",
    "pathrag",
    "history",
    "sources",
)
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

    home: Path = place(
        Path(".hades"),
        description="folder for all that the embedded default writes",
    )
    tenant: str | None = harmless(
        None,
        description="namespace with its own store, snapshots, caches and registry; 1 to 63 of a-z, "
        "0-9, _ and -",
    )
    branch: str | None = harmless(
        None,
        description="branch of the home that every command works in; `hades branch` makes one",
    )
    store: Literal["sqlite", "arango"] = outside("sqlite", description="where the graph is kept")
    arango_url: str | None = outside(
        None,
        description="TCP endpoint of ArangoDB, for example http://127.0.0.1:8529",
    )
    arango_database: str = outside(
        DATABASE,
        min_length=1,
        description="database of the graph",
    )
    arango_user: str | None = outside(None, description="user of the database")
    arango_password: SecretStr | None = environment_only(
        None,
        description="password; environment only, never written or logged",
    )
    arango_rw_user: str | None = outside(
        None,
        description="user that `hades provision` makes for builds, with rw on the database; needs "
        "its password",
    )
    arango_rw_password: SecretStr | None = environment_only(
        None,
        description="its password; environment only",
    )
    arango_ro_user: str | None = outside(
        None,
        description="user that `hades provision` makes for questions, with ro on the database; "
        "needs its password",
    )
    arango_ro_password: SecretStr | None = environment_only(
        None,
        description="its password; environment only",
    )
    arango_ro_uds: Path | None = outside(
        None,
        description="AF_UNIX endpoint for reading; wins over the URL",
    )
    arango_rw_uds: Path | None = outside(
        None,
        description="AF_UNIX endpoint for writing rows; wins over the URL",
    )
    arango_admin_uds: Path | None = outside(
        None,
        description="AF_UNIX endpoint for provisioning; wins over the URL",
    )
    arango_transaction_share: float = harmless(
        0.25,
        gt=0.0,
        le=0.9,
        description="share of the server's transaction limit that one unit of writing may take",
    )
    arango_transaction_limit_mib: int | None = harmless(
        None,
        ge=1,
        description="the server's --transaction.streaming-max-transaction-size; unset: asked, else "
        "by its version",
    )
    arango_vector_index: bool = harmless(
        False,
        description="search by vector through an index, approximately; `hades provision` builds or "
        "drops it",
    )
    view: Literal["snapshot", "arango"] = harmless(
        "snapshot",
        description="what questions read: the memory-mapped snapshot, or rows fetched by AQL",
    )
    embedder: Literal["minilm", "hashing", "openai"] = harmless(
        "minilm", description="what turns text into vectors"
    )
    device: Literal["auto", "cpu", "cuda"] = harmless(
        "auto",
        description="where many texts are embedded and the ranker is fitted: a GPU that torch can "
        "use, or the processor; questions are always embedded on the processor",
    )
    embedder_model: str | None = harmless(
        None,
        description="embedding model at HADES_LLM_BASE_URL, for HADES_EMBEDDER=openai; unset: "
        "HADES_LLM_MODEL",
    )
    llm_base_url: str | None = outside(
        None,
        description="OpenAI-compatible endpoint; unset means extractive",
    )
    llm_model: str | None = harmless(None, description="model to ask there")
    llm_max_calls: int | None = harmless(
        1000,
        ge=0,
        description="most calls of the language model by one stage of a flow; above it a person is "
        "asked "
        "(HADES_APPROVAL_MINUTES), or the stage works without the model",
    )
    embedder_price: float | None = harmless(
        None,
        ge=0.0,
        description="price of a million tokens to embed there, for forecasts; unset: not known",
    )
    llm_input_price: float | None = harmless(
        None,
        ge=0.0,
        description="price of a million tokens sent to the language model, for forecasts",
    )
    llm_output_price: float | None = harmless(
        None,
        ge=0.0,
        description="price of a million tokens that the language model writes, for forecasts",
    )
    llm_api_key: SecretStr | None = environment_only(
        None,
        description="its key; environment only, never written or logged",
    )
    mlflow_uri: str | None = outside(
        None,
        description="MLflow tracking server; unset means files under HADES_HOME",
    )
    prefect_api_url: str | None = outside(
        None,
        description="Prefect server that records runs and asks for approvals; unset: builds run "
        "without one",
    )
    task_runner: str = outside(
        "threads",
        pattern=r"^(threads|dask|(tcp|tls)://\S+)$",
        description="where shards of a stage run: threads of the flow's process, a Dask cluster of "
        "this machine, "
        "or that of a scheduler, tcp://HOST:8786",
    )
    log_format: Literal["text", "json"] = harmless(
        "text",
        description="log lines for people, or one JSON object a line",
    )
    log_level: Literal["debug", "info", "warning", "error"] = harmless(
        "warning",
        description="from which level on HADES logs; questions are logged at info, without their "
        "text",
    )
    otlp_endpoint: str | None = outside(
        None,
        description="OpenTelemetry collector (OTLP over HTTP) that spans of turns and builds are "
        "sent to",
    )
    lineage_url: str | None = outside(
        None,
        description="OpenLineage endpoint that events of builds are sent to; a file under logs/ "
        "has them always",
    )
    ingest_workers: int = harmless(
        0,
        ge=0,
        le=64,
        description="child processes that parse files; 0: one a core, at most four",
    )
    build_wait_seconds: float = harmless(
        600.0,
        ge=0.0,
        description="longest that a command waits for another that builds the same graph",
    )
    nights_kept: int = harmless(
        100,
        ge=1,
        description="newest nights whose reports, runs and rankers are kept; those of snapshots "
        "that are there stay, too",
    )
    plans_kept: int = harmless(
        3,
        ge=1,
        le=100,
        description="newest plans that `hades plan` keeps for `hades apply`",
    )
    approval_minutes: float = harmless(
        0.0,
        ge=0.0,
        description="how long a flow waits for a person's approval in the Prefect UI; 0: nobody is "
        "asked",
    )
    data: Path = place(
        Path("../shared/data"),
        description="folder of the benchmark data",
    )
    serve_port: int = harmless(
        8377,
        ge=0,
        le=65535,
        description="TCP port of `hades serve` where --port is not given",
    )
    serve_rate: float = harmless(
        1000.0,
        ge=0.0,
        description="requests a second of one client in the long run; 0: no limit",
    )
    serve_burst: float = harmless(
        2000.0,
        ge=1.0,
        description="requests of one client at once",
    )
    serve_body_kib: int = harmless(
        256,
        ge=1,
        le=65536,
        description="largest body of a request",
    )
    serve_seconds: float = harmless(
        30.0,
        gt=0.0,
        description="longest that a request may take",
    )
    serve_threads: int = harmless(
        0,
        ge=0,
        le=256,
        description="threads that answer; 0: one a core",
    )
    serve_kept_mib: int = harmless(
        64,
        ge=0,
        description="memory for answers kept while their snapshot serves",
    )
    warm: bool = harmless(
        True,
        description="whether `hades watch` and `hades serve` keep a process that answers "
        "questions of new commands at once, and whether these ask it; 0: no",
    )
    trust_folder: bool = environment_only(
        False,
        description="1: the hades.yaml of the working directory may name endpoints, stores and "
        "paths, as after `hades trust`; environment only",
    )
    hirag_pathrag: HiragPathrag = harmless(
        default_factory=HiragPathrag,
        description="narrowing by topics, then paths",
    )
    hipporag: HippoSettings = harmless(
        default_factory=HippoSettings,
        description="personalized PageRank: where it starts over, when it stops",
    )
    plan: Plan = harmless(
        default_factory=Plan,
        description="what one turn may spend",
    )
    history_mib: int = harmless(
        64,
        ge=0,
        description="disk for what each published graph changed, for `hades log` and `hades "
        "blame`; 0: nothing is kept",
    )
    history: HistorySettings = harmless(
        default_factory=HistorySettings,
        description="how much of a repository's history is read",
    )
    learning: LearningSettings = harmless(
        default_factory=LearningSettings,
        description="what judged answers may teach, and how carefully",
    )
    cache: CacheSettings = harmless(
        default_factory=CacheSettings,
        description="tiers of memory above the store",
    )
    pathrag: PathragSettings = harmless(
        default_factory=PathragSettings,
        description="how MemoryEnhancedPathRAG scores, packs and keeps paths",
    )
    sources: dict[Annotated[str, Field(pattern=SOURCE_NAME)], RemoteSource] = outside(
        default_factory=dict,
        description="places elsewhere that nightly builds sync, by name; docs/sources.md",
    )

    @field_validator(
        "arango_url",
        "llm_base_url",
        "prefect_api_url",
        "otlp_endpoint",
        "lineage_url",
    )
    @classmethod
    def _is_an_http_address(cls, address: str | None) -> str | None:
        parts = urlsplit(address or "http://unset")
        if parts.scheme not in ("http", "https") or not parts.hostname or "," in parts.netloc:
            raise ValueError(
                "expected one address that begins with http:// or https:// and names a host"
            )

        return address

    @field_validator(
        "arango_url",
        "llm_base_url",
        "otlp_endpoint",
        "lineage_url",
    )
    @classmethod
    def _holds_no_credential(cls, address: str | None) -> str | None:
        if address is not None and _CREDENTIALS.search(address):
            raise ValueError(
                "an address may not hold a user or password; they have variables of their own"
            )

        return address

    @model_validator(mode="after")
    def _view_can_be_served(self) -> Self:
        if self.view == "arango" and self.store != "arango":
            raise ValueError(
                "HADES_VIEW is 'arango', which needs HADES_STORE 'arango'; set that too, or use "
                "'snapshot'"
            )

        return self

    @field_validator("tenant", "branch")
    @classmethod
    def _is_not_set_by_hand(cls, name: str | None) -> str | None:
        if name is not None:
            raise ValueError(
                "a tenant or a branch alone would share every file; `for_tenant` and `for_branch` "
                "of `hades.settings.load` move them as well"
            )

        return name

    @property
    def trunk(self) -> Path:
        """The home that the branch is of; the home itself where there is no branch."""
        if self.branch is None:
            return self.home
        return self.home.parents[1]

    def secrets(self) -> list[str]:
        """Every secret in plain text, for whoever must keep them out of what is written."""
        values = (getattr(self, name) for name in Settings.model_fields)
        return [value.get_secret_value() for value in values if isinstance(value, SecretStr)]

    def masked(self) -> dict[str, Any]:
        """The effective values by variable name, sections by theirs, with every secret masked;
        ready for JSON.
        """
        values = self.model_dump(mode="json", by_alias=True)
        return {variable_of(name): without_credentials(value) for name, value in values.items()}


SHAPING = (
    "embedder",
    "embedder_model",
    "llm_model",
    "hirag_pathrag",
    "hipporag",
    "plan",
    "history",
    "learning",
)


def shaping_settings(settings: Settings) -> dict[str, Any]:
    """The settings that shape a graph and its answers, ready for JSON."""
    return settings.model_dump(
        mode="json",
        by_alias=True,
        include=set(SHAPING),
    )


def variable_of(field: str) -> str:
    """The environment variable of a top-level field, or the section's own name."""
    if field in SECTIONS:
        return field
    return _OTHER_NAMES.get(field, f"HADES_{field.upper()}")


def is_secret(field: str) -> bool:
    """Whether a top-level field holds a credential."""
    return field in Settings.model_fields and "SecretStr" in str(
        Settings.model_fields[field].annotation
    )


def without_credentials(value: object) -> object:
    """The value, with the user and password of an address masked."""
    if isinstance(value, str):
        return _CREDENTIALS.sub("//**********@", value)
    return value
