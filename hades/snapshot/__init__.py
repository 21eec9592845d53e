"""The published graph: memory-mapped, versioned, written beside the old one and swapped in by one
pointer.

`publish.publish(store, home)` writes it, `open.open_snapshot(home)` reads it, `manifest`
says which one serves and which stay.
"""
