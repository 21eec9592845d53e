"""Topics of a folder follow its own structure: folders, pages or modules, and the headings of long ones."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from math import log2
from os.path import commonpath
from pathlib import PurePosixPath

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from hades.build.columns import column, ids, place
from hades.build.context import read_columns, vectors_of
from hades.build.topics.inputs import HierarchyRules, Material
from hades.ports.store import RowStore, Term
from models.topics import NONE, Flags, Labels, Vectors, centroids, cut_tree
from schemas.sources import SourceKind

NAMED = 2  # headings or titles in the name of a topic
ROOT = "."
_CHUNK = ["_key", "document", "chunk_index", "headings", "symbol", "embedding", "embedding_model"]
_FOLDERS = (str(SourceKind.DOCUMENTS), str(SourceKind.WORKSPACE))


@dataclass(frozen=True)
class Outline:
    """Topics of pages: each entity's (-1: no page speaks of it), their centroids, their names and where they lie.

    `is_page` marks the entities that stand for a page.
    """

    labels: Labels
    is_page: Flags
    centroids: Vectors
    names: list[str]
    places: list[str]


@dataclass(frozen=True)
class _Section:
    """Chunks (rows) of one page that stay together: a whole page, or some headings of a long one."""

    page: str
    folder: str
    headings: tuple[str, ...]
    rows: tuple[int, ...]


def read_outline(store: RowStore, material: Material, model: str, rules: HierarchyRules) -> Outline | None:
    """The topics of the pages and modules of folders; None where no folder was ingested.

    A topic is about as long as the others: as many chunks as make `outline_scale` times the square root of their number
    topics. A page of more than twice that is divided at its headings, shorter ones of one folder are joined by meaning.
    """
    pages = read_columns(store, "documents", ["_key", "origin", "title"], [Term("source", "in", _FOLDERS)])
    documents = ids("documents", column(pages, "_key"))
    chunks = read_columns(store, "doc_chunks", _CHUNK)
    chunks = chunks.filter(pc.is_in(chunks.column("document"), value_set=documents))
    chunks = chunks.sort_by([("document", "ascending"), ("chunk_index", "ascending")])
    if not chunks.num_rows:
        return None
    folders = [str(PurePosixPath(origin).parent) for origin in pages.column("origin").to_pylist()]
    root = commonpath(folders) if len({folder.startswith("/") for folder in folders}) == 1 else ""
    folder_of = {
        page: str(PurePosixPath(folder).relative_to(root))
        for page, folder in zip(documents.to_pylist(), folders, strict=True)
    }
    titles = dict(zip(documents.to_pylist(), pages.column("title").to_pylist(), strict=True))
    size = _topic_size(chunks.num_rows, rules)
    sections = list(_sections(chunks, folder_of, titles, size))
    vectors = vectors_of(chunks, model)
    groups = _join_sections(sections, vectors, size)
    of_chunk = np.full(chunks.num_rows, NONE, np.int64)
    for number, group in enumerate(groups):
        for section in group:
            of_chunk[list(section.rows)] = number
    of_page = dict(_labels_of_pages(chunks, titles, of_chunk))
    page = np.array([of_page.get(name.casefold(), NONE) for name in material.names], np.int64)
    page[material.of_name] = NONE
    labels, used = _labels_of_entities(store, material, chunks, of_chunk, page, rules)
    named = [_name(groups[number]) for number in used]
    number_of = np.full(len(groups) + 1, NONE, np.int64)
    number_of[used] = np.arange(len(used))
    middles = centroids(vectors, number_of[of_chunk], len(used))
    return Outline(labels, page != NONE, middles, [name for name, _ in named], [place for _, place in named])


def _topic_size(chunks: int, rules: HierarchyRules) -> int:
    """Chunks of a topic, in steps of the square root of 2, so that one more page changes no other topic."""
    wanted = max(1.0, chunks**0.5 / rules.outline_scale)
    return max(1, int(2 ** (round(2 * log2(wanted)) / 2)))


def _sections(
    chunks: pa.Table, folder_of: Mapping[str, str], titles: Mapping[str, str], size: int
) -> Iterator[_Section]:
    columns = (chunks.column(name).to_pylist() for name in ("document", "headings", "symbol"))
    rows = zip(*columns, range(chunks.num_rows), strict=True)
    for document, own in groupby(rows, key=lambda row: row[0]):
        listed = list(own)
        title = _title(titles[document], listed[0][1], listed[0][2])
        if len(listed) <= 2 * size:
            yield _Section(title, folder_of[document], (), tuple(row[3] for row in listed))
            continue
        parts = [(heading, [row[3] for row in some]) for heading, some in groupby(listed, key=_heading)]
        for run in _runs(parts, size):
            yield _Section(title, folder_of[document], _largest(run), tuple(row for _, some in run for row in some))


def _title(title: str, headings: Sequence[str], symbol: str) -> str:
    """Of a module its dotted name, which its first chunk has as heading; else the title of the page."""
    is_module = not symbol and len(headings) == 1 and headings[0].replace(".", "/") in title
    return headings[0] if is_module else title


def _heading(row: tuple[str, Sequence[str], str, int]) -> str:
    """The heading below the title; of code the class or function."""
    _, headings, symbol, _ = row
    return symbol.partition(".")[0] or (headings[1] if len(headings) > 1 else "")


def _runs(parts: Sequence[tuple[str, list[int]]], size: int) -> list[list[tuple[str, list[int]]]]:
    """Headings that follow each other, together about `size` long; a short rest belongs to the last run."""
    runs: list[list[tuple[str, list[int]]]] = [[]]
    for part in parts:
        if sum(len(rows) for _, rows in runs[-1]) >= size:
            runs.append([])
        runs[-1].append(part)
    if len(runs) > 1 and 2 * sum(len(rows) for _, rows in runs[-1]) < size:
        rest = runs.pop()
        runs[-1] += rest
    return runs


def _largest(run: Sequence[tuple[str, list[int]]]) -> tuple[str, ...]:
    """The headings that have most to say, in the order in which they stand."""
    lengths = Counter[str]()
    for heading, rows in run:
        lengths[heading] += len(rows)
    del lengths[""]
    chosen = {heading for heading, _ in lengths.most_common(NAMED)}
    return tuple(heading for heading in lengths if heading in chosen)


def _join_sections(sections: Sequence[_Section], vectors: Vectors, size: int) -> list[list[_Section]]:
    """Parts of long pages alone; short pages of a folder joined by meaning, of a small folder with its parent's."""
    groups = [[section] for section in sections if section.headings or len(section.rows) >= size]
    folders: dict[str, list[_Section]] = defaultdict(list)
    for section in sections:
        if not section.headings and len(section.rows) < size:
            folders[section.folder].append(section)
    for folder in sorted(folders, key=lambda one: (-one.count("/"), one)):
        if folder != ROOT and 2 * sum(len(section.rows) for section in folders[folder]) < size:
            folders.setdefault(str(PurePosixPath(folder).parent), []).extend(folders.pop(folder))
    for _, own in sorted(folders.items()):
        weights = np.array([len(section.rows) for section in own])
        owner = np.full(len(vectors), NONE, np.int64)
        for number, section in enumerate(own):
            owner[list(section.rows)] = number
        labels = cut_tree(centroids(vectors, owner, len(own)), weights, size + size // 2)
        joined: dict[int, list[_Section]] = defaultdict(list)
        for label, section in zip(labels.tolist(), own, strict=True):
            joined[label].append(section)
        groups += [joined[label] for label in sorted(joined)]
    return groups


def _labels_of_pages(chunks: pa.Table, titles: Mapping[str, str], of_chunk: Labels) -> Iterator[tuple[str, int]]:
    """The names a page goes by, and the topic of most of it."""
    columns = (chunks.column(name).to_pylist() for name in ("document", "headings"))
    for document, own in groupby(zip(*columns, of_chunk.tolist(), strict=True), key=lambda row: row[0]):
        listed = list(own)
        label = Counter(row[2] for row in listed).most_common(1)[0][0]
        yield from ((name.casefold(), label) for name in (titles[document], *listed[0][1][:1]))


def _labels_of_entities(
    store: RowStore, material: Material, chunks: pa.Table, of_chunk: Labels, page: Labels, rules: HierarchyRules
) -> tuple[Labels, np.ndarray]:
    """The topic that mentions each entity most, of a page that of its chunks; and the numbers of topics in use.

    A topic that is left with fewer members than `fine_cluster_size` gives them to the others that mention them.
    """
    mentions = read_columns(store, "mentions", ["_from", "_to", "count", "retracted_at"])
    mentions = mentions.filter(pc.is_null(mentions.column("retracted_at")))
    row = place(column(mentions, "_from"), ids("doc_chunks", column(chunks, "_key")))
    entity = place(column(mentions, "_to"), ids("entities", pa.array(material.keys, pa.string())))
    known = (row >= 0) & (entity >= 0)
    count = pc.fill_null(mentions.column("count"), 1).to_numpy()[known].astype(np.float32)
    groups = int(of_chunk.max()) + 1
    votes = np.zeros((len(material), groups), np.float32)
    np.add.at(votes, (entity[known], of_chunk[row[known]]), count)
    is_page = page != NONE
    votes[is_page, page[is_page]] = np.inf  # a page is where it stands, whoever else names it
    open_topics = np.ones(groups, bool)
    while True:
        allowed = np.where(open_topics, votes, 0)
        labels = np.where(allowed.max(axis=1, initial=0) > 0, allowed.argmax(axis=1), NONE).astype(np.int64)
        sizes = np.bincount(labels[labels != NONE], minlength=groups)
        small = open_topics & (sizes < rules.fine_cluster_size)
        if not small.any() or open_topics.sum() == 1:
            break
        open_topics[np.flatnonzero(small)[np.argmin(sizes[small])]] = False
    used = np.flatnonzero(np.bincount(labels[labels != NONE], minlength=groups))
    place_of = np.full(groups + 1, NONE, np.int64)
    place_of[used] = np.arange(len(used))
    return place_of[labels], used


def _name(group: Sequence[_Section]) -> tuple[str, str]:
    """What a reader would call a topic, and where it lies: its page and headings, or its folder and largest pages."""
    if len(group) == 1:
        (section,) = group
        return (f"{section.page}: {'; '.join(section.headings)}" if section.headings else section.page), section.page
    largest = sorted(group, key=lambda section: (-len(section.rows), section.page))[:NAMED]
    titles = "; ".join(section.page for section in largest)
    folder, most = Counter(section.folder for section in group).most_common(1)[0]
    has_folder = folder != ROOT and 2 * most > len(group) and not titles.startswith(folder.replace("/", "."))
    return (f"{folder}: {titles}" if has_folder else titles), folder if has_folder else largest[0].page
