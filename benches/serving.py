"""Capacity of the service: requests per second compared with the library in the same run, latency at 70 % of
that, overload, cold start, memory of several workers. The load comes from wrk on the same machine, which takes its share;
that at a set rate from a generator of our own, whose limit is shown.
"""

from __future__ import annotations

import argparse
import asyncio
import itertools
import json
import os
import random
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
import urllib.request
from collections import Counter
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from common import header, median, require_data, seconds, table
from ketrag_fast import Index, Settings
from opening import made

SAMPLE_SECONDS = 20.0
HERE = Path(__file__).resolve().parent
HEAD = "POST /v1/retrieve HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: "
SCRIPT = """
local bodies = {}
for line in io.lines("%s") do bodies[#bodies + 1] = line end
math.randomseed(os.time())
local at = math.random(#bodies)
request = function()
  at = at %% #bodies + 1
  return wrk.format("POST", "/v1/retrieve", {["Content-Type"] = "application/json"}, bodies[at])
end
local wrong = 0
response = function(status) if status ~= 200 then wrong = wrong + 1 end end
"""


@contextmanager
def served(index: Path, *options: str) -> Iterator[tuple[int, subprocess.Popen[str], float]]:
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
    line = ""
    while " at http://" not in line:
        line = process.stderr.readline()
        assert line, "the service ended"
    port = int(line.strip().rpartition(":")[2])
    ask(port, {"question": "Who?", "budget": 1500})
    took = time.perf_counter() - began
    threading.Thread(target=process.stderr.read, daemon=True).start()
    try:
        yield port, process, took
    finally:
        process.send_signal(signal.SIGTERM)
        process.wait(60)


def ask(port: int, body: dict[str, Any]) -> dict[str, Any]:
    """One question by urllib."""
    request = urllib.request.Request(
        f"http://127.0.0.1:{port}/v1/retrieve",
        json.dumps(body).encode(),
        {"Content-Type": "application/json"},
    )
    with urllib.request.urlopen(request, timeout=60) as reply:
        found: dict[str, Any] = json.loads(reply.read())
        return found


def wrk(port: int, bodies: Path, length: float, connections: int) -> tuple[float, float, int]:
    """Requests a second, the 99th percentile in ms, and replies that were not 200."""
    with tempfile.NamedTemporaryFile("w", suffix=".lua") as script:
        script.write(SCRIPT % bodies)
        script.flush()
        done = subprocess.run(
            [
                "wrk",
                "-t1",
                f"-c{connections}",
                f"-d{length:g}s",
                "--latency",
                "-s",
                script.name,
                f"http://127.0.0.1:{port}",
            ],
            capture_output=True,
            text=True,
            check=True,
        ).stdout
    rate = re.search(r"Requests/sec:\s+([\d.]+)", done)
    slow = re.search(r"99%\s+([\d.]+)(us|ms|s)", done)
    assert rate and slow, done
    wrong = re.search(r"Non-2xx or 3xx responses: (\d+)", done)
    unit = {"us": 1e-3, "ms": 1.0, "s": 1e3}[slow[2]]
    return float(rate[1]), float(slow[1]) * unit, int(wrong[1]) if wrong else 0


