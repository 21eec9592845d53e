"""Tables as bytes, in Arrow's own format: without what a slice leaves out, which a pickle would carry."""

from __future__ import annotations

import os
import zlib
from pathlib import Path

import pyarrow as pa


def to_bytes(table: pa.Table) -> bytes:
    """The rows and the schema of a table."""
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table)
    return bytes(sink.getvalue())


def from_bytes(data: bytes) -> pa.Table:
    """The table that `to_bytes` wrote."""
    return pa.ipc.open_stream(data).read_all()


def write_file(path: Path, table: pa.Table) -> int:
    """Write a table to a file in one step; returns the checksum of the file."""
    partial = path.with_name(f"{path.name}.{os.getpid()}.partial")
    with pa.OSFile(str(partial), "wb") as sink, pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table)
    with pa.memory_map(str(partial)) as written:
        checksum = zlib.crc32(written.read_buffer())
    partial.replace(path)
    return checksum


def replace_file(path: Path, data: bytes) -> None:
    """Write a file in one step: whoever reads it sees all of the old bytes or all of the new ones."""
    partial = path.with_name(f"{path.name}.{os.getpid()}.partial")
    partial.write_bytes(data)
    partial.replace(path)


def read_file(path: Path, checksum: int) -> pa.Table:
    """The table of a file, mapped into memory; ValueError where the file has another checksum."""
    data = pa.memory_map(str(path)).read_buffer()
    if zlib.crc32(data) != checksum:
        raise ValueError(f"{path} is damaged; it is derived again")
    return pa.ipc.open_stream(pa.BufferReader(data)).read_all()
