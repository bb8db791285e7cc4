"""The prediction of one build: each number with its basis."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from ketrag_fast.lab.cost.bill import Bill, usd_text

COUNTED: Final = "counted"
MEASURED: Final = "measured"
SAMPLED: Final = "from the sample"
TIMED: Final = "from timed calls"
PAST: Final = "from the last build"
RULES: Final = "from rules on the sample"


@dataclass(frozen=True, slots=True)
class Estimate:
    """Predicted cost of a build. None is unknown; `basis` names the source of each number.

    `seconds` is None if a part is unknown (an endpoint that was not called); `stages` has the known parts.
    `disk` and `memory` are bytes.
    """

    documents: int
    characters: int
    failures: int
    sampled: int
    chunks: int
    core_chunks: int
    calls: int
    tokens_in: int
    tokens_out: int
    embedding_tokens: int
    seconds: float | None
    stages: Mapping[str, float]
    disk: int
    memory: int | None
    bill: Bill
    settings: Mapping[str, Any]
    basis: Mapping[str, str] = field(default_factory=dict)
    notes: tuple[str, ...] = ()

    def to_json(self) -> dict[str, Any]:
        """Return the estimate as `ketrag estimate --json` prints it and an index stores it."""
        plain = (
            "documents",
            "characters",
            "failures",
            "sampled",
            "chunks",
            "core_chunks",
            "calls",
            "tokens_in",
            "tokens_out",
            "embedding_tokens",
            "seconds",
            "disk",
            "memory",
        )
        return {
            "schema": "ketrag/estimate/1",
            **{name: getattr(self, name) for name in plain},
            "stages": {name: round(seconds, 3) for name, seconds in self.stages.items()},
            "usd": self.bill.to_json(),
            "settings": dict(self.settings),
            "basis": dict(self.basis),
            "notes": list(self.notes),
        }


def time_text(seconds: float | None) -> str:
    """Return seconds as text: `2 h 05 min`, `41 s`, `0.8 s`."""
    if seconds is None:
        return "unknown"
    if seconds < 10:
        return f"{seconds:.1f} s"
    if seconds < 120:
        return f"{seconds:.0f} s"
    minutes = round(seconds / 60)
    return f"{minutes} min" if minutes < 120 else f"{minutes // 60} h {minutes % 60:02} min"


def size_text(count: float | None) -> str:
    """Return bytes as text: `1.2 GB`."""
    if count is None:
        return "unknown"
    return f"{count / 1e9:.1f} GB" if count >= 1e9 else f"{count / 1e6:.1f} MB"


def render(estimate: Estimate) -> str:
    """Return the estimate as text, one line per number."""
    e = estimate
    rows = [
        ("documents", f"{e.documents:,} ({e.characters:,} characters)", COUNTED),
        ("chunks", f"{e.chunks:,}", e.basis.get("chunks", "")),
        ("core chunks", f"{e.core_chunks:,}", e.basis.get("chunks", "")),
        ("calls of the language model", f"{e.calls:,}", e.basis.get("calls", "")),
        ("tokens in", f"{e.tokens_in:,}", e.basis.get("tokens_in", "")),
        ("tokens out", f"{e.tokens_out:,}", e.basis.get("tokens_out", "")),
        ("tokens embedded", f"{e.embedding_tokens:,}", e.basis.get("embedding_tokens", "")),
        ("time on this machine", time_text(e.seconds), _basis_of_time(e)),
        *((f"  {name}", time_text(seconds), "") for name, seconds in _largest(e.stages)),
        ("USD", usd_text(e.bill.total), e.basis.get("usd", "")),
        ("disk", size_text(e.disk), e.basis.get("disk", "")),
        ("memory", size_text(e.memory), e.basis.get("memory", "")),
    ]
    wide = [max(len(row[column]) for row in rows) for column in (0, 1)]
    lines = [f"{a:<{wide[0]}}  {b:>{wide[1]}}  {c}".rstrip() for a, b, c in rows]
    return "\n".join([*lines, *e.notes])


def _basis_of_time(estimate: Estimate) -> str:
    """Return where the time comes from, or what the rows of the stages below an unknown time are."""
    if estimate.seconds is not None:
        return estimate.basis.get("seconds", "")
    return "known parts:" if _largest(estimate.stages) else ""


def _largest(stages: Mapping[str, float]) -> list[tuple[str, float]]:
    """Return the stages that matter, the longest first."""
    ordered = sorted(stages.items(), key=lambda part: -part[1])
    return [(name, seconds) for name, seconds in ordered[:4] if seconds >= 0.05]
