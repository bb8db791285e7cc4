"""Requests at random moments, whatever becomes of earlier ones: the load that shows a service's tail."""

from __future__ import annotations

import asyncio
import heapq
import itertools
import random
import re
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import uvloop


class Line(asyncio.Protocol):
    """A connection with one request at a time. Protocols take a third of the processor time of streams."""

    def __init__(self, ended: Callable[[Line, str], None]) -> None:
        self._ended = ended
        self._transport: Any = None
        self.due: float | None = None
        """When the running request was due."""

    def connection_made(self, transport: Any) -> None:
        """Keep the connection."""
        self._transport = transport

    def send(self, content: bytes, due: float) -> None:
        """Send a request."""
        self.due, self._got, self._size = due, b"", 0
        self._transport.write(content)

    def data_received(self, data: bytes) -> None:
        """Read a reply, and report its end."""
        self._got = self._got + data if self._got else data
        if not self._size:
            head = self._got.find(b"\r\n\r\n")
            if head < 0:
                return
            found = re.search(rb"content-length: (\d+)", self._got)
            self._size = head + 4 + (int(found[1]) if found else 0)
        if len(self._got) >= self._size:
            if b"connection: close" in self._got[:1024]:
                self.close()
            self._ended(self, self._got[9:12].decode())

    def connection_lost(self, error: Exception | None) -> None:
        """Report the end of a request without its reply."""
        self._transport = None
        if self.due is not None:
            self._ended(self, type(error or EOFError()).__name__)

    @property
    def is_open(self) -> bool:
        """Whether another request can be sent."""
        return self._transport is not None and not self._transport.is_closing()

    def close(self) -> None:
        """Close the connection."""
        if self._transport is not None:
            self._transport.close()


def paced(
    port: int,
    requests: Iterable[bytes],
    rate: float,
    length: float,
    statuses: Counter[str] | None = None,
) -> tuple[list[float], Counter[str], float]:
    """Requests at random moments, `rate` a second, each on a connection that is free: the ms from the moment that each
    was due to its last byte, the replies by status (counted in `statuses` as they come, if given), and the rate that
    was reached.
    """
    source = itertools.cycle(requests) if isinstance(requests, list) else iter(requests)
    statuses = Counter() if statuses is None else statuses
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        return runner.run(_paced(port, source, rate, length, statuses))


def ideal(rate: float, length: float, servers: int, seconds: float) -> list[float]:
    """The ms of the same requests in one queue for servers that take equally long for each and never wait otherwise."""
    chance = random.Random(7)
    free = [0.0] * servers
    due, times = 0.0, list[float]()
    while due < length:
        ended = max(due, heapq.heappop(free)) + seconds
        heapq.heappush(free, ended)
        times.append(1000 * (ended - due))
        due += chance.expovariate(rate)
    return sorted(times)


async def _paced(
    port: int, source: Iterator[bytes], rate: float, length: float, statuses: Counter[str]
) -> tuple[list[float], Counter[str], float]:
    loop, times = asyncio.get_running_loop(), list[float]()
    free, running = list[Line](), set[Line]()
    chance = random.Random(7)

    def ended(line: Line, status: str) -> None:
        assert line.due is not None
        statuses[status] += 1
        if status == "200":
            times.append(1000 * (time.perf_counter() - line.due))
        line.due = None
        running.discard(line)
        if line.is_open:
            free.append(line)

    async def connect(content: bytes, due: float) -> None:
        try:
            _, line = await loop.create_connection(lambda: Line(ended), "127.0.0.1", port)
        except OSError as error:
            statuses[type(error).__name__] += 1
            return
        running.add(line)
        line.send(content, due)

    began = due = time.perf_counter()
    connecting: set[asyncio.Task[None]] = set()
    number = 0
    while due < began + length:
        wait = due - time.perf_counter()
        if wait > 0:
            await asyncio.sleep(wait)
        elif number % 16 == 0:
            await asyncio.sleep(0)  # replies are read even if all requests are late
        while free and not free[-1].is_open:  # the service closes what was idle for long
            free.pop()
        if free:
            line = free.pop()
            running.add(line)
            line.send(next(source), due)
        else:
            task = asyncio.create_task(connect(next(source), due))
            connecting.add(task)
            task.add_done_callback(connecting.discard)
        number += 1
        due += chance.expovariate(rate)
    reached = number / (time.perf_counter() - began)
    late = time.perf_counter() + 60
    while (running or connecting) and time.perf_counter() < late:
        await asyncio.sleep(0.01)
    for line in (*free, *running):
        line.close()
    return sorted(times), statuses, reached
