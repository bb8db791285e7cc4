"""Capacity of the service next to the library in the same run, latency at 70 % load, overload, memory and start.

    python benches/serving.py
    python benches/serving.py --endurance 10    # its memory during minutes at twice its capacity, with default options
    python benches/serving.py --team            # what users, rights and the log cost

The load comes from wrk (`apt-get install wrk`) on the same processors, which takes its share of them.
"""

from __future__ import annotations

import asyncio
import contextlib
import heapq
import itertools
import json
import os
import random
import re
import signal
import subprocess
import sys
import tempfile
import threading
import time
import urllib.error
import urllib.request
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import uvloop

from common import MODEL, WORK, arguments, median, publish, require_data, target
from common import result_table as table
from generated import documents, question
from ketrag_fast import Document, Index, Settings
from ketrag_fast.apps.server.users import add_user
from ketrag_fast.models.embedders.discovery import resolve

BUDGET, CLIENTS, TURNS = 1500, 16, 3
SAMPLE_SECONDS = 20.0
HEAD = "POST /v1/retrieve HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: "


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


@contextmanager
def served(
    index: Path, *options: str, token: str | None = None
) -> Iterator[tuple[int, subprocess.Popen[str], float]]:
    """The command on a free port: the port, the process, and the seconds until it answered a question."""
    began = time.perf_counter()
    command = [
        sys.executable,
        "-m",
        "ketrag_fast.apps.cli.main",
        "serve",
        "-i",
        str(index),
        "--port",
        "0",
        *options,
    ]
    process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
    assert process.stderr is not None
    line, said = "", ""
    while " at http://" not in line:
        line = process.stderr.readline()
        said += line
        assert line, f"the service ended: {said}"
    port = int(line.strip().rpartition(":")[2])
    ask(port, {"question": "Who?", "budget": 1500}, token)
    took = time.perf_counter() - began
    threading.Thread(target=process.stderr.read, daemon=True).start()
    try:
        yield port, process, took
    finally:
        process.send_signal(signal.SIGTERM)
        process.wait(60)


def ask(port: int, body: dict[str, Any], token: str | None = None) -> dict[str, Any]:
    """One question by urllib."""
    headers = {"Content-Type": "application/json"} | ({"Authorization": f"Bearer {token}"} if token else {})
    request = urllib.request.Request(
        f"http://127.0.0.1:{port}/v1/retrieve", json.dumps(body).encode(), headers
    )
    with urllib.request.urlopen(request, timeout=60) as reply:
        found: dict[str, Any] = json.loads(reply.read())
        return found


def wait_until_ready(port: int) -> None:
    """Return when indexes are read and models loaded."""
    while True:
        with contextlib.suppress(urllib.error.HTTPError):
            urllib.request.urlopen(f"http://127.0.0.1:{port}/ready", timeout=60).close()
            return
        time.sleep(0.02)


@dataclass(frozen=True)
class Load:
    """Replies a second, latencies and errors of a load, and the service's processor time per request."""

    rate: float
    p50: float
    p99: float
    errors: int
    requests: int
    micros: float = float("nan")


SCRIPT = """
local requests = {}
function init(args)
  for i, body in ipairs(bodies) do
    requests[i] = wrk.format("POST", "/v1/retrieve", headers, body)
  end
end
local n = 0
function request()
  n = n % #requests + 1
  return requests[n]
end
function done(summary, latency, rates)
  local errors = summary.errors
  local wrong = errors.connect + errors.read + errors.write + errors.status + errors.timeout
  print(string.format("RESULT %d %d %f %f %d", summary.requests, summary.duration, latency:percentile(50),
    latency:percentile(99), wrong))
end
"""


