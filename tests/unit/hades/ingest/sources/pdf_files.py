"""Tiny PDF files written by hand, whole and harmful."""

from __future__ import annotations

import zlib


def pdf_with(*pages: str, title: str = "") -> bytes:
    """A PDF with one line of text a page."""
    streams = [b"BT /F1 12 Tf 20 100 Td (" + page.encode("latin-1") + b") Tj ET" for page in pages]
    return pdf_of_streams(
        [(zlib.compress(stream), "/Filter /FlateDecode") for stream in streams], title
    )


def pdf_bomb(size: int, layers: int = 1) -> bytes:
    """A small PDF whose only page inflates to `size` bytes, through one or more layers of
    compression.
    """
    data = b"BT (x) Tj ET " * (size // 13)
    for _ in range(layers):
        data = zlib.compress(data, 1)
    filters = "/Filter [" + "/FlateDecode " * layers + "]"
    return pdf_of_streams([(data, filters)])


def pdf_of_streams(streams: list[tuple[bytes, str]], title: str = "") -> bytes:
    """A PDF whose pages have these content streams, with its table of offsets."""
    count = len(streams)
    kids = " ".join(f"{4 + 2 * index} 0 R" for index in range(count))
    objects = [
        b"<< /Type /Catalog /Pages 2 0 R >>",
        f"<< /Type /Pages /Kids [{kids}] /Count {count} >>".encode(),
        b"<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica >>",
    ]
    for index, (data, filters) in enumerate(streams):
        content = 5 + 2 * index
        objects.append(
            f"<< /Type /Page /Parent 2 0 R /MediaBox [0 0 200 200] /Contents {content} 0 R "
            "/Resources << /Font << /F1 3 0 R >> >> >>".encode()
        )
        objects.append(
            f"<< /Length {len(data)} {filters} >>\nstream\n".encode() + data + b"\nendstream"
        )
    objects.append(f"<< /Title ({title}) >>".encode())
    body = b"%PDF-1.4\n"
    offsets = []
    for number, content_bytes in enumerate(objects, start=1):
        offsets.append(len(body))
        body += f"{number} 0 obj\n".encode() + content_bytes + b"\nendobj\n"
    table = "".join(f"{offset:010d} 00000 n \n" for offset in offsets)
    size = len(objects) + 1
    trailer = (
        f"trailer\n<< /Size {size} /Root 1 0 R /Info {len(objects)} 0 R "
        f">>\nstartxref\n{len(body)}\n%%EOF\n"
    )
    return body + f"xref\n0 {size}\n0000000000 65535 f \n{table}{trailer}".encode()
