"""What the benchmarks share: the machine they ran on, the data, medians, and tables."""

from __future__ import annotations

import os
import platform
import statistics
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

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
        cpu += " (AVX-512)" if "avx512f" in flags else " (AVX2)" if "avx2" in flags else ""
    return (
        f"{cpu}, {os.cpu_count()} cores, {platform.system()}; Python {platform.python_version()}, "
        f"numpy {np.__version__}, ketrag-fast {ketrag_fast.__version__}"
    )


def header(title: str, caveats: Sequence[str]) -> None:
    """Prints what is measured, where, and what to beware of, before any number."""
    print(f"# {title}\n")
    print(f"Machine: {machine()}.")
    for caveat in caveats:
        print(f"- {caveat}")
    print()


def table(columns: Sequence[str], rows: Sequence[Sequence[Any]]) -> None:
    """Prints a Markdown table."""
    print("| " + " | ".join(columns) + " |")
    print("|" + "---|" * len(columns))
    for row in rows:
        print("| " + " | ".join(f"{x:.3g}" if isinstance(x, float) else str(x) for x in row) + " |")
    print(flush=True)


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


def median(values: Sequence[float]) -> float:
    """The median, which one slow run does not move."""
    return statistics.median(values)


def require_data(name: str) -> Path:
    """The folder of a question set, or a clear end."""
    folder = DATA / name
    if not folder.is_dir():
        sys.exit(f"{folder} is not here: set KETRAG_DATA to the folder of the question sets")
    return folder
