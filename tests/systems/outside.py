"""Packages with systems, laid out as pip leaves them: a module and its dist-info with an entry point."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from textwrap import dedent

import pytest

from ketrag_fast.base.config import catalogue
from ketrag_fast.systems.registry import GROUP, Registry, registry

Install = Callable[..., Registry]

WORKING = """
from dataclasses import dataclass
import numpy as np
from ketrag_fast.extending import *


@dataclass(frozen=True, kw_only=True)
class Own:
    own_start: int = setting(0, "the first unit", low=0)
    own_share: float = setting(0.5, "of the budget", concerns="query", low=0.0, high=1.0)


def run(inputs, settings, context):
    units = len(inputs["units"]["unit_tokens"])
    return {"order": np.arange(units, dtype=np.uint32)[::-1].copy()}


def rank(query, arrays):
    order = arrays["own"]["order"]
    return order, -np.arange(len(order), dtype=float)


OWN = Stage("own", 1, ("units",), ("own_start",), run, arrays={"order": array("u32", "units", below="units")})
BACKWARDS = Channel("backwards", ("units", "own"), "from the last unit on", rank=rank)
MODES = {"backwards": Recipe((Share("backwards"),), "from the last unit on")}
PARTS = dict(
    name="mine", source="nowhere", help="backwards", settings=Own, stages=(OWN,), channels=(BACKWARDS,),
    recipes=MODES, presets={"mine": {"mode": "backwards"}},
)
"""
"""A system that works, taken apart so that a test can replace one part: `SYSTEM = System(**PARTS)`."""


@pytest.fixture
def install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Install]:
    """`install(source, name=...)` lays out a package whose module is `source`; returns the new registry."""
    modules: list[str] = []

    def forget() -> None:
        registry.cache_clear()
        catalogue.cache_clear()

    def installed(source: str, name: str = "mine", *, whole: bool = False) -> Registry:
        """`source` goes after the system that works, unless it is the `whole` module."""
        site = tmp_path / f"site-{name}"
        about = site / f"ketrag_{name}-1.0.dist-info"
        about.mkdir(parents=True)
        text = dedent(source) if whole else f"{WORKING}\n{dedent(source)}\nSYSTEM = System(**PARTS)\n"
        (site / f"ketrag_{name}.py").write_text(text, "utf-8")
        (about / "METADATA").write_text(
            f"Metadata-Version: 2.1\nName: ketrag-{name}\nVersion: 1.0\n", "utf-8"
        )
        (about / "entry_points.txt").write_text(f"[{GROUP}]\n{name} = ketrag_{name}:SYSTEM\n", "utf-8")
        monkeypatch.syspath_prepend(str(site))
        modules.append(f"ketrag_{name}")
        forget()
        return registry()

    monkeypatch.delenv("KETRAG_EXTENSIONS", raising=False)
    yield installed
    for module in modules:
        sys.modules.pop(module, None)
    monkeypatch.undo()
    forget()
