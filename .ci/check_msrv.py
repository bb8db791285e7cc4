"""Check that no crate of the workspace needs a newer Rust than Cargo.toml promises (`rust-version`).

    python .ci/check_msrv.py

It compares the versions that the crates declare. clippy's `incompatible_msrv` does the same for the standard
library, and a job of .github/workflows/test.yml compiles with that version.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tomllib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

ROOT: Final = Path(__file__).resolve().parents[1]
Version = tuple[int, ...]


def promised() -> str:
    """Return the oldest Rust that compiles the workspace, as Cargo.toml has it."""
    manifest = tomllib.loads((ROOT / "Cargo.toml").read_text("utf-8"))
    return str(manifest["workspace"]["package"]["rust-version"])


def parse(text: str) -> Version:
    """Return a version as three numbers."""
    numbers = [int(number) for number in text.split(".")]
    return (*numbers, *[0] * (3 - len(numbers)))


def too_new(packages: Sequence[Mapping[str, Any]], oldest: str) -> list[str]:
    """Return the packages that declare a newer `rust_version` than `oldest`, with that version."""
    declared = [(p["name"], p["version"], p["rust_version"]) for p in packages if p.get("rust_version")]
    return [
        f"{name} {version} needs Rust {rust}"
        for name, version, rust in declared
        if parse(rust) > parse(oldest)
    ]


def main() -> int:
    """Print the crates that need a newer Rust; return 1 if there are any."""
    command = ["cargo", "metadata", "--format-version", "1", "--locked"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)  # noqa: S603
    if done.returncode != 0:
        raise SystemExit(f"cargo metadata failed: {done.stderr.strip()}")
    oldest = promised()
    faults = too_new(json.loads(done.stdout)["packages"], oldest)
    for fault in faults:
        sys.stderr.write(f"{fault}, but Cargo.toml promises {oldest}\n")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
