"""The published graph: memory-mapped, versioned, written beside the old one and swapped in by one pointer.

`publish.publish(store, home)` writes it, `open.open_snapshot(home)` reads it, `pointer` and
`retention` say which one serves and which stay.
"""