def ticks(process: int) -> float:
    """Return the seconds of processor time that a process has used."""
    fields = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def loaded(
    port: int, bodies: list[dict[str, Any]], length: float, process: int, token: str | None = None
) -> Load:
    """Keep `CLIENTS` connections busy for some seconds with wrk."""
    used = ticks(process)
    with tempfile.NamedTemporaryFile("w", suffix=".lua") as script:
        texts = ",\n".join(f"[==[{json.dumps(body)}]==]" for body in bodies)
        headers = '["Content-Type"] = "application/json"' + (
            f', ["Authorization"] = "Bearer {token}"' if token else ""
        )
        script.write(f"local bodies = {{\n{texts}\n}}\nlocal headers = {{{headers}}}\n{SCRIPT}")
        script.flush()
        command = ["wrk", "-t1", f"-c{CLIENTS}", f"-d{max(1, round(length))}s", "-s", script.name]
        done = subprocess.run(
            [*command, f"http://127.0.0.1:{port}"], capture_output=True, text=True, check=True
        )
    found = re.search(r"RESULT (\d+) (\d+) ([\d.]+) ([\d.]+) (\d+)", done.stdout)
    assert found, done.stdout
    requests, duration = int(found[1]), int(found[2])
    micros = 1e6 * (ticks(process) - used) / requests
    p50, p99 = (float(found[n]) / 1000 for n in (3, 4))
    return Load(1e6 * requests / duration, p50, p99, int(found[5]), requests, micros)


def at(times: list[float], share: float) -> float:
    """A percentile of sorted times."""
    return times[min(int(share * len(times)), len(times) - 1)] if times else float("nan")


def memory(processes: list[int], name: str) -> float:
    """MB of `Rss` or `Pss` (what is shared is divided among those who share it)."""
    kilobytes = 0
    for process in processes:
        for line in Path(f"/proc/{process}/smaps_rollup").read_text().splitlines():
            if line.startswith(f"{name}:"):
                kilobytes += int(line.split()[1])
    return kilobytes / 1024


def posts(bodies: list[dict[str, Any]]) -> list[bytes]:
    """Whole requests."""
    texts = [json.dumps(body).encode() for body in bodies]
    return [f"{HEAD}{len(text)}\r\n\r\n".encode() + text for text in texts]


def capacity(index: Path, questions: list[str], length: float) -> tuple[list[list[Any]], float]:
    """Return a row for each mode and setting of the reply cache, and requests a second of the walk without it.

    The library and the service take turns, and the shares are those of the same turn.
    """
    rows: list[list[Any]] = []
    best = 0.0
    for mode, name, flags, least, share in (
        ("bm25", "off", ("--cache-mb", "0"), 12_000, 0.45),
        ("walk", "off", ("--cache-mb", "0"), 1500, 0.8),
        ("bm25", "default", (), None, None),
        ("walk", "default", (), None, None),
    ):
        bodies = [{"question": text, "mode": mode, "budget": BUDGET} for text in questions]
        library: list[tuple[float, float]] = []
        loads: list[Load] = []
        with Index.open(index) as opened, served(index, *flags) as (port, process, _):
            loaded(port, bodies, min(length, 2), process.pid)
            for _ in range(TURNS):
                library.append(
                    (rate_of(opened, questions, mode, 1, length), rate_of(opened, questions, mode, 2, length))
                )
                loads.append(loaded(port, bodies, length, process.pid))
        rate = median([load.rate for load in loads])
        of_two = median([load.rate / two for load, (_, two) in zip(loads, library, strict=True)])
        best = rate if (mode, name) == ("walk", "off") else best
        row = [mode, name, *(median([turn[n] for turn in library]) for n in (0, 1)), rate, of_two]
        row += [median([getattr(load, field) for load in loads]) for field in ("micros", "p50", "p99")]
        row += [sum(load.errors for load in loads)]
        rows.append([*row, "" if least is None or share is None else reached(rate, least, of_two, share)])
    return rows, best


def rate_of(index: Index, questions: list[str], mode: str, threads: int, length: float) -> float:
    """Return the questions a second that the library answers for some seconds."""
    count, began = 0, time.perf_counter()
    while (elapsed := time.perf_counter() - began) < length / 2 or not count:
        index.retrieve_many(questions, mode=mode, budget=BUDGET, threads=threads)
        count += len(questions)
    del elapsed
    return count / (time.perf_counter() - began)


def reached(rate: float, least: float, share: float, of: float) -> str:
    """Return two bounds of which one is enough, and whether both were missed."""
    return f"at least {least:,g} or {of:g}" + ("" if rate >= least or share >= of else ": missed")


