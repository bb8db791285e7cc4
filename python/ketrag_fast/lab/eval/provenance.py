"""What a run depended on: machine, versions, seed, models, prompts, data. A number without it is hearsay."""

from __future__ import annotations

import os
import platform
from collections.abc import Mapping
from importlib import metadata
from pathlib import Path
from typing import Any

import numpy as np

from ketrag_fast.lab.eval.metrics import RESAMPLES, SEED
from ketrag_fast.lab.eval.question import DataSet

_PACKAGES = ("sentence-transformers", "transformers", "torch", "llama-cpp-python", "hnswlib")


def describe(dataset: DataSet, index: Mapping[str, Any], **more: Any) -> dict[str, Any]:
    """`index` is what `Index.stats()` returns, or the part of it that is known; `more` is added as it is."""
    kept = ("digest", "generation", "settings", "backends", "models", "prompts")
    return {
        "machine": machine(),
        "versions": versions(),
        "seed": SEED,
        "resamples": RESAMPLES,
        "dataset": {
            "name": dataset.folder.name,
            "questions": len(dataset.questions),
            "fingerprint": dataset.fingerprint,
        },
        "index": {name: index[name] for name in kept if name in index},
        **more,
    }


def machine() -> dict[str, Any]:
    """Processor, cores and system; nothing that names a person or a place."""
    name = platform.processor() or platform.machine()
    info = Path("/proc/cpuinfo")
    if info.exists():
        lines = info.read_text("utf-8", "replace").splitlines()
        name = next((x.split(":", 1)[1].strip() for x in lines if x.startswith("model name")), name)
    return {"processor": name, "cores": os.cpu_count(), "system": f"{platform.system()} {platform.machine()}"}


def versions() -> dict[str, str]:
    """Of Python, numpy, this package and those of the models that are installed."""
    found = {"python": platform.python_version(), "numpy": np.__version__}
    for package in ("ketrag-fast", *_PACKAGES):
        try:
            found[package] = metadata.version(package)
        except metadata.PackageNotFoundError:
            continue
    return found
