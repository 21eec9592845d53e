"""What topics are made of and by: rules, report, entities and relations; the outline of a
folder.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from hashlib import blake2b
from itertools import chain, groupby
from math import log2
from os.path import commonpath
from pathlib import PurePosixPath
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from hades.night.columns import column, flags, ids, place_ends
from hades.night.context import read_columns, vectors_of
from hades.ports.store import RowStore, Term
from hades.snapshot.files import places_of
from models.arrays import Flags
from models.topics import NONE, Graph, Labels, Vectors, centroids, cut_tree, symmetric_graph
from schemas.nodes import EntityType
from schemas.sources import SourceKind

VERSION = 8  # raise it with any change of what is computed: the next build is not skipped
NAME = "name"  # `vector_of` of an entity that is placed by its name
_ENTITY = ["_key", "name", "type", "vector_of", "embedding_model", "embedding", "cluster_id"]
_RELATION = ["_from", "_to", "strength", "retracted_at"]


@dataclass(frozen=True)
class HierarchyRules:
    """Every number the hierarchy depends on, with the value measured to serve
    (`benchmarks/bench_hierarchy.py`).
    """

    min_cluster_size: int = 5
    min_samples: int = 3
    seed: int = 42
    core_limit: int = 20_000  # entities that are clustered; their neighbours place the others
    neighbours: int = 15  # nearest in meaning that each core entity is joined to
    hub_degree: int = 30  # who joins more core entities than this says nothing of any of them
    reduced_dimension: int = 16
    diffusion_steps: int = 8
    structure_runs: int = 3  # Leiden partitions that vote, together as much as the density
    outline_scale: float = 0.7  # topics of a folder: this times the square root of its chunks
    fine_cluster_size: int = 3  # the smallest topic of a folder
    topic_scale: float = 10.0  # resolution is sqrt(core) / this, at least 1
    consensus_share: float = 0.5
    text_trust: float = 2.0  # how much the vector of a text counts beside the votes of neighbours
    nearness_votes: float = 3.0  # what the nearest texts of a text say, in votes of a relation each
    name_trust: float = 0.3  # that of a name
    person_trust: float = 0.05  # that of a person's name, which says nothing of a topic
    max_fanout: int = 16  # topics below one super-topic
    match_share: float = 0.25  # of their union that two builds of the same topic share
    summary_sentences: int = 3
    summary_members: int = 6  # the members nearest to the centroid whose texts are read
    summary_tokens: int = 120  # what a language model may write about one topic


@dataclass(frozen=True)
class Material:
    """Entities in key order. Arrays have one row each; `vectors` is zero where there is no vector
    of the model.

    `topic` is where each entity was before this build, None where it had no place.
    """

    keys: list[str]
    names: list[str]
    vectors: Vectors
    has_vector: Flags
    of_name: Flags
    is_person: Flags
    is_symbol: Flags
    edges: Graph
    topic: list[str | None]

    def __len__(self) -> int:
        return len(self.keys)

    @property
    def of_document(self) -> Flags:
        """Whose vector is that of a whole text."""
        return self.has_vector & ~self.of_name


def read_material(store: RowStore, model: str) -> Material:
    """All entities and relations that stand; vectors of other models are not compared and count as
    absent.
    """
    entities = read_columns(store, "entities", _ENTITY)
    keys = column(entities, "_key")
    vectors = vectors_of(entities, model)
    return Material(
        keys=keys.to_pylist(),
        names=entities.column("name").to_pylist(),
        vectors=vectors,
        has_vector=np.any(vectors != 0, axis=1),
        of_name=_is(entities, "vector_of", NAME),
        is_person=_is(entities, "type", str(EntityType.PERSON)),
        is_symbol=_is(entities, "type", str(EntityType.CODE_SYMBOL)),
        edges=_relations(store, keys),
        topic=entities.column("cluster_id").to_pylist(),
    )


def core_rows(
    material: Material,
    waiting: Flags,
    rules: HierarchyRules,
) -> np.ndarray:
    """Whom to cluster, of those that are `waiting` for a topic: who stands for a text, or has none
    within two hops.

    The others, mostly names, say less by their vector than by the texts they stand in. Where
    nothing stands for a text everyone with a vector is clustered. Beyond `core_limit` a sample
    fixed by the keys' hashes is.
    """
    texts = material.of_document
    if texts.any() or not waiting.all():
        reached = texts | ~waiting
        for _ in range(2):
            reached = reached | (material.edges @ reached.astype(np.float32) > 0)

        joined = np.diff(material.edges.indptr) > 0
        is_apart = material.has_vector & ~reached & joined
        chosen = np.flatnonzero(waiting & (texts | is_apart))
    else:
        chosen = np.flatnonzero(material.has_vector)

    if len(chosen) > rules.core_limit:
        digests: dict[int, bytes] = {}
        for row in chosen.tolist():
            digests[row] = blake2b(material.keys[row].encode(), digest_size=8).digest()

        drawn = sorted(digests, key=digests.__getitem__)[: rules.core_limit]
        chosen = np.sort(np.array(drawn, np.int64))

    return chosen


def _relations(store: RowStore, keys: pa.Array) -> Graph:
    """The relations that stand between entities, by row; strength 1 where nobody stated one."""
    table = read_columns(store, "relations", _RELATION)
    table = table.filter(pc.is_null(table.column("retracted_at")))
    tails, heads = place_ends(table, ids("entities", keys))
    strength = pc.fill_null(table.column("strength"), 1.0).to_numpy()
    has_ends = (tails >= 0) & (heads >= 0)
    return symmetric_graph(
        tails[has_ends],
        heads[has_ends],
        strength[has_ends],
        len(keys),
    )


def _is(entities: pa.Table, name: str, value: str) -> Flags:
    return flags(pc.equal(column(entities, name), value))


# Topics of a folder follow its own structure: folders, pages or modules, and the headings of long
# ones.
NAMED = 2  # headings or titles in the name of a topic
_OPENING_CHUNKS = 3  # of a page, among which its first clear sentence is looked for
_VOTE_OF_CHANGE_LOG = 1e-3  # of a mention: any mention by another page outweighs it
ROOT = "."
_CHUNK = ["_key", "document", "chunk_index", "headings", "symbol", "embedding", "embedding_model"]
_FOLDERS = (str(SourceKind.DOCUMENTS), str(SourceKind.WORKSPACE))


@dataclass(frozen=True)
class OutlineTopic:
    """A topic of pages: its name, the folder of most of them (empty where most pages lie there),
    its largest page, and the keys of the chunks that open its pages, largest first.
    """

    name: str
    folder: str
    page: str
    openings: tuple[str, ...]
    is_change_log: bool


@dataclass(frozen=True)
class Outline:
    """Topics of pages, their centroids, and each entity's topic (-1: no page speaks of it).

    `is_page` marks the entities that stand for a page.
    """

    labels: Labels
    is_page: Flags
    centroids: Vectors
    topics: list[OutlineTopic]


@dataclass(frozen=True)
class _Section:
    """Chunks (rows) of one page that stay together: a whole page, or some headings of a long
    one.
    """

    page: str
    folder: str
    headings: tuple[str, ...]
    rows: tuple[int, ...]
    opening: int  # the row that opens the page
    is_change_log: bool = False


def read_outline(
    store: RowStore,
    material: Material,
    model: str,
    rules: HierarchyRules,
) -> Outline | None:
    """The topics of the pages and modules of folders; None where no folder was ingested.

    A topic is about as long as the others: as many chunks as make `outline_scale` times the square
    root of their number topics. A page of more than twice that is divided at its headings, shorter
    ones of one folder are joined by meaning. Change logs are one topic, which has only what no
    other page mentions.
    """
    pages = read_columns(
        store,
        "documents",
        ["_key", "origin", "title"],
        [Term("source", "in", _FOLDERS)],
    )
    documents = ids("documents", column(pages, "_key"))
    chunks = read_columns(store, "doc_chunks", _CHUNK)
    chunks = chunks.filter(pc.is_in(chunks.column("document"), value_set=documents))
    chunks = chunks.sort_by([("document", "ascending"), ("chunk_index", "ascending")])

    if not chunks.num_rows:
        return None

    folders = []
    for origin in pages.column("origin").to_pylist():
        folders.append(PurePosixPath(origin).parent)

    is_absolute = {folder.is_absolute() for folder in folders}
    root = commonpath(folders) if len(is_absolute) == 1 else ""
    relative = [str(folder.relative_to(root)) for folder in folders]
    folder_of = dict(zip(documents.to_pylist(), relative, strict=True))
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
    page = np.array(
        [of_page.get(name.casefold(), NONE) for name in material.names],
        np.int64,
    )
    page[material.of_name] = NONE
    is_log = np.array([group[0].is_change_log for group in groups], bool)
    labels, number_of = _labels_of_entities(
        store,
        material,
        chunks,
        of_chunk,
        page,
        is_log,
        rules,
    )
    common = _common_folder(sections)
    used = [group for number, group in enumerate(groups) if number_of[number] != NONE]
    described = [_describe(group, chunks, common) for group in used]
    middles = centroids(
        vectors,
        number_of[of_chunk],
        len(described),
    )
    return Outline(labels, page != NONE, middles, described)


def _topic_size(chunks: int, rules: HierarchyRules) -> int:
    """Chunks of a topic, in steps of the square root of 2, so that one more page changes no other
    topic.
    """
    target = max(1.0, chunks**0.5 / rules.outline_scale)
    return max(1, int(2 ** (round(2 * log2(target)) / 2)))


class _PageChunk(NamedTuple):
    """A chunk of a page: below which headings or of which symbol it is, and its row."""

    document: str
    headings: list[str]
    symbol: str
    row: int


def _sections(
    chunks: pa.Table,
    folder_of: Mapping[str, str],
    titles: Mapping[str, str],
    size: int,
) -> Iterator[_Section]:
    columns = (chunks.column(name).to_pylist() for name in ("document", "headings", "symbol"))
    pages = map(_PageChunk, *columns, range(chunks.num_rows))
    for document, page in groupby(pages, key=lambda chunk: chunk.document):
        page_chunks = list(page)
        opening = page_chunks[0].row
        title = _title(titles[document], page_chunks[0])
        folder = folder_of[document]
        is_change_log = _is_change_log([chunk.headings for chunk in page_chunks])

        if is_change_log or len(page_chunks) <= 2 * size:
            page_rows = tuple(chunk.row for chunk in page_chunks)
            yield _Section(
                title,
                folder,
                (),
                page_rows,
                opening,
                is_change_log,
            )
            continue

        parts = []
        for heading, part_chunks in groupby(page_chunks, key=_heading):
            parts.append((heading, [chunk.row for chunk in part_chunks]))

        for run in _runs(parts, size):
            run_rows = tuple(chain.from_iterable(part_rows for _, part_rows in run))
            yield _Section(
                title,
                folder,
                _largest(run),
                run_rows,
                opening,
            )


# A heading that is a version or a day and nothing else: "Version 3.1.0", "[1.2.0] - 2023-01-01".
# "2.1 Results" is a numbered section.
_DAY = r"(?:\d{4}-\d\d-\d\d|\w{3,9}\.? \d{1,2},? \d{4}|\d{1,2} \w{3,9} \d{4}|unreleased)"
_VERSION = r"(?:[A-Za-z][\w-]* )?v?\[?\d+(?:\.\d+)+[-.+]?(?:[a-z]+\.?\d*)?\]?"
_LOGGED = re.compile(
    rf"(?:{_VERSION}|\[?{_DAY}\]?)(?:[\s,:(\u2013\u2014-]+{_DAY}\)?)?",
    re.IGNORECASE,
)
_FEWEST_VERSIONS = 4  # headings of a change log


def _is_change_log(headings: Sequence[Sequence[str]]) -> bool:
    """Whether most chunks of a page stand below headings that name versions or days, several of
    them.
    """
    logged = []
    for path in headings:
        logged.append(next(filter(_LOGGED.fullmatch, reversed(path)), ""))

    versions = set(filter(None, logged))
    return len(versions) >= _FEWEST_VERSIONS and 2 * sum(map(bool, logged)) > len(logged)


def _title(title: str, opening: _PageChunk) -> str:
    """Of a module its dotted name, which its first chunk has as heading; else the title of the
    page.
    """
    headings = opening.headings
    is_alone = not opening.symbol and len(headings) == 1

    if is_alone and headings[0].replace(".", "/") in title:
        return headings[0]

    return title


def _heading(chunk: _PageChunk) -> str:
    """The heading below the title; of code the class or function."""
    return chunk.symbol.partition(".")[0] or "".join(chunk.headings[1:2])


_Part = tuple[str, list[int]]  # a heading and the rows below it


def _runs(parts: Sequence[_Part], size: int) -> list[list[_Part]]:
    """Headings that follow each other, together about `size` long; a short rest belongs to the last
    run.
    """
    runs: list[list[_Part]] = [[]]
    for part in parts:
        if sum(len(rows) for _, rows in runs[-1]) >= size:
            runs.append([])
        runs[-1].append(part)

    if len(runs) > 1 and 2 * sum(len(rows) for _, rows in runs[-1]) < size:
        last_run = runs.pop()
        runs[-1] += last_run

    return runs


def _largest(run: Sequence[_Part]) -> tuple[str, ...]:
    """The headings that have most to say, in the order in which they stand."""
    lengths = Counter[str]()
    for heading, rows in run:
        lengths[heading] += len(rows)

    del lengths[""]
    chosen = {heading for heading, _ in lengths.most_common(NAMED)}
    return tuple(heading for heading in lengths if heading in chosen)


def _join_sections(
    sections: Sequence[_Section],
    vectors: Vectors,
    size: int,
) -> list[list[_Section]]:
    """Parts of long pages alone; short pages of a folder joined by meaning, of a small folder with
    its parent's; change logs together.
    """
    logs = [section for section in sections if section.is_change_log]
    sections = [section for section in sections if not section.is_change_log]
    groups = [[section] for section in sections if section.headings or len(section.rows) >= size]

    if logs:
        groups.append(logs)

    folders: dict[str, list[_Section]] = defaultdict(list)
    for section in sections:
        if not section.headings and len(section.rows) < size:
            folders[section.folder].append(section)

    for folder in sorted(folders, key=lambda folder: (-folder.count("/"), folder)):
        if folder != ROOT and 2 * sum(len(section.rows) for section in folders[folder]) < size:
            folders.setdefault(str(PurePosixPath(folder).parent), []).extend(folders.pop(folder))

    for _, folder_sections in sorted(folders.items()):
        weights = np.array([len(section.rows) for section in folder_sections])
        owner = np.full(len(vectors), NONE, np.int64)
        for number, section in enumerate(folder_sections):
            owner[list(section.rows)] = number

        middles = centroids(vectors, owner, len(folder_sections))
        labels = cut_tree(middles, weights, size + size // 2)

        joined: dict[int, list[_Section]] = defaultdict(list)
        for label, section in zip(labels.tolist(), folder_sections, strict=True):
            joined[label].append(section)

        groups += [joined[label] for label in sorted(joined)]

    return groups


def _labels_of_pages(
    chunks: pa.Table,
    titles: Mapping[str, str],
    of_chunk: Labels,
) -> Iterator[tuple[str, int]]:
    """The names a page goes by, and the topic of most of it."""
    documents, headings = (chunks.column(name).to_pylist() for name in ("document", "headings"))
    for document, page in groupby(range(chunks.num_rows), key=documents.__getitem__):
        rows = list(page)
        label = Counter(of_chunk[rows].tolist()).most_common(1)[0][0]
        for name in (titles[document], *headings[rows[0]][:1]):
            yield name.casefold(), label


def _labels_of_entities(
    store: RowStore,
    material: Material,
    chunks: pa.Table,
    of_chunk: Labels,
    page: Labels,
    is_log: Flags,
    rules: HierarchyRules,
) -> tuple[Labels, np.ndarray]:
    """The topic that mentions each entity most, of a page that of its chunks; and the number of
    each group, -1: none.

    A topic that is left with fewer members than `fine_cluster_size` gives them to the others that
    mention them.
    """
    mentions = read_columns(
        store,
        "mentions",
        ["_from", "_to", "count", "retracted_at"],
    )
    mentions = mentions.filter(pc.is_null(mentions.column("retracted_at")))
    row = places_of(
        column(mentions, "_from"),
        ids("doc_chunks", column(chunks, "_key")),
    )
    entity = places_of(
        column(mentions, "_to"),
        ids("entities", pa.array(material.keys, pa.string())),
    )
    has_ends = (row >= 0) & (entity >= 0)
    count = pc.fill_null(mentions.column("count"), 1).to_numpy()[has_ends].astype(np.float32)
    groups = int(of_chunk.max()) + 1
    votes = np.zeros((len(material), groups), np.float32)
    np.add.at(
        votes,
        (entity[has_ends], of_chunk[row[has_ends]]),
        count,
    )
    votes[:, is_log] *= _VOTE_OF_CHANGE_LOG
    is_page = page != NONE
    votes[is_page, page[is_page]] = np.inf  # a page is where it stands, whoever else names it
    open_topics = np.ones(groups, bool)

    while True:
        allowed = np.where(open_topics, votes, 0)
        is_named = allowed.max(axis=1, initial=0) > 0
        labels = np.where(is_named, allowed.argmax(axis=1), NONE).astype(np.int64)
        sizes = np.bincount(labels[labels != NONE], minlength=groups)
        small = open_topics & (sizes < rules.fine_cluster_size)

        if not small.any() or open_topics.sum() == 1:
            break

        open_topics[np.flatnonzero(small)[np.argmin(sizes[small])]] = False

    used = np.flatnonzero(np.bincount(labels[labels != NONE], minlength=groups))
    number_of = np.full(groups + 1, NONE, np.int64)
    number_of[used] = np.arange(len(used))
    return number_of[labels], number_of


def _common_folder(sections: Sequence[_Section]) -> str:
    """The deepest folder that more than half of the pages lie in or below, whose name tells no
    topic from another; empty where there is none.
    """
    counts = Counter[str]()
    for section in sections:
        place = PurePosixPath(section.folder)
        counts.update(map(str, (place, *place.parents)))

    holding = []
    for folder, count in counts.items():
        if 2 * count > len(sections):
            holding.append(folder)

    deepest = max(holding, key=lambda folder: (folder != ROOT, folder.count("/")))
    return "" if deepest == ROOT else deepest


def _describe(
    group: Sequence[_Section],
    chunks: pa.Table,
    common: str,
) -> OutlineTopic:
    """What a reader would call a topic, and what tells of it: its page and headings, or its folder
    and largest pages.
    """
    largest = sorted(
        group,
        key=lambda section: (-len(section.rows), section.page),
    )
    folder, most = Counter(section.folder for section in group).most_common(1)[0]

    if 2 * most <= len(group) or folder in (ROOT, common):
        folder = ""

    folder = folder.removeprefix(f"{common}/")
    titles = "; ".join(dict.fromkeys(section.page for section in largest[:NAMED]))
    name = titles

    if group[0].is_change_log:
        if len(group) > 1 or _LOGGED.fullmatch(titles):
            name = "Release notes"
        else:
            name = titles
    elif len(group) == 1:
        name = ": ".join(filter(None, [titles, "; ".join(group[0].headings)]))
    elif folder and not titles.startswith(folder.replace("/", ".")):
        name = f"{folder}: {titles}"

    keys = column(chunks, "_key")
    rows = list(chain.from_iterable(section.rows[:_OPENING_CHUNKS] for section in largest))
    rows += [section.opening for section in largest]
    openings = tuple(keys[row].as_py() for row in dict.fromkeys(rows))
    return OutlineTopic(
        name,
        folder,
        largest[0].page,
        openings,
        group[0].is_change_log,
    )
