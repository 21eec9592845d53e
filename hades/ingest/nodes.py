"""Phase 1: material as rows of documents, papers, files and functions, and the hash by which it is
known.

A document is known by its source and origin, so reading it again finds the same rows. Functions of
one name in one file are told apart by a suffix that counts them in order of appearance: same input,
same keys.
"""

from __future__ import annotations

import hashlib
import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from hades.ingest.parsers.facts import Section, Symbol
from hades.ingest.sources.material import CodeFile, Link, Material, RejectedInput
from hades.ports.store import Row
from hades.text.languages import ENGLISH, detect_language
from schemas.ids import content_key, node_id, sha256_text
from schemas.nodes import ChunkKind
from schemas.record import JsonObject
from schemas.record import canonical_json as canonical
from schemas.sources import SourceKind

_FILE_ENDINGS = re.compile(r"(?:\.jsonl|\.json)?(?:\.gz)?$")
_LABEL_CHARACTERS = 200


@dataclass(frozen=True)
class NodeRows:
    """Rows of one document, by collection, and the hash of everything the source said about it."""

    key: str
    origin: str
    digest: str
    rows: dict[str, list[Row]]


def node_rows(material: Material, corpus: str = "") -> NodeRows:
    """Every node a document gives rise to by itself."""
    key = document_key(
        material.source,
        material.origin,
        corpus,
    )
    facts = _facts(material, corpus)
    is_prose = material.code is None and material.commit is None

    if is_prose:
        spoken = detect_language(material.text)
    else:
        spoken = ENGLISH

    language = {} if spoken == ENGLISH else {"language": spoken}
    document: Row = {
        "_key": key,
        "origin": material.origin,
        "source": str(material.source),
        "uri": material.uri,
        "title": material.title,
        "mime": material.mime,
        "text": material.text,
        "sha256": sha256_text(material.text),
        "domains": [*domains_of(material, corpus), *language.values()],
        "created": material.created,
        "facts": canonical(facts),
        "metadata": canonical({**language, **material.metadata}),
    }
    rows: dict[str, list[Row]] = {"documents": [document]}
    owner = {"document": node_id("documents", key)}

    if material.paper:
        paper_key = content_key("p", material.paper["id"])
        metadata = canonical(material.paper["metadata"])
        paper = {
            **material.paper,
            **owner,
            "_key": paper_key,
            "metadata": metadata,
        }
        rows["papers_raw"] = [paper]

    if material.code:
        file = {
            "_key": content_key("file", key),
            **owner,
            "sha256": document["sha256"],
        }
        for name in ("path", "language", "size", "module"):
            file[name] = getattr(material.code, name)

        rows["files"] = [file]
        rows["funcs"] = func_rows(material.code, key)

    described = {name: value for name, value in document.items() if name != "uri"}
    digest = hashlib.sha256(canonical(described).encode()).hexdigest()
    return NodeRows(key, material.origin, digest, rows)


def domains_of(material: Material, corpus: str) -> list[str]:
    """What a question can be limited to, most specific first: stated domain, categories, language,
    folder, corpus.
    """
    labels = [material.domain, *(material.paper["categories"] if material.paper else ())]
    if material.commit:
        labels.append("commits")
    if material.code:
        labels.append(material.code.language)

    if material.source in (SourceKind.WORKSPACE, SourceKind.DOCUMENTS):
        folder, slash, _ = material.origin.partition("/")
        labels.append(folder if slash and not material.commit else "")

    labels += [_FILE_ENDINGS.sub("", corpus), str(material.source)]
    cleaned = (" ".join(label.split())[:_LABEL_CHARACTERS] for label in labels)
    return list(dict.fromkeys(filter(None, cleaned)))


def document_key(
    source: str,
    origin: str,
    corpus: str = "",
) -> str:
    """The key of a document: its source and the id it came in with.

    Paths mean something only within their folder, so there the corpus belongs to the key; ids of
    papers and passages are the same whichever file brings them.
    """
    by_path = source in (SourceKind.WORKSPACE, SourceKind.DOCUMENTS)
    return content_key(
        "d",
        str(source),
        *([corpus] if by_path else []),
        origin,
    )


def quarantine_row(rejected: RejectedInput) -> Row:
    """Input that was set aside, as a row."""
    return {
        "_key": content_key("q", str(rejected.source), rejected.uri),
        **vars(rejected),
    }


def func_rows(code: CodeFile, document: str) -> list[Row]:
    """Functions of a file."""
    keys = func_keys(document, [symbol.qualified_name for symbol in code.symbols])
    return [
        {
            "_key": key,
            "name": symbol.name,
            "qualified_name": symbol.qualified_name,
            "kind": symbol.kind,
            "signature": symbol.signature,
            "docstring": symbol.docstring,
            "path": code.path,
            "language": code.language,
            "document": node_id("documents", document),
            "span": [symbol.start, symbol.end],
        }
        for key, symbol in zip(keys, code.symbols, strict=True)
    ]


def func_keys(document: str, qualified_names: Sequence[str]) -> list[str]:
    """Keys of a file's functions in order of appearance; the second of a name gets the suffix -2,
    and so on.
    """
    counts: Counter[str] = Counter()

    keys = []
    for name in qualified_names:
        counts[name] += 1
        suffix = f"-{counts[name]}" if counts[name] > 1 else ""
        keys.append(content_key("f", document, name) + suffix)

    return keys


def sections_of(facts: JsonObject, length: int) -> list[Section]:
    """The sections kept in a document's facts; the whole text as prose when the source gave
    none.
    """
    stored = facts.get("sections")
    if not stored:
        return [Section(0, length, ChunkKind.PROSE)]

    sections: list[Section] = []
    for start, end, kind, headings, symbol, *signature in stored:
        sections.append(
            Section(
                start,
                end,
                kind,
                tuple(headings),
                symbol,
                *signature,
            )
        )

    return sections


def _link_fact(link: Link) -> JsonObject:
    """A link as plain JSON; a section only where one is meant."""
    return {name: value for name, value in vars(link).items() if value or name != "section"}


def _facts(material: Material, corpus: str) -> JsonObject:
    """What the source states beside the text, as plain JSON; absent parts are left out."""
    facts: JsonObject = {
        "sections": [
            [*section[:5], *filter(None, [section.signature])] for section in material.sections
        ],
        "names": list(dict.fromkeys(material.names)),
        "triples": material.triples,
        "links": [_link_fact(link) for link in material.links],
        "follows": material.follows,
    }
    if material.code:
        facts["code"] = _code_facts(material.code)
    if material.commit:  # its message names code, not things of the world
        facts["commit"] = {
            **material.commit,
            "corpus": corpus,
            "prose": [],
        }
    if material.paper:
        facts["paper"] = {name: material.paper[name] for name in ("id", "authors", "categories")}

    return {name: value for name, value in facts.items() if value}


def _code_facts(code: CodeFile) -> JsonObject:
    facts: JsonObject = {
        "path": code.path,
        "language": code.language,
        "module": code.module,
        "symbols": [_symbol_facts(symbol) for symbol in code.symbols],
        "imports": [[*statement[:4], *statement.span] for statement in code.imports],
    }
    if code.prose is not None:
        facts["prose"] = code.prose
    return facts


def _symbol_facts(symbol: Symbol) -> JsonObject:
    calls = zip(symbol.calls, symbol.call_spans, strict=True)
    return {
        "name": symbol.name,
        "qualified_name": symbol.qualified_name,
        "kind": symbol.kind,
        "bases": symbol.bases,
        "calls": [[name, *span] for name, span in calls],
    }
