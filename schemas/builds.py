"""Manifest, quarantine, ledger and curation rows."""

from __future__ import annotations

import re
from datetime import datetime
from enum import StrEnum
from typing import Annotated, Literal

from pydantic import AfterValidator, Field, StringConstraints

from schemas.nodes import EntityType
from schemas.record import Json, Keyed, Record, Unit


class ManifestEntry(Keyed):
    """One document as last ingested; a second run compares hashes and touches only what changed."""

    document: str
    source: str
    corpus: str = Field("", description="name of the folder or file it came from")
    place: str = Field(
        "",
        description="where that folder is; only the same folder forgets what it lost",
    )
    origin: str
    sha256: str = Field(description="of everything the source said about it")
    phases: Json = Field(
        default_factory=dict,
        description="phase -> hash of its inputs when it last completed; `rows` -> rows written by "
        "collection",
    )


class StandingQuestion(Keyed):
    """A question that each build asks of the former and the next graph before the next one
    serves.
    """

    question: str
    requires: str = Field(
        "",
        description="a source that the answer must cite, or the build does not publish",
    )
    added: datetime


class QuarantineRow(Keyed):
    """Input that was set aside, and why."""

    source: str
    corpus: str = ""
    uri: str
    reason: str
    detail: str = ""
    size: int = Field(0, ge=0)


class Extraction(Keyed):
    """Names and triples a language model read in one text; kept by the text's hash, so it is asked
    once.
    """

    sha256: str = Field(description="of the chunk's text")
    model: str
    names: Json = Field(default_factory=dict, description='{"names": [...]}')
    triples: Json = Field(
        default_factory=dict,
        description='{"triples": [[subject, relation, object], ...]}',
    )
    prompt_tokens: int = Field(0, ge=0)
    completion_tokens: int = Field(0, ge=0)
    problem: str = Field(
        "",
        description="why the answer could not be used; empty when it could",
    )


class Merge(Keyed):
    """One name folded into another, by which rule and how sure it was."""

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
    digest: str = Field(
        description="hash of everything the stage worked from; equal means nothing to do"
    )
    generation: str = Field("", description="hash of what it wrote")
    as_of: datetime | None = Field(
        None,
        description="the moment the build stands at, a parameter and not a clock",
    )
    report: Json = Field(
        default_factory=dict,
        description="what it did, for people",
    )


ALIASES_MOST = 64
_SPACE = re.compile(r"\s+")


def _one_line(text: str) -> str:
    """The text with single spaces; raises ValueError for characters that no name holds."""
    line = _SPACE.sub(" ", text).strip()
    if not line or not line.isprintable():
        raise ValueError("must hold letters and no control characters")

    return line


def _without_controls(text: str) -> str:
    if any(not (character.isprintable() or character in "\n\t") for character in text):
        raise ValueError("must hold no control characters")
    return text.strip()


Name = Annotated[str, StringConstraints(max_length=200), AfterValidator(_one_line)]


class EntityFields(Record):
    """What may be corrected in an entity. Absent means: as it is.

    A paper and a code symbol are what their source says they are; only judgements may be judged
    otherwise.
    """

    name: Name = Field(
        "",
        description="how it is called; what the documents call it stays findable as an alias",
    )
    aliases: Annotated[
        tuple[Name, ...], AfterValidator(lambda names: tuple(sorted(set(names))))
    ] = Field(
        (),
        max_length=ALIASES_MOST,
        description="every other way it is written; replaces the list",
    )
    summary: Annotated[
        str, StringConstraints(max_length=4000), AfterValidator(_without_controls)
    ] = Field("", description="what it is, in a sentence or two")
    type: Literal[EntityType.CONCEPT, EntityType.METHOD, EntityType.PERSON] = Field(
        EntityType.CONCEPT,
        description="concept, method or person",
    )
    domain: Name | None = Field(
        None,
        description="what `domain_filter` goes by; null for none",
    )


class EditState(StrEnum):
    """Where an edit stands."""

    PENDING = "pending"
    APPLIED = "applied"
    UNDONE = "undone"


class EntityEdit(Keyed):
    """One correction of one entity: who said what, who agreed, and who took it back. Rows are never
    removed by hand.

    What it replaced is not kept here but in the entity's own row (`metadata.derived`), which
    derivation keeps current: a row that outlives a forgotten document must not quote it.
    """

    entity: str = Field(description="key of the entity")
    fields: Json = Field(
        default_factory=dict,
        description="column -> value; see EntityFields",
    )
    state: EditState
    who: str
    why: str = ""
    at: datetime
    confidence: Unit = Field(1.0, description="how sure whoever made it is")
    needs: tuple[str, ...] = Field(
        (),
        description="why others had to agree; empty when nobody had to",
    )
    quorum: int = Field(
        1,
        ge=1,
        description="how many parties must stand behind it, the first included",
    )
    approved_by: tuple[str, ...] = ()
    applied_at: datetime | None = Field(
        None,
        description="of two edits of a column the one applied later counts",
    )
    undone_by: str | None = None
    undone_at: datetime | None = None
    undone_why: str = ""
