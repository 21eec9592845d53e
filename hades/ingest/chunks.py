"""Phase 2: texts cut at sentence ends into pieces a model reads whole, code by its units; phase 3:
their vectors.
"""

from __future__ import annotations

import re
import shutil
from bisect import bisect_right
from collections import Counter, deque
from collections.abc import Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from datetime import datetime
from itertools import chain
from pathlib import Path

import numpy as np
import orjson
import pyarrow as pa

from hades.ingest.nodes import sections_of
from hades.ingest.parsers.facts import Lines, Section, trim
from hades.ports.services import Embedder, ProgressReport, SignsTokens, Tokenizer, silent
from hades.ports.store import GraphStore, Row, RowStore, Term, scan_values
from hades.text.languages import ENGLISH, language_words
from hades.text.words import identifier_words
from schemas.ids import Span, content_key, node_id, sha256_text
from schemas.nodes import CODE_KINDS, ChunkKind
from schemas.sources import SourceKind

CHUNKER_VERSION = 10  # raise it with any change of the cut: documents are then chunked again
MAX_TOKENS = 240  # MiniLM reads 256 with its marks; the rest is for title and headings
_SENTENCE_END = re.compile(r"[.!?][\"')\]]*(?=\s)|\n\s*\n|[。！？]+[」』”）]*")
_FENCE = re.compile(r"\s*(```+|~~~+)")
# Of a list, a table or a definition.
_ITEM = re.compile(r"\s*(?:(?:[-*+]|\d{1,3}[.)]|#\.|:)[ \t]|\||\+[-=]+\+|=+ +=)")
_INTRODUCTION_CHARS = 400


@dataclass(frozen=True)
class ChunkedText:
    """What the chunker needs of a document."""

    key: str
    title: str
    text: str
    sections: Sequence[Section]
    created: datetime | None = None
    path: str = ""  # of a file of a workspace, whose lines are counted
    file_path: str = ""
    language: str = ENGLISH  # of its prose


def chunk_rows(
    documents: Sequence[ChunkedText],
    tokenizer: Tokenizer,
    max_tokens: int = MAX_TOKENS,
) -> list[Row]:
    """Chunks of all the documents, in order; blank sections give none."""
    rows: list[Row] = []
    for document in documents:
        lines = Lines(document.text) if document.path else None
        twins: Counter[str] = Counter()
        cuts = cut_sections(document, tokenizer, max_tokens)

        for index, (section, start, end, tokens) in enumerate(cuts):
            text = document.text[start:end]
            title = _title(document, section)
            twin = [str(twins[text])] if twins[text] else []
            twins[text] += 1
            row = {
                "_key": content_key("c", document.key, text, *twin),
                "document": node_id("documents", document.key),
                "text": text,
                "span": [start, end],
                "chunk_index": index,
                "kind": str(section.kind),
                "headings": list(section.headings),
                "title": title,
                "token_count": tokenizer.count(text) if tokens is None else tokens,
                "file_path": document.path or document.file_path,
                "symbol": section.symbol or "",
                "signature": section.signature,
                "words": _search_words(document, title, section, text),
                "start_line": lines.at(start) + 1 if lines else 0,
                "end_line": lines.at(end - 1) + 1 if lines else 0,
                "timestamp": document.created,
                "sha256": sha256_text(embedding_text(title, section.headings, text)),
                "metadata": "{}",
            }
            rows.append(row)

    return rows


def cut_sections(
    document: ChunkedText,
    tokenizer: Tokenizer,
    max_tokens: int = MAX_TOKENS,
) -> Iterator[tuple[Section, int, int, int | None]]:
    """Section, start, end and tokens of each chunk of a document; tokens of code are not
    counted.
    """
    for section in document.sections:
        start, end = _bounds(document.text, section)
        if start >= end:
            continue

        is_code = section.kind in CODE_KINDS
        if is_code:
            tokens = None
        else:
            tokens = tokenizer.count(document.text[start:end])

        if tokens is None or tokens <= max_tokens:
            yield section, start, end, tokens
        else:
            fence = ""
            fence_start = start
            for begin, stop, count in _cut(
                document.text,
                start,
                end,
                tokenizer,
                max_tokens,
            ):
                fence = _open_fence(document.text[fence_start:begin], fence)
                fence_start = begin
                if fence:
                    part = section._replace(kind=ChunkKind.LISTING)
                else:
                    part = section

                yield part, begin, stop, count


def _open_fence(text: str, fence: str) -> str:
    """The fence of the code that is open behind a text; "" for none. `fence` was open before it."""
    for line in text.split("\n"):
        if mark := _FENCE.match(line):
            if not fence:
                fence = mark[1]
            elif mark[1].startswith(fence) and not line[mark.end() :].strip():
                fence = ""

    return fence


