"""Files of other formats as documents: read in a confined child, so that neither bombs nor damage reach the run."""

from __future__ import annotations

from types import TracebackType
from typing import NamedTuple, Self

from hades.ingest.source_document import GivenName, Link, Material, RejectReason, Section
from hades.ingest.sources.confined import ConfinedPool, ParserStopped
from hades.ingest.sources.formats.extracted import ExtractedDocument, ExtractedFile, Part
from hades.ingest.sources.formats.read_format import FORMATS, Format
from hades.ingest.sources.reading import MAX_TEXT_BYTES, Unusable, decode, read_bytes
from schemas.chunks import ChunkKind
from schemas.graph_types import RelationType
from schemas.nodes import NameType
from schemas.source_kinds import SourceKind

MAX_FILE_BYTES = 128 << 20
_CPU_SECONDS = 30.0
_CPU_SECONDS_PER_MEGABYTE = 10.0
_BETWEEN_PARTS = "\n\n"


class JoinedText(NamedTuple):
    """The parts of a document as one text; spans of the sections count its characters."""

    text: str
    sections: tuple[Section, ...]


class FileConverter:
    """Converts files, several at a time when called from several threads."""

    def __init__(self, workers: int) -> None:
        self._children = ConfinedPool("hades.ingest.sources.formats.read_format:read_format", workers)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._children.__exit__(kind, error, trace)

    def convert(self, path: str, origin: str, suffix: str, stem: str) -> list[Material]:
        """The documents of one file; raises `Unusable` when it has none."""
        form = FORMATS[suffix]
        data = read_bytes(path, MAX_TEXT_BYTES if form.is_text else MAX_FILE_BYTES)
        if not data.strip():
            raise Unusable(RejectReason.EMPTY, "an empty file", len(data))
        allowed = min(4 * _CPU_SECONDS, _CPU_SECONDS + _CPU_SECONDS_PER_MEGABYTE * len(data) / 1e6)
        try:
            found: ExtractedFile = self._children.call(
                suffix, decode(data) if form.is_text else data, cpu_seconds=allowed
            )
        except ParserStopped as stopped:
            raise Unusable(RejectReason.OVERSIZED, stopped.reason, len(data)) from stopped
        if found.problem:
            raise Unusable(RejectReason(found.reason), found.problem, len(data))
        materials = [_material(one, origin, form, stem) for one in found.documents if one.parts]
        if not materials:
            raise Unusable(RejectReason.EMPTY, f"no text in this {form.name} file", len(data))
        return materials


def join_parts(parts: tuple[Part, ...]) -> JoinedText:
    """Parts with a blank line between them, one section each."""
    sections: list[Section] = []
    position = 0
    for part in parts:
        sections.append(Section(position, position + len(part.text), ChunkKind(part.kind), part.headings))
        position += len(part.text) + len(_BETWEEN_PARTS)
    return JoinedText(_BETWEEN_PARTS.join(part.text for part in parts), tuple(sections))


def _material(found: ExtractedDocument, origin: str, form: Format, stem: str) -> Material:
    joined = join_parts(found.parts)
    own = f"{origin}#{found.fragment}" if found.fragment else origin
    metadata: dict[str, object] = {"message_id": found.message_id} if found.message_id else {}
    return Material(
        origin=own,
        source=SourceKind.DOCUMENTS,
        text=joined.text,
        title=found.title or stem,
        uri=own,
        mime=form.mime,
        created=found.created,
        sections=joined.sections,
        names=tuple(GivenName(name, NameType.PERSON) for name in found.people),
        links=_thread(found, origin),
        metadata=metadata,
    )


def _thread(found: ExtractedDocument, origin: str) -> tuple[Link, ...]:
    """The message that this one replies to, where both are in one mailbox."""
    if not found.replies_to or not found.fragment:
        return ()
    return (Link(RelationType.REFERS_TO, f"{origin}#{found.replies_to}", context=f"replies to {found.title}"),)
