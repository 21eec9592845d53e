"""What ingestion keeps about itself: what it has seen, what it set aside, what it merged."""

from __future__ import annotations

from datetime import datetime

from pydantic import Field

from schemas.record import Json, Keyed


class ManifestEntry(Keyed):
    """One document as last ingested; a second run compares hashes and touches only what changed."""

    document: str
    source: str
    corpus: str = Field("", description="name of the folder or file it came from")
    place: str = Field("", description="where that folder is; only the same folder forgets what it lost")
    origin: str
    sha256: str = Field(description="of everything the source said about it")
    phases: Json = Field(default_factory=dict, description="phase -> hash of its inputs when it last completed")


class QuarantineRow(Keyed):
    """Input that was set aside, and why."""

    source: str
    corpus: str = ""
    uri: str
    reason: str
    detail: str = ""
    size: int = Field(0, ge=0)


class Extraction(Keyed):
    """Names and triples a language model read in one text; kept by the text's hash, so it is asked once."""

    sha256: str = Field(description="of the chunk's text")
    model: str
    names: Json = Field(default_factory=dict, description='{"names": [...]}')
    triples: Json = Field(default_factory=dict, description='{"triples": [[subject, relation, object], ...]}')
    prompt_tokens: int = Field(0, ge=0)
    completion_tokens: int = Field(0, ge=0)
    problem: str = Field("", description="why the answer could not be used; empty when it could")


class Merge(Keyed):
    """One name folded into another; reversible because the rule and both names are kept."""

    alias: str
    canonical: str
    rule: str
    score: float = 1.0
    at: datetime | None = None


class StageRecord(Keyed):
    """The last completion of one stage of the build; its key is the stage's name.

    Written in the transaction that writes the stage's rows, so a killed stage has not happened.
    """

    stage: str
    digest: str = Field(description="hash of everything the stage worked from; equal means nothing to do")
    generation: str = Field("", description="hash of what it wrote")
    as_of: datetime | None = Field(None, description="the moment the build stands at, a parameter and not a clock")
    report: Json = Field(default_factory=dict, description="what it did, for people")
