"""Phase 1: documents as rows."""

from __future__ import annotations

import hashlib
import importlib
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import islice, zip_longest
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from hades.ingest.manifest import as_table
from hades.ingest.sources.material import CodeFile, Material, Portion, PortionedSource, RejectedInput, Section, Source
from hades.ingest.workers import WorkerPool
from schemas.ids import content_key, node_id, sha256_text
from schemas.nodes import ChunkKind, NameType
from schemas.record import canonical_json as canonical
from schemas.sources import SourceKind

# Phase nodes: material as rows of documents, papers, files and functions, and the hash by which it is known. A
# document is known by its source and origin, so reading it again finds the same rows. Functions of one name in one
# file are told apart by a suffix that counts them in order of appearance: same input, same keys.


Row = dict[str, Any]
_FILE_ENDINGS = re.compile(r"(?:\.jsonl|\.json)?(?:\.gz)?$")
_LABEL_CHARACTERS = 200


@dataclass(frozen=True)
class NodeRows:
    """Rows of one document, by collection, and the hash of everything the source said about it."""

    key: str
    digest: str
    rows: dict[str, list[Row]]


def node_rows(material: Material, corpus: str = "") -> NodeRows:
    """Every node a document gives rise to by itself."""
    key = document_key(material.source, material.origin, corpus)
    facts = _facts(material, corpus)
    document: Row = {
        "_key": key,
        "origin": material.origin,
        "source": str(material.source),
        "uri": material.uri,
        "title": material.title,
        "mime": material.mime,
        "text": material.text,
        "sha256": sha256_text(material.text),
        "domains": domains_of(material, corpus),
        "created": material.created,
        "facts": canonical(facts),
        "metadata": canonical(material.metadata),
    }
    rows: dict[str, list[Row]] = {"documents": [document]}
    if material.paper:
        rows["papers_raw"] = [_paper_row(material, key)]
    if material.code:
        rows["files"] = [_file_row(material.code, key, document["sha256"])]
        rows["funcs"] = func_rows(material.code, key)
    described = {name: value for name, value in document.items() if name != "uri"}
    return NodeRows(key, hashlib.sha256(canonical(described).encode()).hexdigest(), rows)


def domains_of(material: Material, corpus: str) -> list[str]:
    """What a question can be limited to, most specific first: stated domain, categories, language, folder, corpus."""
    labels = [material.domain, *(material.paper.categories if material.paper else ())]
    if material.commit:
        labels.append("commits")
    if material.code:
        labels.append(material.code.language)
    if material.source in (SourceKind.WORKSPACE, SourceKind.DOCUMENTS):
        folder, slash, _ = material.origin.partition("/")
        labels.append(folder if slash and not material.commit else "")
    labels += [_FILE_ENDINGS.sub("", corpus), str(material.source)]
    return list(dict.fromkeys(filter(None, (" ".join(label.split())[:_LABEL_CHARACTERS] for label in labels))))


def document_key(source: str, origin: str, corpus: str = "") -> str:
    """The key of a document: its source and the id it came in with.

    Paths mean something only within their folder, so there the corpus belongs to the key; ids of papers and passages
    are the same whichever file brings them.
    """
    by_path = source in (SourceKind.WORKSPACE, SourceKind.DOCUMENTS)
    return content_key("d", str(source), *([corpus] if by_path else []), origin)


def quarantine_row(rejected: RejectedInput) -> Row:
    """Input that was set aside, as a row."""
    return {
        "_key": content_key("q", str(rejected.source), rejected.uri),
        "source": str(rejected.source),
        "uri": rejected.uri,
        "reason": str(rejected.reason),
        "detail": rejected.detail,
        "size": rejected.size,
    }


def func_rows(code: CodeFile, document: str) -> list[Row]:
    """Functions of a file."""
    keys = func_keys(document, [symbol.qualified_name for symbol in code.symbols])
    return [
        {
            "_key": key,
            "name": symbol.name,
            "qualified_name": symbol.qualified_name,
            "kind": str(symbol.kind),
            "path": code.path,
            "language": code.language,
            "document": node_id("documents", document),
            "span": [symbol.start, symbol.end],
            "signature": symbol.signature,
            "docstring": symbol.docstring,
        }
        for key, symbol in zip(keys, code.symbols, strict=True)
    ]


