"""What the derived rows follow from, as one digest: a night without a change compares it and loads no derivation."""

from __future__ import annotations

from hades.build_state.entity_edits import Edits, fingerprint, standing_edits
from hades.ingest import manifest
from hades.ingest.entities.rules import EntityRules
from hades.ports.store import RowStore, Term
from hades.ports.text import Embedder

DERIVE_VERSION = 12  # raise it with any change of what is derived: the next run derives all edges again


def is_derived(store: RowStore, digest: str) -> bool:
    """Whether the derived rows are what curators say now and documents of this digest."""
    return manifest.derive_digest(store) == add_edits(digest, standing_edits(store))


def digest_documents(store: RowStore, embedder: Embedder, rules: EntityRules) -> str:
    """A digest of what documents, models and rules say."""
    documents = manifest.phases_digest(store)
    settings = sorted((name, repr(value)) for name, value in vars(rules).items())
    extractions = [
        key for batch in store.scan("extractions", columns=["_key"]) for key in batch.column("_key").to_pylist()
    ]
    tag = embedder.model.tag
    embedded = store.count("doc_chunks", where=[Term("embedding_model", "==", tag)])
    return manifest.digest_of(documents, settings, tag, embedded, extractions, DERIVE_VERSION)


def add_edits(digest: str, edits: Edits) -> str:
    """The digest with what curators say."""
    return manifest.digest_of(digest, fingerprint(edits)) if edits else digest
