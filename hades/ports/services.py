"""Embedder, tokenizer, language model, registry, memory, clock, progress."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Literal, Protocol, runtime_checkable

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from hades.errors import HadesError
from hades.files import sha256_of
from schemas.ids import Mask

Vectors = NDArray[np.float32]
Progress = Callable[[int, int], None]


@dataclass(frozen=True)
class EmbeddingModel:
    """Which model made a vector. Vectors with different tags are never compared."""

    id: str
    version: str
    dimension: int

    @property
    def tag(self) -> str:
        """The mark that is stored with each vector; a new tag means everything is embedded
        again.
        """
        return f"{self.id}@{self.version}/{self.dimension}"


class Embedder(Protocol):
    """Turns texts into vectors."""

    @property
    def model(self) -> EmbeddingModel:
        """The model that answers, for the tag of its vectors."""

    def embed(self, texts: Sequence[str], *, progress: Progress | None = None) -> Vectors:
        """(n_texts, dimension) float32, rows unit length, in the order of the texts.

        A blank text has no meaning to place: it raises ValueError naming the row, on every
        embedder. `progress` is called with (texts done, texts in all).
        """


@runtime_checkable
class ReadsTokens(Protocol):
    """An embedder that also says what it made of single tokens, which costs it nothing more.

    Late interaction (ColBERT, arXiv:2004.12832) compares the tokens of a question with those of a
    passage. Of a text that is stored only signs are kept.
    """

    def embed_tokens(self, texts: Sequence[str]) -> tuple[Vectors, Sequence[Vectors | None]]:
        """The vectors, and of each text the states of its tokens: (n_tokens, dimension), rows unit
        length.
        """


@runtime_checkable
class SignsTokens(Protocol):
    """An embedder that gives what is stored of the tokens of a text."""

    def embed_signs(self, texts: Sequence[str]) -> tuple[Vectors, list[str]]:
        """The vectors, and of each text the signs of the mean state of each few tokens: bits in
        base64.
        """


def embed_questions(
    embedder: Embedder,
    texts: Sequence[str],
) -> tuple[Vectors, Sequence[Vectors | None]]:
    """The vectors, and the states of the tokens; None for each text where the embedder does not
    give them.
    """
    if isinstance(embedder, ReadsTokens):
        return embedder.embed_tokens(texts)
    return embedder.embed(texts), [None] * len(texts)


class RememberingEmbedder:
    """An embedder that embeds a text once."""

    def __init__(self, embedder: Embedder) -> None:
        self.model, self._embedder = embedder.model, embedder
        self._known: dict[str, tuple[NDArray[np.float32], Vectors | None]] = {}

    def embed(self, texts: Sequence[str], *, progress: Progress | None = None) -> Vectors:
        """See `Embedder.embed`; only what is new goes to the model."""
        return self.embed_tokens(texts)[0]

    def embed_tokens(self, texts: Sequence[str]) -> tuple[Vectors, list[Vectors | None]]:
        """See `embed_questions`; only what is new goes to the model."""
        fresh = []
        for text in dict.fromkeys(texts):
            if text not in self._known:
                fresh.append(text)

        if fresh:
            self._known.update(
                zip(fresh, zip(*embed_questions(self._embedder, fresh), strict=True), strict=True)
            )

        known = [self._known[text] for text in texts]
        return np.stack([vector for vector, _ in known]), [tokens for _, tokens in known]


@dataclass(frozen=True)
class PaidModels:
    """The models behind an endpoint and their prices for a million tokens; None where a price is
    not set.

    Without an endpoint both names are empty: the models of the installation run on this machine and
    cost nothing.
    """

    embedder: str = ""
    embedder_price: float | None = None
    writer: str = ""
    input_price: float | None = None
    output_price: float | None = None
    count_tokens: Callable[[str], int] = len


@runtime_checkable
class LoadsModel(Protocol):
    """An embedder, a tokenizer or a memory that takes time to load; a turn loads it before its
    clock runs.
    """

    def load(self) -> None:
        """Load now instead of with the first text; safe to repeat."""


class Tokenizer(Protocol):
    """Counts and cuts text the way a model reads it."""

    def count(self, text: str) -> int:
        """Number of tokens in the text."""

    def count_many(self, texts: Sequence[str]) -> list[int]:
        """Number of tokens in each text; much faster than one by one."""

    def truncate(self, text: str, tokens: int) -> str:
        """The longest prefix of the text that ends with a token and holds at most `tokens` of
        them.
        """

    def spans(self, text: str) -> list[tuple[int, int]]:
        """Character offsets [start, end) of each token."""

    def word_ends(self, text: str, most: int | None = None) -> tuple[list[int], list[int]]:
        """Where words end, and how many tokens the text holds up to each end; a place to cut
        without splitting one.

        `most` is how many words are looked at; each holds at least one token.
        """


@dataclass(frozen=True)
class Completion:
    """What a language model wrote, and what it cost."""

    text: str
    prompt_tokens: int
    completion_tokens: int


class LanguageModel(Protocol):
    """Writes text for a prompt."""

    @property
    def model(self) -> str:
        """Name of the model that answers."""

    def allows(self, calls: int, tokens: int) -> bool:
        """Whether one stage may call it so often; raises `CallsAboveCap` where a person may be
        asked about more.
        """

    def complete(self, prompt: str, *, max_tokens: int) -> Completion:
        """Continue the prompt with at most `max_tokens` tokens."""

    def stream(self, prompt: str, *, max_tokens: int) -> Iterator[str]:
        """The same, piece by piece as it is written; ends after a bounded time and length whatever
        the server sends.
        """


class ProviderError(HadesError, RuntimeError):
    """A model that could not be loaded or did not answer as it must. Never holds a credential."""


def check_texts(texts: Sequence[str]) -> None:
    """Refuse blank texts before any work is done, so that all embedders agree on them."""
    if isinstance(texts, str):
        raise TypeError("embed takes a sequence of texts; wrap the one text in a list")

    for row, text in enumerate(texts):
        if not text.strip():
            raise ValueError(
                f"text at row {row} of {len(texts)} is blank; drop it or give it its title"
            )


# The registry of fitted things, as builds see it: runs with what went in and came out, versions,
# and aliases. Every adapter keeps these promises: - Logging the same data twice is logging it once:
# a run and a version are known by their tag `data_hash`. - A run is finished or it did not happen.
# What a killed process left behind is marked so, and never answers a search. - What an alias names
# cannot be deleted. - What is fetched is, byte for byte, what was logged; anything else raises
# `TrackingError`.
DATA_HASH = "data_hash"


class TrackingError(HadesError):
    """Something the registry could not do: which run, version or alias, and the next step."""


@dataclass(frozen=True)
class Version:
    """One registered version of a fitted thing."""

    name: str
    version: str
    created: datetime
    run: str
    tags: Mapping[str, str]
    aliases: tuple[str, ...] = ()


@dataclass(frozen=True)
class Dataset:
    """What a run read: its name, the digest of its contents, where it lies, and its rows and
    columns where known.
    """

    name: str
    digest: str
    source: str
    rows: int | None = None
    columns: Sequence[pa.Field] = ()


RunStatus = Literal["FINISHED", "FAILED", "KILLED"]


@dataclass(frozen=True)
class RunRecord:
    """One run. `tags` of a run that is no part of another must hold `data_hash`: data is logged
    once.

    `status` says how it ended: `KILLED` is one that somebody cancelled, `FAILED` one that an error
    ended. Only a finished one answers a search for its data.

    `began` and `ended` are when it worked, by default now. `tables` are rows by name. `signature`
    says what the first of its files takes and gives. `children` are runs that were logged before as
    parts of it, `parts` become such runs.
    """

    name: str
    params: Mapping[str, object] = field(default_factory=dict)
    metrics: Mapping[str, float] = field(default_factory=dict)
    tags: Mapping[str, str] = field(default_factory=dict)
    artifacts: Sequence[Path] = ()
    tables: Mapping[str, Sequence[Mapping[str, object]]] = field(default_factory=dict)
    inputs: Sequence[Dataset] = ()
    signature: tuple[Sequence[pa.Field], Sequence[pa.Field]] | None = None
    began: datetime | None = None
    ended: datetime | None = None
    children: Sequence[str] = ()
    parts: Sequence[RunRecord] = ()
    status: RunStatus = "FINISHED"


class Tracker(Protocol):
    """Keeps what was fitted, and says what serves."""

    def log_run(self, experiment: str, record: RunRecord) -> str:
        """Log one run with its files; its id. A run that cannot be logged whole is not there."""

    def register(
        self,
        name: str,
        run: str,
        artifact: str,
        about: str = "",
    ) -> str:
        """Make a file of a run a version of `name`; its number. The run's tags become the
        version's, `about` describes the model to people.
        """

    def versions(self, name: str) -> list[Version]:
        """Every version, newest first; none for a name nobody registered."""

    def tag(
        self,
        name: str,
        version: str,
        tags: Mapping[str, str],
    ) -> None:
        """Add tags to a version."""

    def alias(self, name: str, alias: str) -> str | None:
        """The version an alias names, or None."""
        return next(
            (version.version for version in self.versions(name) if alias in version.aliases),
            None,
        )

    def known(self, name: str, version: str) -> Version:
        """A registered version; an error names those there are."""
        versions = {version.version: version for version in self.versions(name)}
        if version not in versions:
            raise TrackingError(
                f"{name} has no version {version}; registered: {', '.join(versions) or 'none'}"
            )

        return versions[version]

    def unnamed(self, name: str, version: str) -> Version:
        """The same where no alias names it."""
        known = self.known(name, version)
        if known.aliases:
            aliases = ", ".join(known.aliases)
            raise TrackingError(
                f"{name} version {version} is named by {aliases}; let the alias name another first"
            )

        return known

    def set_alias(self, name: str, alias: str, version: str) -> None:
        """Let an alias name a version from now on; one step, so readers see the old one or the
        new.
        """

    def delete_alias(self, name: str, alias: str) -> None:
        """Let an alias name no version; nothing happens where it names none."""

    def fetch(self, name: str, version: str) -> Path:
        """The file of a version on this machine, checked against its hash. Read it; do not change
        it.
        """

    def delete_version(self, name: str, version: str) -> None:
        """Remove a version and its file; refuses one that an alias names."""

    def trim_runs(
        self,
        experiment: str,
        keep: int,
        *,
        needed: Collection[str],
        models: Sequence[str],
    ) -> None:
        """Delete all but the newest `keep` runs of an experiment, with their parts and files.

        Those whose parameter `snapshot` is among the `needed` stay. Runs of `models` that are older
        than the newest `keep` go where their version was deleted.
        """


def check_file(known: Version, path: Path, sha256: str) -> Path:
    """The file of a version, or an error where it is gone or not as it was logged."""
    label = f"{known.name} version {known.version}: {path}"
    if not path.is_file():
        raise TrackingError(f"{label} is gone; choose another of its versions")
    if sha256_of(path) != sha256:
        raise TrackingError(f"{label} was changed after it was logged; choose another")

    return path


def version_with_hash(versions: Sequence[Version], data_hash: str) -> str | None:
    """The newest of these versions that was made of this data, or None."""
    return next(
        (version.version for version in versions if version.tags.get(DATA_HASH) == data_hash),
        None,
    )


@dataclass(frozen=True)
class MemoryHit:
    """A remembered state: its id, its topic, what it says, since when; how near it is to the
    question.

    `similarity` compares states of one search; `cosine` is that of the vectors, None without one of
    the same model.
    """

    id: str
    topic: str
    text: str
    since: str
    similarity: float
    cosine: float | None


class MemorySearch(Protocol):
    """Searches what was remembered beside the documents."""

    def search(
        self,
        text: str,
        vector: Vectors | None,
        model: str,
        mask: Mask,
        limit: int,
    ) -> Sequence[MemoryHit]:
        """The topics nearest to a question, best first, each as it holds at the mask; nothing where
        memory is empty.
        """

    def is_away(self) -> bool:
        """Whether the store did not answer when it was last asked."""

    def note_shown(self, ids: Sequence[str]) -> None:
        """Note that these states were shown in an answer; costs nothing that an answer waits
        for.
        """

    def version(self) -> str:
        """Changes with every act on memory, so that answers that were cached before it are not
        given again.
        """


@dataclass(frozen=True)
class TextChange:
    """Sentences that a page lost and got at a moment; `former_at` is the moment of the state before
    it. `document` is empty for a page that is gone. `commits` are known by sentence.
    """

    document: str
    name: str
    gone: Sequence[str]
    came: Sequence[str]
    at: datetime
    former_at: datetime | None = None
    snapshot: str = ""
    former_snapshot: str = ""
    commits: Mapping[str, str] = field(default_factory=dict)


class ChangeSearch(Protocol):
    """What documents said and no longer say, as far as it is kept."""

    def find(
        self,
        start: datetime | None,
        end: datetime,
        *,
        may_tell: Callable[[str, str], bool],
        goes_on: Callable[[], bool],
    ) -> Iterator[TextChange]:
        """The changes after `start` until `end`, oldest first; of a page only where `may_tell` is
        true for its name and a text with what it lost and got; no further ones once `goes_on` is
        false.
        """

    def kept_since(self, start: datetime | None) -> datetime | None:
        """Since when changes are known, looked for no further back than `start`; None where nothing
        is known.
        """


def utc_now() -> datetime:
    """Now, with its zone: when something was asked or written. Builds take their moment as a
    parameter.
    """
    return datetime.now(UTC)


ProgressReport = Callable[[str, int, int | None], None]  # stage, done, of how many


def silent(stage: str, done: int, total: int | None) -> None:
    """Shows nothing."""
