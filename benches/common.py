"""Shared parts of the benchmarks: command line, machine, data, and the result that `all.py` stores."""

from __future__ import annotations

import argparse
import datetime as dt
import json
import os
import platform
import shutil
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from page import table_lines

ROOT = Path(__file__).resolve().parent.parent
DATA = Path(os.environ.get("KETRAG_DATA", ROOT.parent / "shared" / "data"))
MODEL = "all-MiniLM-L6-v2"
RESULT, PLACE = "KETRAG_BENCH_RESULT", "KETRAG_BENCH_PLACE"
"""Environment variables: the file that `publish` writes, else the tables are printed; the folder `WORK`."""
# Removed from the environment: commands that a benchmark runs would take them for settings.
_out = os.environ.pop(RESULT, None)
PEERS = os.environ.pop("KETRAG_PEERS", sys.executable)
"""The interpreter that has other programs to compare with."""
WORK = Path(os.environ.pop(PLACE, ROOT / "target" / "benches"))
"""Indexes that a later run may use again."""


def remove_incompatible(folder: Path) -> list[str]:
    """Remove the indexes in a folder whose format this version does not read; return their names.

    A benchmark builds what it does not find, and would fail on an index that an older version left.
    """
    from ketrag_fast.errors import IndexIncompatible, KetragError
    from ketrag_fast.storage.layout import Layout
    from ketrag_fast.storage.tables import Tables

    removed = []
    for place in sorted(folder.iterdir() if folder.is_dir() else ()):
        if not Layout(place).tables.is_file():
            continue
        try:
            Tables(Layout(place).tables, read_only=True).close()
        except IndexIncompatible:
            shutil.rmtree(place)
            removed.append(place.name)
        except KetragError:
            continue  # damaged in another way: the build reports how
    return removed


class Arguments(argparse.ArgumentParser):
    """A parser that removes the indexes of other formats as soon as a measurement is certain: not for `--help`."""

    def parse_args(self, *given: Any, **more: Any) -> Any:
        """Return the arguments; wrong ones and `--help` end the process before."""
        found = super().parse_args(*given, **more)
        for name in remove_incompatible(WORK):
            print(f"{name} has the format of another version: it is built again", file=sys.stderr)
        return found


