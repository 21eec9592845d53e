"""Clients that ask a service at once, over plain sockets so that they cost little beside what they
measure.
"""

from __future__ import annotations

import asyncio
import json
import random
import time
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

Answer = tuple[
    float, float, str, int
]  # when it came, the seconds it took, its snapshot, the number of the client


@dataclass
class ClientAnswer:
    """What the clients saw: statuses, answers in the order they came, and answers that were not of
    one graph.
    """

    statuses: Counter[int] = field(default_factory=Counter)
    answers: list[Answer] = field(default_factory=list)
    mixed: list[str] = field(default_factory=list)
    went_back: int = 0

    def percentile(self, share: float) -> float:
        """Milliseconds within which this share of the answers came."""
        return _percentile([seconds for _, seconds, _, _ in self.answers], share)

    def slowest_client(self, share: float) -> float:
        """The same for the answers of each client alone, of the client with which it takes
        longest.
        """
        took: dict[int, list[float]] = {}
        for _, seconds, _, client in self.answers:
            took.setdefault(client, []).append(seconds)
        return max((_percentile(one, share) for one in took.values()), default=0.0)


def _percentile(took: list[float], share: float) -> float:
    return sorted(took)[int(share * (len(took) - 1))] * 1000 if took else 0.0


def ask_at_once(
    address: tuple[str, int],
    questions: Sequence[str],
    *,
    clients: int,
    seconds: float,
    think: float = 0.0,
    recipe: str = "hirag_pathrag",
    editions: dict[str, str] | None = None,
    is_enough: Callable[[ClientAnswer], bool] = lambda seen: True,
) -> ClientAnswer:
    """Let clients ask questions drawn at random until the time is over and it is enough.

    `think` is their mean pause between two questions. A client that pauses begins with a part of a
    pause: people do not ask their first question in the same instant. Without pauses all begin at
    once.

    `editions` is shared with whoever publishes: the word that every passage of a snapshot must
    hold. An answer that holds the word of another one is mixed. A client that saw a newer snapshot
    and then an older one went back.
    """
    seen = ClientAnswer()

    async def client(number: int, until: float) -> None:
        chance, order = random.Random(number), []
        reader, writer = await asyncio.open_connection(*address)
        await asyncio.sleep(chance.uniform(0.0, think))
        while not is_enough(seen) or time.perf_counter() < until:
            body = json.dumps({"query": chance.choice(questions), "recipe": recipe}).encode()
            began = time.perf_counter()
            if (
                reader.at_eof()
            ):  # the service closes connections on which nobody asked for a while, as HTTP allows
                writer.close()
                reader, writer = await asyncio.open_connection(*address)
            writer.write(_HEAD % len(body) + body)
            status, text = await _answer(reader)
            now = time.perf_counter()
            seen.statuses[status] += 1
            snapshot = text[(at := text.find(b'"snapshot":"') + 12) : at + 25].decode()
            seen.answers.append((now, now - began, snapshot, number))
            if snapshot not in order:
                order.append(snapshot)
            seen.went_back += snapshot != order[-1]
            if editions is not None and any(
                word.encode() in text for name, word in list(editions.items()) if name != snapshot
            ):
                seen.mixed.append(text.decode())
            if think:
                await asyncio.sleep(chance.expovariate(1 / think))
        writer.close()

    async def everybody() -> None:
        until = time.perf_counter() + seconds
        await asyncio.gather(*(client(number, until) for number in range(clients)))

    asyncio.run(everybody())
    return seen


_HEAD = (
    b"POST /v1/query HTTP/1.1\r\nHost: localhost\r\nContent-Type: "
    b"application/json\r\nContent-Length: %d\r\n\r\n"
)


async def _answer(reader: asyncio.StreamReader) -> tuple[int, bytes]:
    head = await reader.readuntil(b"\r\n\r\n")
    length = int(head.lower().split(b"content-length: ")[1].split(b"\r\n")[0])
    return int(head[9:12]), await reader.readexactly(length)
