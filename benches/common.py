"""What the benchmarks share: the machine they ran on, the data, medians, and tables."""

from __future__ import annotations

import datetime as dt
import os
import platform
import statistics
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from targets import with_targets

ROOT = Path(__file__).resolve().parent.parent
DATA = Path(os.environ.get("KETRAG_DATA", ROOT.parent / "shared" / "data"))


def machine() -> str:
    """Processor, cores, system and versions in one line."""
    import numpy as np

    import ketrag_fast

    cpu = platform.processor() or platform.machine()
    info = Path("/proc/cpuinfo")
    if info.exists():
        lines = info.read_text().splitlines()
        cpu = next((x.split(":", 1)[1].strip() for x in lines if x.startswith("model name")), cpu)
        flags = next((x for x in lines if x.startswith("flags")), "")
        known = {"avx2": "AVX2", "avx512f": "AVX-512", "avx512_bf16": "BF16", "amx_bf16": "AMX"}
        has = [name for flag, name in known.items() if flag in flags.split()]
        cpu += f" ({', '.join(has)})" if has else ""
    return (
        f"{cpu}, {os.cpu_count()} cores, {platform.system()}; Python {platform.python_version()}, "
        f"numpy {np.__version__}, ketrag-fast {ketrag_fast.__version__}"
    )


_header: list[str] = []


def header(title: str, caveats: Sequence[str]) -> None:
    """Prints what is measured, where and when, and what to beware of, before any number."""
    busy = os.getloadavg()[0] if hasattr(os, "getloadavg") else 0.0
    if busy > 0.5:
        caveats = [*caveats, f"Other processes were running: the load was {busy:.1f} at the start."]
    when = dt.datetime.now(dt.UTC).date().isoformat()
    lines = [f"# {title}", "", f"Machine: {machine()}. {when}.", *(f"- {caveat}" for caveat in caveats), ""]
    _header[:] = lines
    print("\n".join(lines))


def table(columns: Sequence[str], rows: Sequence[Sequence[Any]], about: str = "") -> None:
    """Print a Markdown table, with the targets of its numbers; `about` is the text above it if a target needs
    it.
    """
    cells = [[f"{x:.3g}" if isinstance(x, float) else str(x) for x in row] for row in rows]
    script = Path(sys.argv[0]).name
    print("\n".join(markdown(*with_targets(script, "\n".join([*_header, about]), columns, cells))))
    print(flush=True)


def markdown(columns: Sequence[str], rows: Sequence[Sequence[str]]) -> list[str]:
    """The lines of a table."""
    lines = ["| " + " | ".join(columns) + " |", "|" + "---|" * len(columns)]
    return lines + ["| " + " | ".join(row) + " |" for row in rows]


def seconds(work: Callable[[], Any], runs: int = 5, warmup: int = 1) -> list[float]:
    """Wall-clock seconds of each of `runs` calls, after `warmup` calls that are not counted."""
    for _ in range(warmup):
        work()
    out = []
    for _ in range(runs):
        started = time.perf_counter()
        work()
        out.append(time.perf_counter() - started)
    return out


def steady(work: Callable[[], Any], runs: int = 5, most: int = 4) -> list[float]:
    """As `seconds`, and again (at most `most` times) while the median is 15 % above the least: other work disturbed it."""
    out = seconds(work, runs)
    for _ in range(most - 1):
        if statistics.median(out) <= 1.15 * min(out):
            break
        out += seconds(work, runs, warmup=0)
    return out


def median(values: Sequence[float]) -> float:
    """The median, which one slow run does not move."""
    return statistics.median(values)


def require_data(name: str) -> Path:
    """The folder of a question set, or a clear end."""
    folder = DATA / name
    if not folder.is_dir():
        sys.exit(f"{folder} is not here: set KETRAG_DATA to the folder of the question sets")
    return folder