def embedding_text(
    title: str,
    headings: Sequence[str],
    text: str,
) -> str:
    """What is embedded: the text under its title and headings, unless it begins with them
    already.
    """
    above = []
    for line in dict.fromkeys([title, *headings]):
        if line and not text.startswith(line):
            above.append(line)

    return "\n".join([*above, text])


def _title(document: ChunkedText, section: Section) -> str:
    """The path of code, the subject of a commit, else the title of the document."""
    if section.kind == ChunkKind.COMMIT:
        return section.headings[0]
    if section.kind in CODE_KINDS and document.path:
        return document.path

    return document.title


def _search_words(
    document: ChunkedText,
    title: str,
    section: Section,
    text: str,
) -> str:
    """What a unit is found by beside its text: headings above it, words of its language, parts of
    its identifiers.

    Identifiers are cut in a workspace only.
    """
    header = " ".join(section.headings[1:] if section.kind in CODE_KINDS else section.headings)
    if section.kind in CODE_KINDS:
        words = []
    else:
        words = language_words(f"{title} {header} {text}", document.language)

    if document.path or section.kind == ChunkKind.COMMIT:
        words += identifier_words(f"{title} {section.symbol or ''} {header} {text}")

    return " ".join(filter(None, [header, *words]))


def _bounds(text: str, section: Section) -> Span:
    """A section without white space at its ends; code keeps the indentation of its first line."""
    start, end = trim(text, section.start, section.end)
    if section.kind in CODE_KINDS and start < end:
        return (section.start, end)

    return (start, end)


def _cut(
    text: str,
    start: int,
    end: int,
    tokenizer: Tokenizer,
    max_tokens: int,
) -> list[tuple[int, int, int]]:
    """Pieces of at most `max_tokens`, cut at the last sentence end that fits, else at white space,
    else at a token.

    Code blocks, lists and tables stay whole, with the line that introduces them, where they fit.
    """
    piece = text[start:end]
    ends, tokens = tokenizer.word_ends(piece)

    sentence_ends = []
    for match in _SENTENCE_END.finditer(piece):
        sentence_ends.append(match.end())

    blocks = find_blocks(piece)
    if blocks:
        outside = _leave_whole(sentence_ends, blocks)
    else:
        outside = sentence_ends

    line_ends = Lines(piece).starts[1:] if blocks else []
    item_starts = []
    for place in line_ends:
        if _ITEM.match(piece, place):
            item_starts.append(place)

    cuts: list[tuple[int, int, int]] = []
    begin, first, used = 0, 0, 0  # character, word, tokens before this piece
    while first < len(ends):
        fitting = max(bisect_right(tokens, used + max_tokens), first + 1)
        limit = ends[fitting - 1]
        if fitting == len(ends):
            stop = len(piece)
        else:
            half = begin + (limit - begin) // 2
            least = begin + (limit - begin) // 8 if blocks else half
            stop = _last_within(outside, least, limit)
            stop = stop or _last_within(item_starts, half, limit)

            if not stop and not _open_fence(piece[:limit], ""):
                stop = _last_within(sentence_ends, half, limit)

            stop = stop or _break_at(
                piece,
                line_ends or sentence_ends,
                half,
                limit,
            )

        last = max(bisect_right(ends, stop), first + 1)
        piece_start, piece_end = trim(piece, begin, stop)
        if piece_start < piece_end:
            cuts.append((start + piece_start, start + piece_end, tokens[last - 1] - used))

        begin = stop
        first = last
        used = tokens[last - 1]

    return cuts


def find_blocks(text: str) -> list[Span]:
    """Spans of code blocks, lists and tables in order, each with what introduces it.

    That is the paragraph before code, and one that ends with a colon before a list or table; of a
    long one its last sentences.
    """
    blocks: list[Span] = []
    start, end, paragraph, position = -1, 0, -1, 0  # -1: none is open
    fence = ""
    is_introduced = False
    is_item = False

    for line in text.splitlines(keepends=True):
        begin = position
        position = position + len(line)
        mark = _FENCE.match(line)
        goes_on = start >= 0 and line.strip() and (line[0].isspace() or is_item)

        if fence:
            if mark and line.strip() == mark.group(1) and mark.group(1).startswith(fence):
                fence = ""
            end = position
        elif mark or _ITEM.match(line) or goes_on:
            if start < 0:
                is_said = paragraph >= 0 and (is_introduced or mark)
                if is_said:
                    start = _begin_of_introduction(text, paragraph, begin)
                else:
                    start = begin

            fence = mark.group(1) if mark else ""
            end = position
            is_item = not mark
        elif line.strip():
            if start >= 0:
                blocks.append((start, end))
                start = -1
                paragraph = -1

            if paragraph < 0 or text.startswith("\n", max(0, begin - 2)):
                paragraph = begin
            is_introduced = line.rstrip().endswith(":")
        else:
            is_item = False

    if start >= 0:
        blocks.append((start, end))

    return blocks