def tail(
    name: str, index: Path, bodies: list[dict[str, Any]], length: float, most: float | None
) -> list[Any]:
    """Return the row of an open loop at 70 % of the capacity: requests at random moments.

    Each turn measures the capacity again, because a queue at 80 % of it is twice as long as one at 70 %.
    """
    turns: list[list[float]] = []
    cores = len(os.sched_getaffinity(0))
    with served(index, "--cache-mb", "0") as (port, process, _):
        wait_until_ready(port)
        for _ in range(TURNS):
            full = loaded(port, bodies, min(length, 4), process.pid).rate
            used = ticks(process.pid) + time.process_time()
            times, statuses, sent = paced(port, posts(bodies), 0.7 * full, 2 * length)
            each = (ticks(process.pid) + time.process_time() - used) / max(sum(statuses.values()), 1)
            others = sum(n for status, n in statuses.items() if status != "200")
            least = ideal(sent, 2 * length, cores, each)
            p50, p99, latest = (at(times, share) for share in (0.5, 0.99, 1))
            turns.append([full, sent, 100 * each * sent / cores, p50, p99, latest, at(least, 0.99), others])
    row = [median([turn[n] for turn in turns]) for n in range(7)]
    return [name, *row, sum(turn[7] for turn in turns), "" if most is None else target(row[4], most=most)]