def func_keys(document: str, qualified_names: Sequence[str]) -> list[str]:
    """Keys of a file's functions in order of appearance; the second of a name gets the suffix -2, and so on."""
    seen: Counter[str] = Counter()
    keys = []
    for name in qualified_names:
        seen[name] += 1
        keys.append(content_key("f", document, name) + (f"-{seen[name]}" if seen[name] > 1 else ""))
    return keys


def sections_of(facts: dict[str, Any], length: int) -> list[Section]:
    """The sections kept in a document's facts; the whole text as prose when the source gave none."""
    kept = facts.get("sections")
    if not kept:
        return [Section(0, length, ChunkKind.PROSE)]
    return [
        Section(start, end, _kind(kind), tuple(headings), symbol, *signature)
        for start, end, kind, headings, symbol, *signature in kept
    ]


def _kind(name: str) -> ChunkKind:
    """The kind of a section; stores of before 0.4 also know docstrings, comments and first lines of code."""
    return ChunkKind(name) if name in ChunkKind.__members__.values() else ChunkKind.TEXT


def _facts(material: Material, corpus: str) -> dict[str, Any]:
    """What the source states beside the text, as plain JSON; absent parts are left out."""
    facts: dict[str, Any] = {
        "sections": [
            [s.start, s.end, str(s.kind), list(s.headings), s.symbol, *([s.signature] if s.signature else [])]
            for s in material.sections
        ],
        "names": _names(material),
        "triples": [list(triple) for triple in material.triples],
        "links": [
            {
                "relation": str(link.relation),
                "target": link.target,
                "external": link.external,
                "count": link.count,
                "context": link.context,
            }
            for link in material.links
        ],
        "follows": material.follows,
    }
    if material.code:
        facts["code"] = {
            "path": material.code.path,
            "language": material.code.language,
            "module": material.code.module,
            "symbols": [
                {
                    "name": symbol.name,
                    "qualified_name": symbol.qualified_name,
                    "kind": str(symbol.kind),
                    "calls": [
                        [call, *span] for call, span in zip_longest(symbol.calls, symbol.call_spans, fillvalue=())
                    ],
                    "bases": list(symbol.bases),
                }
                for symbol in material.code.symbols
            ],
            "imports": [[one.module, one.name, one.alias, one.symbol, *one.span] for one in material.code.imports],
        }
        if material.code.prose is not None:
            facts["code"]["prose"] = [list(span) for span in material.code.prose]
    if material.commit:
        facts["commit"] = {
            "id": material.commit.id,
            "author": material.commit.author,
            "corpus": corpus,
            "files": [[path, list(names)] for path, names in material.commit.files],
            "prose": [],  # messages name code, not things of the world
        }
    if material.paper:
        facts["paper"] = {
            "id": material.paper.arxiv_id,
            "authors": list(material.paper.authors),
            "categories": list(material.paper.categories),
        }
    return {name: value for name, value in facts.items() if value}


def _names(material: Material) -> list[list[str | None]]:
    """Names the source states outright, a paper's authors among them, each once."""
    authors = [(author, str(NameType.PERSON)) for author in material.paper.authors] if material.paper else []
    given = [(name.name, str(name.kind) if name.kind else None) for name in material.names]
    return [list(pair) for pair in dict.fromkeys([*given, *authors])]


def _paper_row(material: Material, document: str) -> Row:
    paper = material.paper
    assert paper is not None
    return {
        "_key": content_key("p", paper.arxiv_id),
        "id": paper.arxiv_id,
        "title": paper.title,
        "abstract": paper.abstract,
        "authors": list(paper.authors),
        "categories": list(paper.categories),
        "date": paper.date,
        "document": node_id("documents", document),
        "metadata": canonical(paper.metadata),
    }


def _file_row(code: CodeFile, document: str, sha256: str) -> Row:
    return {
        "_key": content_key("file", document),
        "path": code.path,
        "language": code.language,
        "document": node_id("documents", document),
        "sha256": sha256,
        "size": code.size,
        "module": code.module,
    }


# Documents as rows, some at a time: read and made here, or in worker processes where the source comes in portions.
# A batch holds Arrow tables and a few texts a document, so a large transaction needs little memory. Few
# transactions matter because keys are hashes: each transaction touches nearly all pages of a collection and writes
# them again.


BATCH_DOCUMENTS = 512
SMALL_BYTES = 4 << 20  # a child takes most of a second to start: less than this is read here
Items = Sequence[Material | RejectedInput]


