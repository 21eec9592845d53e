"""What a write takes of a transaction's size: the lock of the key, the document, the index entries out and in.

The constants give what was seen on a 3.12 server: about 230 bytes for a lock, 1.8 KB for a mention, 2.6 KB for a
relation and 5.1 KB for an entity with its vector.
"""

import orjson

from tests.arango_double.documents import Collection
from tests.arango_double.indexes import Document

LOCK_BYTES = 230
ENTRY_BYTES = 110
NUMBER_BYTES = 9  # a number of a vector, in the server's binary form


def write_size(collection: Collection, old: Document | None, new: Document | None) -> int:
    """Bytes that replacing `old` by `new` adds to the transaction; None is no document."""
    entries = sum(max(1, len(index.buckets)) for index in collection.indexes.values())
    size = LOCK_BYTES + ENTRY_BYTES
    if old is not None:
        size += entries * ENTRY_BYTES
    if new is not None:
        size += entries * ENTRY_BYTES * 2 + document_size(new)
    return size


def document_size(document: Document) -> int:
    """About how long a document is in the server's binary form."""
    vectors = {name: value for name, value in document.items() if isinstance(value, list) and len(value) > 32}
    rest = {name: value for name, value in document.items() if name not in vectors} if vectors else document
    return len(orjson.dumps(rest)) + sum(len(value) * NUMBER_BYTES for value in vectors.values())
