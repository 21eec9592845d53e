"""Documents of the server as the records that `hades.ports.graph` names."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from hades.ports.graph import EdgeFacts, Kind, NodeFacts, Passage, SourceFacts

NODE_COLUMNS = (
    *("name", "title", "qualified_name", "path", "type", "kind", "level", "summary", "docstring", "document", "span"),
    *("cluster_id", "deg_out", "domain", "frequency"),
)
EDGE_COLUMNS = (
    *("_from", "_to", "type", "weight", "provenance", "label"),
    *("valid_from", "valid_until", "recorded_at", "retracted_at"),
)
PASSAGE_COLUMNS = (
    *("title", "qualified_name", "path", "kind", "document", "span", "headings", "token_count", "timestamp"),
    *("file_path", "symbol", "start_line", "end_line"),
)
SOURCE_COLUMNS = ("_key", "origin", "title", "text", "sha256")
_NAME = {Kind.CHUNK: "title", Kind.FUNC: "qualified_name", Kind.FILE: "path"}
_SUMMARY = {Kind.ENTITY: "summary", Kind.CLUSTER: "summary", Kind.FUNC: "docstring"}

Fields = dict[str, Any]


def node(identifier: str, fields: Fields) -> NodeFacts:
    """One node."""
    kind = Kind(identifier.partition("/")[0])
    return NodeFacts(
        id=identifier,
        kind=kind,
        name=fields.get(_NAME.get(kind, "name")) or "",
        type=_type(kind, fields),
        summary=fields.get(_SUMMARY.get(kind, "")) or "",
        document=_origin(fields, fields.get("document")),
        span=_span(fields.get("span")),
        cluster_id=fields.get("cluster_id"),
        deg_out=fields.get("deg_out") or 0,
        domain=fields.get("domain"),
        frequency=fields.get("frequency") or 0,
    )


def edge(identifier: str, fields: Fields) -> EdgeFacts:
    """One edge."""
    provenance = fields.get("provenance") or {}
    weight = fields.get("weight")
    moments = {name: _moment(fields.get(name)) for name in ("valid_from", "valid_until", "recorded_at", "retracted_at")}
    return EdgeFacts(
        id=identifier,
        source=fields["_from"],
        target=fields["_to"],
        type=fields["type"],
        weight=None if weight is None else float(weight),
        document=_origin(fields, provenance.get("doc")),
        document_id=provenance.get("doc") or "",
        span=_span(provenance.get("span")),
        snippet=fields["snippet"],
        label=fields.get("label") or "",
        **moments,
    )


def passage(identifier: str, fields: Fields) -> Passage:
    """The text of a chunk, a function or a file."""
    kind = Kind(identifier.partition("/")[0])
    text = fields["text"]
    return Passage(
        id=identifier,
        text=text,
        document=_origin(fields, fields.get("document")),
        document_id=fields["document"],
        span=_span(fields.get("span")) or (0, len(text)),
        title=fields.get(_NAME[kind]) or fields.get("source_title") or "",
        headings=tuple(fields.get("headings") or ()),
        kind=_type(kind, fields),
        token_count=fields.get("token_count") or 0,
        timestamp=_moment(fields.get("timestamp")),
        **(_place_in_file(fields) if kind is Kind.CHUNK else {}),
    )


def _place_in_file(fields: Fields) -> Fields:
    first = fields.get("start_line") or 0
    return {
        "path": fields.get("file_path") or "",
        "symbol": fields.get("symbol") or "",
        "lines": (first, fields.get("end_line") or first) if first else None,
    }


def source(fields: Fields) -> SourceFacts:
    """A whole document."""
    return SourceFacts(
        id=f"documents/{fields['_key']}",
        origin=fields.get("origin") or "",
        title=fields.get("title") or "",
        text=fields.get("text") or "",
        sha256=fields.get("sha256") or "",
    )


def _type(kind: Kind, fields: Fields) -> str:
    if kind is Kind.CLUSTER:
        return f"L{fields['level']}"
    if kind is Kind.FILE:
        return "file"
    return str(fields["type" if kind is Kind.ENTITY else "kind"])


def _origin(fields: Fields, document: str | None) -> str:
    """What a citation shows: the document's origin, or for one that is not stored the name it goes by."""
    if document is None:
        return ""
    return fields.get("origin") or document.partition("/")[2] or document


def _span(span: list[int] | None) -> tuple[int, int] | None:
    return (span[0], span[1]) if span is not None and len(span) == 2 else None


def _moment(text: str | None) -> datetime | None:
    return None if text is None else datetime.fromisoformat(text)
