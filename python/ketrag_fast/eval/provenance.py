"""The environment that a run depends on: machine, versions, seed, models, prompts, data."""

from __future__ import annotations

import os
import platform
from collections.abc import Mapping
from importlib import metadata
from typing import Any

import numpy as np

from ketrag_fast.base.processor import processor_name
from ketrag_fast.eval.metrics import RESAMPLES, SEED
from ketrag_fast.eval.question import DataSet

_PACKAGES = ("sentence-transformers", "transformers", "torch", "llama-cpp-python", "hnswlib")


def describe(dataset: DataSet, index: Mapping[str, Any], **more: Any) -> dict[str, Any]:
    """Return the record of a run. `index` is (a part of) the result of `Index.stats()`; `more` is added."""
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
    """Return processor, cores and system, without names of persons or places."""
    system = f"{platform.system()} {platform.machine()}"
    return {"processor": processor_name(), "cores": os.cpu_count(), "system": system}


def versions() -> dict[str, str]:
    """Return the versions of Python, NumPy, this package and the installed model packages."""
    found = {"python": platform.python_version(), "numpy": np.__version__}
    for package in ("ketrag-fast", *_PACKAGES):
        try:
            found[package] = metadata.version(package)
        except metadata.PackageNotFoundError:
            continue
    return found