@dataclass(frozen=True)
class NodeBatch:
    """Documents in the order of their source, what each is known by, and their rows by collection."""

    keys: tuple[str, ...]
    origins: tuple[str, ...]
    digests: tuple[str, ...]
    places: tuple[int, ...]  # of each document among the items that were read
    records: tuple[bytes, ...]  # the digest of what each was read from, where the source is one of records
    tables: dict[str, pa.Table]
    rejected: tuple[tuple[int, RejectedInput], ...]

    @property
    def nbytes(self) -> int:
        """The size of the rows."""
        return sum(table.nbytes for table in self.tables.values())

    def only(self, chosen: Sequence[int]) -> NodeBatch:
        """The batch with some of its documents."""
        if len(chosen) == len(self.keys):
            return self
        keys = tuple(self.keys[row] for row in chosen)
        owners = pa.array([node_id("documents", key) for key in keys], pa.string())
        tables = {
            name: table.take(pa.array(chosen, pa.int64()))
            if name == "documents"
            else table.filter(pc.is_in(table.column("document"), value_set=owners))
            for name, table in self.tables.items()
        }
        return NodeBatch(
            keys,
            tuple(self.origins[row] for row in chosen),
            tuple(self.digests[row] for row in chosen),
            tuple(self.places[row] for row in chosen),
            tuple(self.records[row] for row in chosen),
            tables,
            self.rejected,
        )


def read_batches(source: Source, domain: str, pool: WorkerPool) -> Iterator[NodeBatch]:
    """The documents of a source in its order; of two of one key in a batch the last stays."""
    if isinstance(source, PortionedSource):
        return _read_portions(source, domain, pool)
    return (make_batch(items, source.corpus, domain) for items in _take(source.read(), BATCH_DOCUMENTS))


def make_batch(items: Items, corpus: str, domain: str) -> NodeBatch:
    """Some documents as rows."""
    made = {}
    for place, item in enumerate(items):
        if isinstance(item, Material):
            one = node_rows(replace(item, domain=domain) if domain else item, corpus)
            made[one.key] = (place, item, one)
    rows: dict[str, list[dict[str, Any]]] = {}
    for _, _, one in made.values():
        for collection, listed in one.rows.items():
            rows.setdefault(collection, []).extend(listed)
    return NodeBatch(
        tuple(made),
        tuple(item.origin for _, item, _ in made.values()),
        tuple(one.digest for _, _, one in made.values()),
        tuple(place for place, _, _ in made.values()),
        tuple(item.record for _, item, _ in made.values()),
        {collection: as_table(collection, listed) for collection, listed in rows.items() if listed},
        tuple((place, item) for place, item in enumerate(items) if isinstance(item, RejectedInput)),
    )


def read_portion(reader: str, arguments: tuple[object, ...], corpus: str, domain: str) -> NodeBatch:
    """One portion of a source as rows, as a worker process makes them."""
    module, _, function = reader.partition(":")
    return make_batch(getattr(importlib.import_module(module), function)(*arguments), corpus, domain)


def _read_portions(source: PortionedSource, domain: str, pool: WorkerPool) -> Iterator[NodeBatch]:
    """The batches of all portions; a document that came before is set aside as the source says."""
    seen: set[str] = set()
    portions: list[Portion] = []  # in the order in which they were sent, so in that of the answers

    def send() -> Iterator[tuple[int, tuple[object, ...]]]:
        for portion in source.portions():
            portions.append(portion)
            yield portion.size, (portion.reader, portion.arguments, source.corpus, domain)

    for number, batch in enumerate(pool.map_large(read_portion, send(), SMALL_BYTES)):
        portion, portions[number] = portions[number], Portion("", (), 0)
        fresh = [row for row, origin in enumerate(batch.origins) if origin not in seen]
        again = [
            (batch.places[row], source.reject_repeat(portion, batch.places[row], origin))
            for row, origin in enumerate(batch.origins)
            if origin in seen
        ]
        seen.update(batch.origins)
        yield replace(batch.only(fresh), rejected=tuple(sorted([*batch.rejected, *again], key=lambda one: one[0])))
    rest = tuple(enumerate(source.reject_rest(seen)))
    if rest:
        yield NodeBatch((), (), (), (), (), {}, rest)


def _take(items: Iterable[Any], size: int) -> Iterator[list[Any]]:
    iterator = iter(items)
    while batch := list(islice(iterator, size)):
        yield batch
