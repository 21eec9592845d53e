"""Messages of an IMAP mailbox, by the standard library; each is read once: mail never changes."""

from __future__ import annotations

import imaplib
import re
import ssl
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from datetime import UTC, datetime
from typing import Any
from urllib.parse import unquote

from hades.errors import SettingsError
from hades.ingest.sources.remote.connector import (
    Kind,
    Place,
    Reading,
    RemoteDocument,
    SyncError,
    size_limit,
    too_large,
)

_TIMEOUT_SECONDS = 60.0
_AT_ONCE = 50
_LISTED = re.compile(rb"UID (\d+)")
_SIZE = re.compile(rb"RFC822\.SIZE (\d+)")
_LOOPBACK = frozenset({"127.0.0.1", "::1", "localhost"})


class MailboxConnector:
    """One mailbox, opened to read."""

    columns: tuple[str, ...] = ()

    def __init__(self, place: Place) -> None:
        parts = place.parts
        host = parts.hostname or ""
        is_plain = parts.scheme == "imap"

        if is_plain and host not in _LOOPBACK:
            raise SettingsError(
                f"imap:// would send the password to {host} unencrypted; write imaps://"
            )

        self._mailbox = unquote(parts.path.strip("/")) or "INBOX"
        self._address = f"{parts.scheme}://{host}/{self._mailbox}"
        if is_plain:
            self._imap = imaplib.IMAP4(
                host,
                parts.port or 143,
                timeout=_TIMEOUT_SECONDS,
            )
        else:
            self._imap = imaplib.IMAP4_SSL(
                host,
                parts.port or 993,
                ssl_context=ssl.create_default_context(),
                timeout=_TIMEOUT_SECONDS,
            )

        self._imap.login(unquote(parts.username or ""), unquote(parts.password or ""))
        quoted = self._mailbox.replace("\\", "\\\\").replace('"', '\\"')
        self._require(self._imap.select(f'"{quoted}"', readonly=True))
        _, validity = self._imap.response("UIDVALIDITY")
        self._validity = (validity[0] or b"").decode() if validity else ""

    def _require(self, answer: tuple[str, Sequence[Any]]) -> Sequence[Any]:
        """The lines of an answer that says OK."""
        status, lines = answer
        if status != "OK":
            raise SyncError(
                f"the mailbox {self._mailbox} answered {status}: {lines[0]!r}; check its name and "
                "the account"
            )

        return lines

    def list_documents(self) -> Iterator[RemoteDocument]:
        """Every message, by its UID; all are new where the server numbered them anew."""
        lines = self._require(
            self._imap.uid(
                "FETCH",
                "1:*",
                "(UID RFC822.SIZE INTERNALDATE)",
            )
        )
        for line in lines:
            text = line if isinstance(line, bytes) else b""
            number = _LISTED.search(text)
            size = _SIZE.search(text)

            if number is None:
                continue

            uid = number.group(1).decode()
            yield RemoteDocument(
                id=f"{self._validity}/{uid}",
                name=f"{self._mailbox}/{self._validity}/{uid}.eml",
                version=uid,
                address=f"{self._address};UIDVALIDITY={self._validity}/;UID={uid}",
                modified=_moment(text),
                size=int(size.group(1)) if size else None,
            )

    def read_documents(
        self,
        documents: Sequence[RemoteDocument],
        _versions: Mapping[str, str],
    ) -> Iterator[Reading]:
        """Each message as it was sent, without marking it as read."""
        for document in documents:
            limit = size_limit(document.name)
            if document.size is not None and document.size > limit:
                yield Reading(
                    document,
                    problem=too_large(document.name, document.size),
                )
                continue

            uid = document.id.rpartition("/")[2]
            lines = self._require(
                self._imap.uid(
                    "FETCH",
                    uid,
                    f"(BODY.PEEK[]<0.{limit + 1}>)",
                )
            )
            content = next((line[1] for line in lines if isinstance(line, tuple)), None)

            if content is None:
                yield Reading(document, is_gone=True)
            else:
                yield Reading(document, content)

    def close(self) -> None:
        """Log out."""
        with suppress(OSError, imaplib.IMAP4.error):
            self._imap.logout()


def _moment(line: bytes) -> datetime | None:
    """When the server received a message."""
    broken_down = imaplib.Internaldate2tuple(line)
    if broken_down is None:
        return None

    return datetime(*broken_down[:6]).astimezone(UTC)


KIND = Kind(
    "imap",
    "the messages of an IMAP mailbox",
    (),
    MailboxConnector,
)