def arguments(description: str | None) -> argparse.ArgumentParser:
    """Return a parser with the option `--smoke`."""
    parser = Arguments(description=description, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--smoke", action="store_true", help="tiny sizes: whether it runs, not how fast")
    return parser


def processor() -> str:
    """Return the processor's name with the instruction sets that matter here."""
    name = platform.processor() or platform.machine()
    info = Path("/proc/cpuinfo")
    if not info.exists():
        return name
    lines = info.read_text().splitlines()
    name = next((x.split(":", 1)[1].strip() for x in lines if x.startswith("model name")), name)
    flags = next((x for x in lines if x.startswith("flags")), "").split()
    known = {"avx2": "AVX2", "avx512f": "AVX-512", "avx512_bf16": "BF16", "amx_bf16": "AMX"}
    present = [shown for flag, shown in known.items() if flag in flags]
    return f"{name} ({', '.join(present)})" if present else name


def machine() -> str:
    """Return processor, cores, system and versions in one line."""
    import numpy as np

    cores = f"{os.cpu_count()} cores, {platform.system()}"
    return f"{processor()}, {cores}; Python {platform.python_version()}, numpy {np.__version__}"


def load() -> float:
    """Return the mean number of processes that wanted a core in the last minute."""
    return round(os.getloadavg()[0], 1) if hasattr(os, "getloadavg") else 0.0


def commit() -> str:
    """Return the short commit, with a plus sign if files differ from it."""

    def git(*argv: str) -> str:
        done = subprocess.run(["git", *argv], cwd=ROOT, capture_output=True, text=True, check=False)
        return done.stdout.strip()

    changed = git("status", "--porcelain", "--untracked-files=no", "--", "python", "rust")
    return (git("rev-parse", "--short", "HEAD") or "unknown") + ("+" if changed else "")


def result_table(title: str, columns: Sequence[str], rows: Sequence[Sequence[Any]]) -> dict[str, Any]:
    """Return a table of a result. A cell is text, a number, None, or (mean, low, high) with a 95 % interval."""
    return {"title": title, "columns": list(columns), "rows": [list(row) for row in rows]}


def publish(tables: Sequence[dict[str, Any]], data: str, notes: Sequence[str] = ()) -> None:
    """Store the result of a benchmark for the page, or print its tables if it was started by hand."""
    import ketrag_fast

    result = {
        "version": ketrag_fast.__version__,
        "date": dt.datetime.now(dt.UTC).date().isoformat(),
        "commit": commit(),
        "machine": machine(),
        "load": _load_at_start,
        "data": data,
        "notes": list(notes),
        "tables": list(tables),
    }
    if _out:
        Path(_out).write_text(json.dumps(result, ensure_ascii=False) + "\n", "utf-8")
        return
    origin = f"ketrag-fast {result['version']} at {result['commit']}, {result['date']}"
    print(f"{result['machine']}. {origin}, load {result['load']} at the start. {data}")
    print("\n".join(f"- {note}" for note in notes))
    for each in tables:
        print("\n" + "\n".join(table_lines(each)))


_load_at_start = load()


def header(title: str, notes: Sequence[str]) -> None:
    """Print the title of a tool's output with machine, date and notes."""
    when = dt.datetime.now(dt.UTC).date().isoformat()
    print(
        "\n".join(
            [
                f"# {title}",
                "",
                f"{machine()}. {when}, commit {commit()}.",
                *(f"- {note}" for note in notes),
                "",
            ]
        )
    )


def table(columns: Sequence[str], rows: Sequence[Sequence[Any]], about: str = "") -> None:
    """Print a table of a tool, below its title `about`."""
    print("\n".join(table_lines(result_table(about, columns, rows))) + "\n", flush=True)


def target(value: float, *, least: float | None = None, most: float | None = None) -> str:
    """Return the bound of a number, and whether it was missed, for a column `target`."""
    if least is not None:
        return f"at least {least:,g}" + ("" if value >= least else ": missed")
    assert most is not None
    return f"at most {most:,g}" + ("" if value <= most else ": missed")


def seconds(work: Callable[[], Any], runs: int = 5, warmup: int = 1) -> list[float]:
    """Return the wall-clock seconds of each of `runs` calls, after `warmup` calls that are not counted."""
    for _ in range(warmup):
        work()
    out = []
    for _ in range(runs):
        started = time.perf_counter()
        work()
        out.append(time.perf_counter() - started)
    return out


def steady(work: Callable[[], Any], runs: int = 5, most: int = 4) -> list[float]:
    """Return `seconds`, measured again up to `most` times while the median is 15 % above the least."""
    out = seconds(work, runs)
    for _ in range(most - 1):
        if statistics.median(out) <= 1.15 * min(out):
            break
        out += seconds(work, runs, warmup=0)
    return out


def median(values: Sequence[float]) -> float:
    """Return the median, which one slow run does not move."""
    return statistics.median(values)


def reuse_vectors(place: Path, name: str) -> None:
    """Copy the index that `quality.py NAME --model` left to `place`, unless there is one.

    Its cached vectors save a bench over the same passages the longest part of its time.
    """
    other = WORK / f"{name}-minilm"
    if other.is_dir() and not place.exists():
        shutil.copytree(other, place)


def require_data(name: str) -> Path:
    """Return the folder of a question set, or exit with a message."""
    folder = ROOT / "examples" / "polar" if name == "polar" else DATA / name
    if not folder.is_dir():
        sys.exit(f"{folder} does not exist: set KETRAG_DATA to the folder of the question sets")
    return folder


def require_model() -> Path:
    """Return the folder of all-MiniLM-L6-v2, or exit with a message."""
    from ketrag_fast.models.embedders.discovery import resolve

    folder = resolve(MODEL)
    if folder is None:
        sys.exit(f"{MODEL} is not on this machine: run `ketrag models install {MODEL}`")
    return folder
