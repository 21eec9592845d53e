"""Mail: a message (.eml) or a mailbox (.mbox) as one document a message, with sender, date and
thread.
"""

from __future__ import annotations

import re
from email import policy
from email.errors import MessageError
from email.message import EmailMessage
from email.parser import BytesParser
from email.utils import getaddresses

from hades.ingest.formats.html import html_to_text
from hades.ingest.formats.registry import (
    ExtractedDocument,
    FormatProblem,
    PartList,
    as_utc,
    clean,
    decode_as,
    one_line,
)

MAX_MESSAGES = 50_000
_START = re.compile(rb"^From .*\n", re.MULTILINE)
_ESCAPED = re.compile(rb"^>(>*From )", re.MULTILINE)
_HEADER = re.compile(rb"^[!-9;-~]{1,80}:", re.MULTILINE)
_QUOTE = re.compile(
    r"(?:^[^\n]{1,200}(?:wrote|schrieb|écrit|escribió):\s*\n)?(?:^>[^\n]*(?:\n|$))+",
    re.MULTILINE,
)


def read_message(content: bytes) -> list[ExtractedDocument]:
    """One message."""
    if not _HEADER.search(content[:4096]):
        raise FormatProblem(
            "malformed",
            "no header line such as `Subject: ...`; expected a message as it was sent",
        )

    return [_message(content, frozenset(), "")]


def read_mailbox(content: bytes) -> list[ExtractedDocument]:
    """Every message of a mailbox; quotations of messages that are in the same mailbox are left
    out.
    """
    starts = list(_START.finditer(content))
    if not starts or content[: starts[0].start()].strip():
        raise FormatProblem(
            "malformed",
            "a mailbox begins with a line `From sender date`; this file does not",
        )

    if len(starts) > MAX_MESSAGES:
        raise FormatProblem(
            "oversized",
            f"{len(starts)} messages, the limit is {MAX_MESSAGES}; divide the mailbox",
        )

    ends = [*(start.start() for start in starts[1:]), len(content)]
    raw = [
        _ESCAPED.sub(rb"\1", content[start.end() : end])
        for start, end in zip(starts, ends, strict=True)
    ]
    known = frozenset(_id_of(raw_message) for raw_message in raw) - {""}
    used_ids = {""}  # a message without an id is counted

    messages = []
    for number, raw_message in enumerate(raw, start=1):
        identity = _id_of(raw_message)
        if identity in used_ids:
            fragment = f"message-{number}"
        else:
            fragment = identity

        used_ids.add(identity)
        messages.append(_message(raw_message, known, fragment))

    return messages


def _message(
    content: bytes,
    known: frozenset[str],
    fragment: str,
) -> ExtractedDocument:
    message = BytesParser(EmailMessage, policy=policy.default).parsebytes(content)
    subject = one_line(_header(message, "subject")) or "(no subject)"
    sender = _people(message, "from")
    receivers = _people(message, "to") + _people(message, "cc")
    replies_to = _header(message, "in-reply-to").strip().strip("<>").strip()[:200]

    if _header(message, "date"):
        date = getattr(message["date"], "datetime", None)
    else:
        date = None

    body, attachments = _body(message)
    if replies_to in known:
        body = _QUOTE.sub("", body)

    head = {
        "From": ", ".join(sender),
        "To": ", ".join(receivers[:20]),
        "Date": f"{date:%Y-%m-%d %H:%M}" if date else "",
        "Attachments": ", ".join(attachments),
    }
    lines = "\n".join(f"- {name}: {value}" for name, value in head.items() if value)
    parts = PartList()
    parts.add(
        (subject,),
        "\n\n".join(filter(None, (f"# {subject}", lines, clean(body)))),
    )
    people = tuple(dict.fromkeys(name for name in (*sender, *receivers[:20]) if "@" not in name))
    fields = {
        "fragment": fragment,
        "people": people,
        "replies_to": replies_to,
        "message_id": _id_of(content),
    }
    return parts.document(subject, as_utc(date), **fields)


def _header(message: EmailMessage, name: str) -> str:
    try:
        return str(message.get(name) or "")
    except (MessageError, ValueError, IndexError, AttributeError, TypeError):
        return ""  # the standard library raises these on headers that no standard allows


def _people(message: EmailMessage, name: str) -> tuple[str, ...]:
    pairs = getaddresses([_header(message, name)])
    return tuple(
        dict.fromkeys(
            one_line(shown or address, 80) for shown, address in pairs if shown or address
        )
    )


def _body(message: EmailMessage) -> tuple[str, list[str]]:
    """The text to read, plain where there is one, and the names of what is attached."""
    plain = []
    pages = []

    attachments = []
    for part in message.walk():
        if part.is_multipart():
            continue

        if name := part.get_filename():
            attachments.append(one_line(name, 100))
        elif part.get_content_type() == "text/plain":
            plain.append(_content(part))
        elif part.get_content_type() == "text/html":
            pages.append(html_to_text(_content(part))[0])

    return "\n\n".join(plain if any(map(str.strip, plain)) else pages), attachments


def _content(part: EmailMessage) -> str:
    payload = part.get_payload(decode=True)
    if isinstance(payload, bytes):
        return decode_as(payload, part.get_content_charset())
    return ""


def _id_of(content: bytes) -> str:
    match = re.search(
        rb"^message-id:\s*<([^>\n]{1,200})>",
        content[:64_000],
        re.MULTILINE | re.IGNORECASE,
    )
    if match:
        return match.group(1).decode("ascii", "replace")
    return ""