def embedded(folder: Path, questions: list[str], length: float) -> list[list[Any]]:
    """Return the row of questions that MiniLM embeds; nothing if the model is missing.

    More questions than query vectors are cached, so that each is embedded.
    """
    if resolve(MODEL) is None:
        return []
    questions = [f"{text} ({n})" for n in range(2 + 4096 // len(questions)) for text in questions]
    index = WORK / f"serving-model-{folder.name}"
    settings = Settings(modes="text", embedder=f"native:{MODEL}")
    Index.build(folder / "corpus.jsonl", index, settings=settings).close()
    bodies = [{"question": text, "mode": "text", "budget": BUDGET} for text in questions]
    shares, rates, encoder = [], [], []
    # Turns go on where the last one ended: what was embedded before is cached.
    starts = itertools.cycle(range(0, len(questions), 32))
    with served(index, "--cache-mb", "0") as (port, process, _), Index.open(index) as opened:
        wait_until_ready(port)
        loaded(port, bodies[::-1], 2, process.pid)
        for _ in range(TURNS):
            count, began = 0, time.perf_counter()
            for start in starts:
                opened.inspect.vectors(questions[start : start + 32])
                count += len(questions[start : start + 32])
                if time.perf_counter() >= began + length / 2:
                    break
            encoder.append(count / (time.perf_counter() - began))
            load = loaded(port, bodies, length, process.pid)
            rates.append(load.rate)
            bodies = bodies[load.requests % len(bodies) :] + bodies[: load.requests % len(bodies)]
            shares.append(rates[-1] / encoder[-1])
    share = median(shares)
    return [[median(encoder), median(rates), share, target(share, least=0.8)]]


def overload(index: Path, questions: list[str], rate: float, length: float) -> list[Any]:
    """Return the row of twice the capacity: replies by status, memory before and after, the next question."""
    requests = posts([{"question": text, "mode": "walk", "budget": BUDGET} for text in questions])
    with served(index, "--cache-mb", "0", "--queue", "256") as (port, process, _):
        paced(port, requests, rate / 2, 2)
        before = memory([process.pid], "Rss")
        _, statuses, sent = paced(port, requests, 2 * rate, length)
        after = memory([process.pid], "Rss")
        began = time.perf_counter()
        ask(port, {"question": "Who?", "budget": BUDGET})
        taken = 1000 * (time.perf_counter() - began)
    others = sum(n for status, n in statuses.items() if status not in ("200", "429"))
    return [sent, statuses["200"], statuses["429"], others, before, after, taken, target(others, most=0)]


def endurance(index: Path, questions: list[str], rate: float, length: float) -> None:
    """Publish the memory of a service with default options during minutes at twice its capacity.

    Every question is new, so that the cached replies reach their bound and old ones make room for new ones.
    """
    numbers = itertools.count()

    def requests() -> Iterator[bytes]:
        chance = random.Random(7)
        while True:
            text = f"{chance.choice(questions)} ({next(numbers)})"
            yield from posts([{"question": text, "mode": "walk", "budget": 1500}])

    rows: list[list[Any]] = []
    with served(index) as (port, process, _):
        ended = threading.Event()
        began = time.perf_counter()
        everything: Counter[str] = Counter()

        def sample() -> None:
            while True:
                rss, own = memory([process.pid], "Rss"), memory([process.pid], "Anonymous")
                row = [f"{time.perf_counter() - began:.0f}", rss, own, everything["200"], everything["429"]]
                others = sum(n for status, n in everything.items() if status not in ("200", "429"))
                rows.append([*row, others])
                print("| " + " | ".join(str(cell) for cell in rows[-1]) + " |", flush=True)
                if ended.wait(SAMPLE_SECONDS):
                    return

        sampler = threading.Thread(target=sample)
        sampler.start()
        times, _, got = paced(port, requests(), 2 * rate, length, everything)
        ended.set()
        sampler.join()
        recovered = time.perf_counter()
        ask(port, {"question": "Who?", "budget": 1500})
        taken = 1000 * (time.perf_counter() - recovered)
        stopping = time.perf_counter()
    stopped = time.perf_counter() - stopping
    grown = rows[-1][2] - max(row[2] for row in rows[: (len(rows) + 1) // 2])
    errors = sum(count for status, count in everything.items() if status not in ("200", "429"))
    facts = [got, everything["200"], everything["429"], errors, at(times, 0.5), at(times, 0.99), grown]
    columns = ["s", "MB", "MB without mapped files", "200", "429", "others"]
    publish(
        [
            table("", columns, rows),
            table(
                "In all",
                [
                    "requests/s sent",
                    "200",
                    "429",
                    "others",
                    "ms, median",
                    "ms, 99th percentile",
                    "MB at the end above the most of the first half",
                    "next question, ms",
                    "stop, s",
                    "target",
                ],
                [[*facts, taken, stopped, target(errors, most=0)]],
            ),
        ],
        f"{length:.0f} s of questions that are all new, default options.",
    )


def team(folder: Path, questions: list[str], length: float) -> None:
    """Publish what users, the log and a right on documents cost, as processor time of the service per request.

    One service has neither, one users and a log of all requests, and one a user whose right covers all documents: its
    replies are the same. They run in turn, and each share is of the same turn.
    """
    index = WORK / f"serving-team-{folder.name}"
    entries = (json.loads(line) for line in (folder / "corpus.jsonl").open())
    one_team = (Document(one["_id"], one["text"], one["title"], {"team": "red"}) for one in entries)
    Index.build(one_team, index, settings=Settings(modes="bm25,walk")).close()
    kinds = ["without", "users", "users and log", "users, log and a right"]
    rows: list[list[Any]] = []
    users = WORK / "serving-users.jsonl"
    users.unlink(missing_ok=True)
    tokens = {kinds[1]: add_user(str(users), "anna", None, ["read"])}
    tokens |= {kinds[2]: tokens[kinds[1]], kinds[3]: add_user(str(users), "bert", "team=red", ["read"])}
    flags: dict[str, tuple[str, ...]] = {kinds[0]: (), kinds[1]: ("--users", str(users))}
    flags |= dict.fromkeys(kinds[2:], ("--users", str(users), "--log", "text"))
    for mode in ("bm25", "walk"):
        bodies = [{"question": text, "mode": mode, "budget": BUDGET} for text in questions]
        turns: list[dict[str, Load]] = []
        with contextlib.ExitStack() as stack:
            services = {
                kind: stack.enter_context(
                    served(index, "--cache-mb", "0", *flags[kind], token=tokens.get(kind))
                )
                for kind in kinds
            }
            for number in range(2 * TURNS + 1):
                turn = {}
                for kind in kinds if number % 2 else reversed(kinds):
                    port, process, _ = services[kind]
                    turn[kind] = loaded(port, bodies, length if number else 1, process.pid, tokens.get(kind))
                turns += [turn] * bool(number)  # the first one warms up
        for kind in kinds:
            micros = median([turn[kind].micros for turn in turns])
            share = median([turn[kinds[0]].micros / turn[kind].micros for turn in turns])
            rate = median([turn[kind].rate / turn[kinds[0]].rate for turn in turns])
            errors = sum(turn[kind].errors for turn in turns)
            rows.append([mode, kind, micros, share, rate, errors, target(share, least=0.9)])
    columns = ["mode", "service", "processor us/request", "requests per processor second, share of without"]
    columns += ["requests/s, share of without", "errors", "target"]
    publish(
        [table("", columns, rows)], f"{len(questions)} questions from {CLIENTS} connections, no reply cache."
    )


def main() -> None:
    """Measure the tables, or the memory or the cost of users alone."""
    parser = arguments(__doc__)
    parser.add_argument("--endurance", type=float, metavar="MINUTES", help="memory at twice the capacity")
    parser.add_argument("--team", action="store_true", help="the cost of users, rights and the log")
    args = parser.parse_args()
    length = 1.0 if args.smoke else 5.0
    folder = require_data("polar" if args.smoke else "musique-dev")
    questions = [json.loads(line)["text"] for line in (folder / "queries.jsonl").open()]
    if args.team:
        team(folder, questions, length)
        return
    index = WORK / f"serving-{folder.name}"
    Index.build(folder / "corpus.jsonl", index, settings=Settings(modes="bm25,walk")).close()
    if args.endurance:
        bodies = [{"question": text, "mode": "walk", "budget": BUDGET} for text in questions]
        with served(index, "--cache-mb", "0") as (port, process, _):
            best = loaded(port, bodies, length, process.pid).rate
        endurance(index, questions, best, 4.0 if args.smoke else 60 * args.endurance)
        return
    rows, best = capacity(index, questions, length)
    walk = [{"question": text, "mode": "walk", "budget": BUDGET} for text in questions]
    tails = [tail(folder.name, index, walk, length, None if args.smoke else 12)]
    count = 300 if args.smoke else 100_000
    large = WORK / f"serving-{count}"
    Index.build(documents(count), large, settings=Settings(modes="bm25,walk")).close()
    asked = [
        {"question": question(one), "mode": "walk", "budget": BUDGET}
        for at_document, one in enumerate(documents(count))
        if at_document % max(count // 2000, 1) == 0
    ]
    tails.append(tail(f"{count:,} generated documents", large, asked, length, None if args.smoke else 30))
    models = embedded(folder, questions, length)
    busy = overload(index, questions, best, 2 * length)
    first = []
    for _ in range(1 if args.smoke else 3):
        with served(index) as (_, _, took):
            first.append(took)
    columns = [
        "mode",
        "reply cache",
        "library, questions/s, 1 thread",
        "library, 2 threads",
        "service, requests/s",
        "of the library on 2 threads",
        "service, processor us/request",
        "ms, median",
        "ms, 99th percentile",
        "errors",
        "target",
    ]
    names = [
        "requests/s sent",
        "200",
        "429",
        "others",
        "MB before",
        "MB after",
        "next question, ms",
        "target",
    ]
    open_loop = [
        "index",
        "capacity, requests/s",
        "sent, requests/s",
        "processors busy, %",
        "ms, median",
        "ms, 99th percentile",
        "ms, most",
        "ms, 99th percentile of an ideal queue",
        "errors",
        "target",
    ]
    tables = [
        table("", columns, rows),
        table("`walk` at 70 % of the capacity, requests at random moments", open_loop, tails),
    ]
    if models:
        heads = ["encoder alone, questions/s", "service, requests/s", "share", "target"]
        tables.append(table("`text` with all-MiniLM-L6-v2, every question embedded", heads, models))
    publish(
        [
            *tables,
            table("At twice the capacity of `walk` without the cache", names, [busy]),
            table(
                "Start",
                ["start to the first answer, s", "target, s"],
                [[median(first), target(median(first), most=1)]],
            ),
        ],
        f"{folder.name}: {len(questions)} questions again and again from {CLIENTS} connections.",
    )


if __name__ == "__main__":
    os.environ.pop("KETRAG_TOKEN", None)
    main()
