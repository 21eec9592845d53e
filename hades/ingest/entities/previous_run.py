"""What the last run left."""

from __future__ import annotations

import shutil
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field, fields
from functools import cache
from hashlib import sha256
from pathlib import Path
from typing import Any

import numpy as np
import orjson
import pyarrow as pa
from numpy.typing import NDArray

from hades.ingest.entities.corpus import Signatures, sign_numbers
from hades.ingest.entities.find_names import KnownMentions
from hades.ingest.entities.text_readings import readers_digest
from hades.ingest.workers import read_file, replace_file, write_file
from hades.ingest.write_changes import DAMAGE, FormerRows, KeptTables, part_signatures, with_signatures
from hades.text.words import Bits, Flags, Hashes, Ints, Longs
from schemas.catalogue import collection_named

# What the last derivation found, kept in the scratch folder by stable identity: of names, documents and entities. A
# name is known by the hash of its words, a document by a hash of its key, an entity by its row among those kept.
# The files count together, with their checksums, and only for the code and the rules that made them. A folder that
# is absent, damaged or made by other code costs the time of a derivation from scratch, never a result.


OWNER = "owner"  # a column: the identity of a name that the row hangs on
_ROWS = ("entities", "mentions", "relations")
_MAKERS = (Path(__file__).parents[1] / "entities", Path(__file__).parent)


@dataclass(frozen=True)
class NameLinks:
    """Pairs of identities; `mark` tells apart links of one pair that say different things."""

    one: Hashes
    other: Hashes
    mark: Hashes

    def codes(self) -> Hashes:
        """One number for each link."""
        return sign_numbers(self.one).mix(self.other).mix(self.mark).high


@dataclass(frozen=True)
class FormerArrays:
    """Names in order of identity, links between names, and what documents mean by names; -1 is no entity."""

    name: Hashes
    name_high: Hashes  # of all that the name follows from
    name_low: Hashes
    name_entity: Longs  # what it means where the document does not tell
    name_sense: Hashes
    link_one: Hashes
    link_other: Hashes
    link_mark: Hashes
    always: Hashes  # names that are looked at every time
    pair_document: Hashes  # where a document means something else by a name
    pair_name: Hashes
    pair_entity: Longs
    stated_document: Hashes  # what documents state
    stated_name: Hashes
    stated_entity: Longs
    stated_meant: Longs  # what the name alone means
    stated_title: Flags
    sought: Hashes  # these and the following: `KnownMentions`
    how: Bits
    text: Hashes
    count: Ints
    mention: Hashes
    mention_first: Ints
    mention_size: Bits

    def mentions(self) -> KnownMentions:
        """The mentions of each text."""
        return KnownMentions(
            self.sought, self.how, self.text, self.count, self.mention, self.mention_first, self.mention_size
        )

    def signatures(self) -> Signatures:
        """The signature of each name."""
        return Signatures(self.name_high, self.name_low)

    def links(self) -> NameLinks:
        """The links between names."""
        return NameLinks(self.link_one, self.link_other, self.link_mark)


@dataclass(frozen=True)
class FormerDerivation:
    """The arrays and the tables of the last derivation; entities with OWNER, stem, qualifier and signatures of ids."""

    arrays: FormerArrays
    entities: FormerRows
    mentions: FormerRows
    relations: FormerRows
    merge_log: pa.Table
    statements: FormerRows  # of documents, by the signatures of these


class KeptDerivation:
    """One derivation below one folder."""

    def __init__(self, scratch: Path, rules: object) -> None:
        version = sha256(f"{makers_digest()}{sorted(vars(rules).items())!r}".encode()).hexdigest()
        self._scratch, self._kept = scratch, KeptTables(scratch / "derivation", version)
        self.name = ""  # of the derivation that was loaded or kept last: a digest of its files

    def load(self) -> FormerDerivation | None:
        """The last derivation, mapped into memory; None when it cannot be trusted."""
        tables = self._kept.load()
        try:
            if tables is None:
                return None
            entities, mentions, relations = (part_signatures(_widen(name, tables[name])) for name in _ROWS)
            former = FormerDerivation(
                _unpack(tables["arrays"]),
                entities,
                mentions,
                relations,
                tables["merge_log"],
                part_signatures(tables["statements"]),
            )
            self.name = self._kept.name
            return former
        except DAMAGE:
            return None

    def keep(self, made: FormerDerivation) -> None:
        """Keep this derivation and no other; where it cannot be written, keep none."""
        stated = made.statements
        tables = {"arrays": _pack(made.arrays), "merge_log": made.merge_log}
        tables["statements"] = with_signatures(stated.table, stated.signatures)
        for name, one in zip(_ROWS, (made.entities, made.mentions, made.relations), strict=True):
            tables[name] = with_signatures(_narrow(one.table), one.signatures)
        self._kept.keep(tables)
        self.name = self._kept.name
        shutil.rmtree(self._scratch / "answers", ignore_errors=True)  # of older versions; it quotes documents


