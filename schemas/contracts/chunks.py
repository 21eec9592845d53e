"""Chunks: each is an exact piece of its document, prose small enough to be embedded whole."""

from __future__ import annotations

from schemas.chunks import ChunkKind
from schemas.contracts.rule import Contract, Rule, holds, matches, one_of, unique

MAX_CHUNK_TOKENS = 256  # what the default embedding model reads of one text
_CHUNK = "run `hades repair chunks`"

CONTRACT = Contract(
    "chunks",
    "pieces of documents with their exact spans",
    (
        Rule(
            "chunks.document_exists",
            "doc_chunks",
            "a chunk's document is stored",
            holds("document_exists"),
            ("document",),
            repair=_CHUNK,
        ),
        Rule(
            "chunks.span_inside_document",
            "doc_chunks",
            "a chunk's span is [start, end) inside its document",
            holds("span_inside_document"),
            ("document", "span", "document_length"),
            repair=_CHUNK,
        ),
        Rule(
            "chunks.text_is_the_span",
            "doc_chunks",
            "a chunk's text is what its span cuts out of the document",
            holds("text_is_the_span"),
            ("document", "span"),
            repair=_CHUNK,
        ),
        Rule(
            "chunks.text_not_blank",
            "doc_chunks",
            "a chunk has text",
            matches("text", r"\S"),
            repair=_CHUNK,
        ),
        Rule(
            "chunks.sha256_of_embedded_text",
            "doc_chunks",
            "a chunk's sha256 is that of its text under title and headings",
            holds("sha256_matches"),
            ("sha256",),
            repair=_CHUNK,
        ),
        Rule(
            "chunks.token_count_in_range",
            "doc_chunks",
            f"a chunk of prose has at most {MAX_CHUNK_TOKENS} tokens; a unit of code ends with its function",
            holds("token_count_in_range"),
            ("kind", "token_count"),
            repair=_CHUNK,
        ),
        Rule(
            "chunks.position_unique",
            "doc_chunks",
            "no two chunks stand at one position of a document",
            unique("document", "chunk_index"),
            repair=_CHUNK,
        ),
        Rule(
            "chunks.kind_known",
            "doc_chunks",
            "a chunk is of a known kind",
            one_of("kind", [str(kind) for kind in ChunkKind]),
            repair=_CHUNK,
        ),
    ),
)
