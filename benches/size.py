"""Disk usage of the core: the wheel, and an installation with its dependencies."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from pathlib import Path

from common import ROOT, header, table


def megabytes(folder: Path) -> float:
    """All files below a folder."""
    return sum(p.stat().st_size for p in folder.rglob("*") if p.is_file()) / 1e6


def main() -> None:
    """Print the table."""
    header(
        "Size",
        [
            "The wheel as `pip wheel` builds it; the installation is `pip install --target` of that wheel with its",
            "dependencies, compiled Python files included. Needs the package registry and a Rust toolchain.",
        ],
    )
    with tempfile.TemporaryDirectory() as folder:
        wheels, target = Path(folder) / "wheels", Path(folder) / "target"
        pip = [sys.executable, "-m", "pip", "--disable-pip-version-check", "--quiet"]
        environment = {k: v for k, v in os.environ.items() if k != "PYTHONPATH"}
        build = [*pip, "wheel", "--no-deps", "-w", str(wheels), str(ROOT)]
        subprocess.run(build, check=True, capture_output=True, env=environment)
        wheel = next(wheels.glob("*.whl"))
        install = [*pip, "install", "--target", str(target), str(wheel)]
        subprocess.run(install, check=True, capture_output=True, env=environment)
        own = megabytes(target / "ketrag_fast")
        rows = [
            [f"wheel ({wheel.name})", f"{wheel.stat().st_size / 1e6:.1f}"],
            ["installed: the package itself", f"{own:.1f}"],
            ["installed: with its dependencies", f"{megabytes(target):.1f}"],
        ]
    table(["what", "MB"], rows)


if __name__ == "__main__":
    main()