async def paced(
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
    if isinstance(requests, list):
        requests = itertools.cycle(requests)
    free: list[tuple[asyncio.StreamReader, asyncio.StreamWriter]] = []
    times: list[float] = []
    statuses = Counter() if statuses is None else statuses
    chance = random.Random(7)

    async def one(due: float, content: bytes) -> None:
        try:
            while free and free[-1][0].at_eof():  # the service closes what was idle for long
                free.pop()[1].close()
            reader, writer = free.pop() if free else await asyncio.open_connection("127.0.0.1", port)
            writer.write(content)
            head = await reader.readuntil(b"\r\n\r\n")
            status = head[9:12].decode()
            found = re.search(rb"content-length: (\d+)", head)
            await reader.readexactly(int(found[1]) if found else 0)
            if b"connection: close" in head:
                writer.close()
            else:
                free.append((reader, writer))
        except (OSError, asyncio.IncompleteReadError) as error:
            status = type(error).__name__
        statuses[status] += 1
        if status == "200":
            times.append(1000 * (time.perf_counter() - due))

    began = due = time.perf_counter()
    tasks: set[asyncio.Task[None]] = set()
    source = iter(requests)
    number = 0
    while due < began + length:
        wait = due - time.perf_counter()
        if wait > 0:
            await asyncio.sleep(wait)
        task = asyncio.create_task(one(due, next(source)))
        tasks.add(task)
        task.add_done_callback(tasks.discard)
        number += 1
        due += chance.expovariate(rate)
    if tasks:
        await asyncio.wait(tasks, timeout=60)
    for _, writer in free:
        writer.close()
    return sorted(times), statuses, number / (time.perf_counter() - began)


def at(times: list[float], share: float) -> float:
    """A percentile of sorted times."""
    return times[min(int(share * len(times)), len(times) - 1)] if times else float("nan")


def workers_of(process: int) -> list[int]:
    """The processes that a service started."""
    return [int(one) for one in Path(f"/proc/{process}/task/{process}/children").read_text().split()]


def memory(processes: list[int], name: str) -> float:
    """MB of `Rss` or `Pss` (what is shared is divided among those who share it)."""
    kilobytes = 0
    for process in processes:
        for line in Path(f"/proc/{process}/smaps_rollup").read_text().splitlines():
            if line.startswith(f"{name}:"):
                kilobytes += int(line.split()[1])
    return kilobytes / 1024


def processor(processes: list[int]) -> float:
    """Seconds of the processor that some processes have taken: unlike requests a second, hardly moved by other work."""
    ticks = 0
    for process in processes:
        fields = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
        ticks += int(fields[11]) + int(fields[12])
    return ticks / os.sysconf("SC_CLK_TCK")


def posts(bodies: list[dict[str, Any]]) -> list[bytes]:
    """Whole requests."""
    texts = [json.dumps(body).encode() for body in bodies]
    return [f"{HEAD}{len(text)}\r\n\r\n".encode() + text for text in texts]


def capacity(index: Path, questions: list[str], mode: str, length: float, embedder: str | None) -> float:
    """Prints the table of one mode; the requests a second of the best service."""
    # An index remembers the vectors of 1,024 questions: with a model there are more of them.
    texts = questions if embedder is None else [f"{text} ({n})" for n in range(4) for text in questions]
    bodies = [{"question": text, "mode": mode, "budget": 1500} for text in texts]
    clients = 16 if embedder is None else 64  # a model embeds together what many clients ask
    with tempfile.NamedTemporaryFile("w", suffix=".jsonl") as file:
        file.write("\n".join(map(json.dumps, bodies)) + "\n")
        file.flush()
        given = Settings() if embedder is None else Settings(embedder=embedder)
        flags = () if embedder is None else ("--embedder", embedder)
        with Index.open(index, settings=given) as opened:
            opened.retrieve_many(questions[:20], mode=mode, budget=1500)

            def library() -> float:
                return len(texts) / median(
                    seconds(lambda: opened.retrieve_many(texts, mode=mode, budget=1500), 3)
                )

            encoder = None
            if embedder is not None:
                encoder = len(questions) / median(
                    seconds(lambda: opened.inspect.vectors([f"{q} " for q in questions], "document"), 3)
                )
            rows = []
            best = 0.0
            inside = library()
            began = time.process_time()
            opened.retrieve_many(texts, mode=mode, budget=1500)
            own = 1000 * (time.process_time() - began) / len(texts)
            for workers in (1, 2):
                with served(index, "--workers", str(workers), "--cache-mb", "0", *flags) as (
                    port,
                    process,
                    _,
                ):
                    wrk(port, Path(file.name), 1, clients)
                    spent = [process.pid, *workers_of(process.pid)]
                    before, began = processor(spent), time.perf_counter()
                    rate, slow, wrong = wrk(port, Path(file.name), length, clients)
                    spends = 1000 * (processor(spent) - before) / (rate * (time.perf_counter() - began))
                    times, _, got = asyncio.run(paced(port, posts(bodies), 0.7 * rate, length))
                    inside = max(inside, library()) if workers == 2 else inside
                    about = "" if encoder is None else rate / encoder
                    name = f"{mode}, {workers} worker{'s' * (workers > 1)}"
                    row = [name, inside, rate, rate / inside, about, own, spends, slow]
                    rows.append([*row, at(times, 0.5), at(times, 0.99), got, wrong])
                    best = max(best, rate)
    columns = [
        "service",
        "retrieve_many, questions/s",
        "wrk, requests/s",
        "of retrieve_many",
        "of the encoder alone",
        "CPU ms a question, retrieve_many",
        "CPU ms a request, service",
    ]
    columns += ["p99 ms at full load", "p50 ms at 70 %", "p99 ms at 70 %", "requests/s at 70 %", "not 200"]
    table(columns, rows)
    return best


def rate_of(index: Path, questions: list[str], length: float) -> float:
    """Requests a second by wrk of a service with default options, without kept replies."""
    with (
        tempfile.NamedTemporaryFile("w", suffix=".jsonl") as file,
        served(index, "--cache-mb", "0") as (port, _, _),
    ):
        bodies = [{"question": text, "mode": "walk", "budget": 1500} for text in questions]
        file.write("\n".join(map(json.dumps, bodies)) + "\n")
        file.flush()
        return wrk(port, Path(file.name), length, 16)[0]


def overload(index: Path, questions: list[str], rate: float, length: float) -> None:
    """Prints what happens at twice the capacity, and after it."""
    requests = posts([{"question": text, "mode": "walk", "budget": 1500} for text in questions])
    with served(index, "--cache-mb", "0", "--queue", "256") as (port, process, _):
        asyncio.run(paced(port, requests, rate / 2, 3))
        before = memory([process.pid], "Rss")
        began = time.perf_counter()
        _, statuses, got = asyncio.run(paced(port, requests, 2 * rate, length))
        after = memory([process.pid], "Rss")
        recovered = time.perf_counter()
        ask(port, {"question": "Who?", "budget": 1500})
        taken = 1000 * (time.perf_counter() - recovered)
        row = [f"{recovered - began:.0f} s", got, statuses["200"], statuses["429"]]
        row += [
            sum(n for status, n in statuses.items() if status not in ("200", "429")),
            before,
            after,
            taken,
        ]
    columns = ["twice the capacity for", "requests/s sent", "200", "429", "others", "MB before", "MB after"]
    table([*columns, "ms of the next question"], [row])


def endurance(index: Path, questions: list[str], rate: float, length: float) -> None:
    """Prints the memory of a service with default options during minutes at twice its capacity. Every question is
    new, so that the kept replies reach their bound and old ones make room for new ones.
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
        times, _, got = asyncio.run(paced(port, requests(), 2 * rate, length, everything))
        ended.set()
        sampler.join()
        recovered = time.perf_counter()
        ask(port, {"question": "Who?", "budget": 1500})
        taken = 1000 * (time.perf_counter() - recovered)
        stopping = time.perf_counter()
    stopped = time.perf_counter() - stopping
    columns = ["s", "MB", "MB of its own (not mapped files)", "200", "429", "others"]
    print(
        f"\nSent {got:,.0f} requests a second for {length:.0f} s: {dict(everything)}; p50 {at(times, 0.5):.0f} ms, "
    )
    print(f"p99 {at(times, 0.99):.0f} ms; the next question took {taken:.0f} ms, stopping {stopped:.1f} s.\n")
    table(columns, rows)


def starts(index: Path, large: Path | None) -> None:
    """Prints the time from nothing to the first answer, and the memory of workers."""
    first = [0.0] * 3
    for n in range(3):
        with served(index) as (_, _, first[n]):
            pass
    rows: list[list[Any]] = [
        [f"cold start to the first answer, s ({megabytes(index):.0f} MB)", median(first)]
    ]
    if large is not None:
        whole = ("--verify", "full")
        with served(large, *whole) as (_, process, _):
            one = memory([process.pid], "Pss")
        with served(large, "--workers", "4", *whole) as (_, process, _):
            four = memory([*workers_of(process.pid), process.pid], "Pss")
        about = f"{megabytes(large):,.0f} MB, every page read"
        rows += [
            [f"one worker, MB ({about})", one],
            ["four and their parent, MB (what is shared once)", four],
        ]
        rows += [[f"four of one, {about}", four / one]]
    table(["what", "found"], rows)


def megabytes(folder: Path) -> float:
    """Of all its files."""
    return sum(file.stat().st_size for file in folder.rglob("*") if file.is_file()) / 1e6


def main() -> None:
    """Print all tables."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=10, help="of each measurement")
    parser.add_argument("--overload", type=float, default=30, help="seconds at twice the capacity")
    parser.add_argument(
        "--endurance",
        type=float,
        metavar="MINUTES",
        help="the memory over minutes at twice the capacity alone",
    )
    parser.add_argument("--model", help="folder of an embedding model: its rows alone, over 2,000 passages")
    parser.add_argument("--large", type=int, help="documents of an index for the memory of workers")
    parser.add_argument("--index", type=Path, help="an index of musique-dev that is there already")
    args = parser.parse_args()
    if shutil.which("wrk") is None:
        sys.exit("wrk is not here: install it with the system's package manager")
    folder = require_data("musique-dev")
    questions = [json.loads(line)["text"] for line in (folder / "queries.jsonl").open()]
    with tempfile.TemporaryDirectory() as scratch:
        index = args.index or Path(scratch) / "index"
        if not index.exists():
            Index.build(folder / "corpus.jsonl", index).close()
        caveats = [
            "musique-dev: 9,329 passages, 776 questions, contexts of 1,500 tokens; replies are not kept (--cache-mb 0).",
            "wrk (1 thread, 16 connections, with a model 64) and the generator of 70 % run on the same processors as the service.",
        ]
        if args.endurance:
            about = "musique-dev, contexts of 1,500 tokens; default options, every question new, replies are kept."
            header("The service, at twice its capacity", [about])
            best = rate_of(index, questions, args.seconds)
            endurance(index, questions, best, 60 * args.endurance)
            return
        header("The service", caveats)
        with served(index) as (port, _, _):
            plain = [b"GET /health HTTP/1.1\r\nHost: localhost\r\n\r\n"]
            _, _, limit = asyncio.run(paced(port, plain, 20_000, 3))
        print(f"The generator at a set rate sends {limit:,.0f} requests a second to /health at most.\n")
        if args.model:
            small, corpus = Path(scratch) / "model", Path(scratch) / "corpus.jsonl"
            lines = (folder / "corpus.jsonl").read_text("utf-8").splitlines()[:2000]
            corpus.write_text("\n".join(lines) + "\n", "utf-8")
            Index.build(corpus, small, settings=Settings(embedder=f"native:{args.model}")).close()
            capacity(small, questions, "text", args.seconds, f"native:{args.model}")
            return
        best = capacity(index, questions, "walk", args.seconds, None)
        capacity(index, questions, "bm25", args.seconds, None)
        overload(index, questions, best, args.overload)
        large = None
        if args.large:
            large = Path(scratch) / "large"
            made(large, args.large, Settings())
        starts(index, large)


if __name__ == "__main__":
    os.environ.pop("KETRAG_TOKEN", None)
    main()
