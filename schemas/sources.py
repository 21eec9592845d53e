"""A corpus that is read again every night."""

from __future__ import annotations

from schemas.record import Keyed, Record
from schemas.source_kinds import CorpusFields


class SourceSpec(CorpusFields, Record):
    """Where a corpus is and what lies beside it."""


class KnownSource(CorpusFields, Keyed):
    """A corpus that was ingested once and that nightly builds read again."""