@cache
def makers_digest() -> str:
    """A digest of the code that derives names and of the code that reads texts."""
    files = sorted(file for folder in _MAKERS for file in folder.glob("*.py"))
    return sha256(readers_digest().encode() + b"\x00".join(file.read_bytes() for file in files)).hexdigest()


def _narrow(table: pa.Table) -> pa.Table:
    """The table without columns that hold nothing, which later stages fill: a fifth of its size."""
    if not table.num_rows:
        return table
    return table.select([name for name in table.column_names if table.column(name).null_count < table.num_rows])


def _widen(collection: str, table: pa.Table) -> pa.Table:
    """The table with all columns of its collection, in their order, and then those that only this folder has."""
    declared = collection_named(collection)
    assert declared is not None
    held = set(table.column_names)
    columns = {
        field.name: table.column(field.name) if field.name in held else pa.nulls(table.num_rows, field.type)
        for field in declared.schema
    }
    others = [name for name in table.column_names if name not in columns]
    fields = [*declared.schema, *(table.schema.field(name) for name in others)]
    return pa.Table.from_arrays([*columns.values(), *map(table.column, others)], schema=pa.schema(fields))


def _pack(arrays: FormerArrays) -> pa.Table:
    """The arrays as one row of lists, since they differ in length."""
    columns = {one.name: pa.array(getattr(arrays, one.name)) for one in fields(arrays)}
    lists = [pa.LargeListArray.from_arrays(pa.array([0, len(one)], pa.int64()), one) for one in columns.values()]
    return pa.Table.from_arrays(lists, names=list(columns))


def _unpack(table: pa.Table) -> FormerArrays:
    def read(name: str) -> NDArray[np.generic]:
        values: NDArray[np.generic] = table.column(name).chunk(0).values.to_numpy(zero_copy_only=False)
        return values

    return FormerArrays(*(read(one.name) for one in fields(FormerArrays)))  # type: ignore[arg-type]


# The rows of the last derivation, kept in the scratch folder: the next one compares with them instead of the store.
# Of mentions and relations only the rows that do not follow from names are kept here; the others are those of the
# kept derivation (`hades/ingest/increment`) whose name stands beside them. All count only while the store says that
# its derived rows come from the same documents, edits and rules (one digest), and while every file has the checksum
# it was written with. A folder that is absent, damaged or of another state costs a comparison with the whole store,
# never a result.


FORMAT = 3  # raise it with any change of what is kept
_STATE = "state.json"


@dataclass(frozen=True)
class LastRows:
    """Tables by collection, how many rows each collection had in all, and the derivation that gave the others."""

    tables: Mapping[str, pa.Table] = field(default_factory=dict)
    counts: Mapping[str, int] = field(default_factory=dict)
    derivation: str = ""


class LastDerivation:
    """Tables by collection below one folder, one file each, and the digest of what they were derived from."""

    def __init__(self, scratch: Path) -> None:
        self._folder = scratch / "last-derivation"
        self._staged: tuple[str, dict[str, Any]] = "", {}

    def load(self, digest: str | None) -> LastRows:
        """The rows of the derivation with this digest, mapped into memory; none when they cannot be trusted."""
        try:
            state = orjson.loads((self._folder / _STATE).read_bytes())
            if not digest or state["format"] != FORMAT or state["digest"] != digest:
                return LastRows()
            files = state["files"].items()
            tables = {name: read_file(self._folder / file, checksum) for name, (file, checksum) in files}
            return LastRows(tables, dict(state["counts"]), str(state["derivation"]))
        except DAMAGE:
            return LastRows()

    def stage(self, digest: str, rows: LastRows) -> None:
        """Write rows beside those that are kept; they count from `commit` on. What cannot be written is not kept."""
        names = {name: f"{name}-{digest[:16]}.arrow" for name in rows.tables}
        try:
            self._folder.mkdir(parents=True, exist_ok=True)
            files = {name: (file, write_file(self._folder / file, rows.tables[name])) for name, file in names.items()}
        except OSError:  # a second derivation of the same home removes files that it does not know
            return
        self._staged = digest, {"files": files, "counts": dict(rows.counts), "derivation": rows.derivation}

    def commit(self, digest: str) -> None:
        """Replace what is kept by what was staged, once the store holds the same rows and names this digest."""
        staged, state = self._staged
        if staged != digest:
            self.clear()
            return
        with suppress(OSError):
            replace_file(self._folder / _STATE, orjson.dumps({"format": FORMAT, "digest": digest, **state}))
        self._remove_others({_STATE, *(file for file, _ in state["files"].values())})

    def clear(self) -> None:
        """Remove everything: the rows quote the documents they were derived from."""
        self._remove_others(set())

    def _remove_others(self, names: set[str]) -> None:
        for file in list(self._folder.glob("*")):
            if file.name not in names:
                with suppress(OSError):  # another process may hold or have removed it
                    file.unlink()