def _begin_of_introduction(
    text: str,
    paragraph: int,
    end: int,
) -> int:
    """Where the paragraph before a block begins; of a long one, the last sentences that are short
    enough together.
    """
    introduction = text[paragraph:end].rstrip()

    places = []
    for match in _SENTENCE_END.finditer(introduction):
        if match.end() < len(introduction):
            places.append(match.end())

    if len(introduction) <= _INTRODUCTION_CHARS or not places:
        return paragraph

    return paragraph + next(
        (place for place in places if len(introduction) - place <= _INTRODUCTION_CHARS),
        places[-1],
    )


def _leave_whole(places: Sequence[int], blocks: Sequence[Span]) -> list[int]:
    """The places that lie in no block, and where blocks begin and end."""
    starts = [start for start, _ in blocks]
    cut_places = set(chain.from_iterable(blocks)) - {0}

    for place in places:
        block = blocks[bisect_right(starts, place) - 1]
        if not block[0] < place < block[1]:
            cut_places.add(place)

    return sorted(cut_places)


def _last_within(
    places: Sequence[int],
    least: int,
    limit: int,
) -> int:
    """The last place beyond `least` and at most at `limit`; 0 for none."""
    position = bisect_right(places, limit) - 1
    if position >= 0 and places[position] > least:
        return places[position]

    return 0


def _break_at(
    piece: str,
    places: Sequence[int],
    least: int,
    limit: int,
) -> int:
    """The best of these places to break at, beyond `least` and at most at `limit`, else white
    space, else the limit.
    """
    blanks = (place for place in range(limit, least, -1) if piece[place - 1].isspace())
    return _last_within(places, least, limit) or next(blanks, limit)


DOCUMENT_COLUMNS = ("_key", "title", "text", "facts", "created", "source", "origin", "metadata")


def chunked_text(row: Row) -> ChunkedText:
    """A row of a document with `DOCUMENT_COLUMNS`."""
    facts = orjson.loads(row["facts"])
    path = facts.get("code", {}).get("path", "")
    sections = sections_of(facts, len(row["text"]))

    if row["source"] == SourceKind.DOCUMENTS:
        file_path = row["origin"]
    else:
        file_path = ""

    language = str(orjson.loads(row["metadata"]).get("language", ENGLISH))
    return ChunkedText(
        key=row["_key"],
        title=row["title"],
        text=row["text"],
        sections=sections,
        created=row["created"],
        path=path,
        file_path=file_path,
        language=language,
    )


# Phase embeddings: every chunk gets a vector of the model in use; a change of model replaces all of
# them at once. Work is taken in key order, a window of chunks at a time, and each window is
# committed: a run that was stopped goes on where it was. When chunks hold vectors of another model,
# the new ones are first made beside the store and then swapped in within one transaction, so that
# no reader ever finds two models mixed.
WINDOW = 2_048
_MAX_RANGES = 64
_COLUMNS = ("_key", "title", "headings", "text", "sha256")


def embed_chunks(
    store: GraphStore,
    embedder: Embedder,
    scratch: Path,
    progress: ProgressReport = silent,
) -> int:
    """Embed what has no vector of the current model; how many were embedded."""
    if store.count(
        "doc_chunks",
        where=[Term("embedding_model", "!=", embedder.model.tag)],
    ):
        return _replace_model(store, embedder, scratch, progress)
    return _embed_missing(
        store,
        embedder,
        [Term("embedding_model", "is_null")],
        progress,
    )


def pending_ranges(store: RowStore, tag: str) -> list[tuple[str, str]]:
    """Chunks without a vector as a bounded number of key ranges, first and last, to be embedded
    side by side.

    None when vectors of another model are there: they are replaced all at once, by `embed_chunks`.
    """
    if store.count(
        "doc_chunks",
        where=[Term("embedding_model", "!=", tag)],
    ):
        return []

    keys = list(
        scan_values(
            store,
            "doc_chunks",
            "_key",
            where=[Term("embedding_model", "is_null")],
        )
    )
    size = max(WINDOW, -(-len(keys) // _MAX_RANGES))
    return [
        (keys[start], keys[min(start + size, len(keys)) - 1]) for start in range(0, len(keys), size)
    ]


def embed_range(
    store: GraphStore,
    embedder: Embedder,
    first: str,
    last: str,
    progress: ProgressReport = silent,
) -> int:
    """Embed the chunks of one range that have no vector; several processes may do different ranges
    at once.
    """
    where = [
        Term("embedding_model", "is_null"),
        Term("_key", ">=", first),
        Term("_key", "<=", last),
    ]
    return _embed_missing(store, embedder, where, progress)


def _embed_missing(
    store: GraphStore,
    embedder: Embedder,
    where: Sequence[Term],
    progress: ProgressReport,
) -> int:
    total = store.count("doc_chunks", where=where)
    done_count = 0
    # The scan goes on reading the store as it was when it began, whatever is written meanwhile.
    for keys, vectors, signs in _embed_ahead(embedder, _windows(store, where)):
        store.patch("doc_chunks", _patch(keys, vectors, signs, embedder.model.tag))
        done_count += len(keys)
        progress("embeddings", done_count, total)

    return done_count


def _replace_model(
    store: GraphStore,
    embedder: Embedder,
    scratch: Path,
    progress: ProgressReport,
) -> int:
    """Embed everything with the new model into files, then swap in one transaction.

    A window is kept under the hash of its texts: a run that was stopped embeds what is left.
    """
    folder = scratch / ("reembed-" + re.sub(r"[^\w.-]", "_", embedder.model.tag))
    folder.mkdir(parents=True, exist_ok=True)
    total = store.count("doc_chunks")
    done_count = 0
    embedded_count = 0

    ready: list[tuple[list[str], Path]] = []
    for keys, hashes, texts in _windows(store):
        window_file = folder / f"{sha256_text(' '.join(hashes))}.npz"
        if not window_file.exists():
            partial = folder / "partial.npz"
            vectors, signs = _embed(embedder, texts)
            np.savez(
                partial,
                vectors=vectors,
                signs=signs,
            )
            partial.replace(window_file)
            embedded_count += len(keys)

        ready.append((keys, window_file))
        done_count += len(keys)
        progress("embeddings", done_count, total)

    with store.bulk(["doc_chunks"]) as inside:
        for keys, window_file in ready:
            with np.load(window_file) as arrays:
                vectors = arrays["vectors"]
                signs = arrays["signs"].tolist()

            inside.patch("doc_chunks", _patch(keys, vectors, signs, embedder.model.tag))

    shutil.rmtree(folder)
    return embedded_count


def _windows(
    store: GraphStore,
    where: Sequence[Term] = (),
) -> Iterator[tuple[list[str], list[str], list[str]]]:
    """Keys of some chunks, in order, their hashes, and what is to be embedded of each."""
    for batch in store.scan(
        "doc_chunks",
        where=where,
        columns=_COLUMNS,
        batch_rows=WINDOW,
    ):
        keys, titles, headings, texts, hashes = (batch[name].to_pylist() for name in _COLUMNS)
        yield keys, hashes, list(map(embedding_text, titles, headings, texts))


def _embed_ahead(
    embedder: Embedder,
    windows: Iterator[tuple[list[str], list[str], list[str]]],
) -> Iterator[tuple[list[str], np.ndarray, list[str]]]:
    """Keys of a window, vectors and signs; the next window is embedded while one is written."""
    with ThreadPoolExecutor(1) as worker:
        pending: deque[tuple[list[str], Future[tuple[np.ndarray, list[str]]]]] = deque()
        for keys, _, texts in windows:
            pending.append((keys, worker.submit(_embed, embedder, texts)))
            if len(pending) > 1:
                ready_keys, embedding = pending.popleft()
                yield ready_keys, *embedding.result()

        for ready_keys, embedding in pending:
            yield ready_keys, *embedding.result()


def _embed(embedder: Embedder, texts: Sequence[str]) -> tuple[np.ndarray, list[str]]:
    """Vectors, and the signs of tokens where the embedder gives them."""
    if isinstance(embedder, SignsTokens):
        return embedder.embed_signs(texts)
    return (embedder.embed(texts), [""] * len(texts))


def _patch(
    keys: Sequence[str],
    vectors: np.ndarray,
    signs: Sequence[str],
    tag: str,
) -> pa.Table:
    columns = {
        "embedding": as_lists(vectors),
        "token_signs": list(signs),
        "embedding_model": [tag] * len(keys),
    }
    return pa.table({"_key": list(keys), **columns})


def as_lists(vectors: np.ndarray) -> pa.Array:
    """(n, dim) float32 as an Arrow list column."""
    rows, dimension = vectors.shape
    flat = pa.array(np.ascontiguousarray(vectors, dtype=np.float32).reshape(-1))
    return pa.ListArray.from_arrays(
        pa.array(
            np.arange(
                0,
                (rows + 1) * dimension,
                dimension,
                dtype=np.int32,
            )
        ),
        flat,
    )
