"""Install a wheel or a source distribution as a user does, and use it.

    python .ci/smoke_test.py dist/ketrag_fast-0.1.0-cp311-abi3-manylinux2014_x86_64.whl
    python .ci/smoke_test.py dist/ketrag_fast-0.1.0.tar.gz           # compiles, so it needs a Rust toolchain

It makes a new virtual environment of the Python that runs it, in a temporary folder outside the checkout. For
a wheel no folder with cargo or rustc is on PATH, and no package is compiled. It prints the sizes, the digest
of the index and the processor time of imports, which grows on a busy machine. It exits with 1 if a command
fails, a result is wrong, or the installation is too large.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).resolve().parents[1]
POLAR: Final = ROOT / "examples" / "polar"
ANSWER: Final = "Klerksdorp"
"""In the context for the demo's question."""
LARGEST_INSTALL: Final = 80
"""Maximum MB of the package with its dependencies, without the bytecode that pip compiles from them."""
RUNS: Final = 20
IMPORTS: Final = {
    "import numpy": "numpy",
    "import numpy, ketrag_fast": "numpy, ketrag_fast",
    "from ketrag_fast import Index": "ketrag_fast.index",
}
IMPORT: Final = "import time; t = time.process_time(); import {}; print(time.process_time() - t)"
LOCATION: Final = "import ketrag_fast, sys; print(ketrag_fast.__file__, ketrag_fast.__version__)"


def clean_environment(rust: bool) -> dict[str, str]:
    """Return the environment without Python's settings; unless `rust`, also without Rust on PATH."""
    dropped = ("PYTHON", "VIRTUAL_ENV", "CARGO", "RUST", "MATURIN", "KETRAG_")
    kept = {name: value for name, value in os.environ.items() if rust or not name.startswith(dropped)}
    kept = {name: value for name, value in kept.items() if not name.startswith(("PYTHON", "VIRTUAL_ENV"))}
    if not rust:
        folders = kept["PATH"].split(os.pathsep)
        tools = ("cargo", "rustc")
        free = [folder for folder in folders if not any(shutil.which(tool, path=folder) for tool in tools)]
        kept["PATH"] = os.pathsep.join(free)
    return kept


def run(command: list[str], environment: Mapping[str, str], folder: Path) -> str:
    """Run a command outside the checkout and return its output; end this program if it fails."""
    done = subprocess.run(  # noqa: S603 - our own commands
        command, cwd=folder, env=environment, capture_output=True, text=True, encoding="utf-8", check=False
    )
    if done.returncode != 0:
        raise SystemExit(f"{' '.join(command)}: exit code {done.returncode}\n{done.stdout}{done.stderr}")
    return done.stdout


def installed_size(python: str, environment: Mapping[str, str], folder: Path) -> tuple[float, float]:
    """Return the MB of files in site-packages and of their bytecode, without pip and setuptools."""
    code = "import sysconfig; print(sysconfig.get_path('platlib'))"
    packages = Path(run([python, "-c", code], environment, folder).strip())
    tools = ("pip", "setuptools", "_distutils_hack", "pkg_resources")
    kept = [path for path in packages.iterdir() if not path.name.startswith(tools)]
    files = [file for path in kept for file in (path, *path.rglob("*")) if file.is_file()]
    bytecode = sum(file.stat().st_size for file in files if file.suffix == ".pyc") / 1e6
    return sum(file.stat().st_size for file in files) / 1e6 - bytecode, bytecode


def import_times(python: str, environment: Mapping[str, str], folder: Path) -> dict[str, list[float]]:
    """Return sorted milliseconds of processor time for each import, measured in turn."""
    times: dict[str, list[float]] = {name: [] for name in IMPORTS}
    for _ in range(RUNS):
        for name, modules in IMPORTS.items():
            seconds = run([python, "-c", IMPORT.format(modules)], environment, folder)
            times[name].append(1000 * float(seconds))
    return {name: sorted(values) for name, values in times.items()}


def use(python: str, ketrag: str, environment: Mapping[str, str], folder: Path) -> None:
    """Index the demo's articles and query them; end this program if the answer is missing."""
    articles = folder / "articles"
    shutil.copytree(POLAR / "articles", articles)
    run([ketrag, "index", str(articles), "-i", "index", "-q"], environment, folder)
    question = (POLAR / "question.txt").read_text("utf-8").strip()
    context = run([ketrag, "retrieve", "-i", "index", "--budget", "600", question], environment, folder)
    if ANSWER not in context:
        raise SystemExit(f"ketrag retrieve does not find {ANSWER!r}:\n{context}")
    code = (
        "import sys\nfrom ketrag_fast import Index\nwith Index.open('index') as index:\n"
        "    print(index.retrieve(sys.argv[1], budget=600).text)"
    )
    if ANSWER not in run([python, "-c", code, question], environment, folder):
        raise SystemExit(f"Index.retrieve does not find {ANSWER!r}")
    stats = run([ketrag, "stats", "-i", "index"], environment, folder)
    digest = [line for line in stats.splitlines() if "digest" in line]
    print(*(line.strip() for line in digest), sep="\n")


def main() -> int:
    """Install, use and measure."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("file", type=Path, metavar="FILE")
    file = parser.parse_args().file.resolve()
    wheel = file.suffix == ".whl"
    with tempfile.TemporaryDirectory(prefix="ketrag-smoke-") as temporary:
        folder = Path(temporary)
        environment = clean_environment(rust=not wheel)
        run([sys.executable, "-m", "venv", str(folder / "venv")], environment, folder)
        scripts = folder / "venv" / ("Scripts" if os.name == "nt" else "bin")
        python, ketrag = str(scripts / "python"), str(scripts / "ketrag")
        only = ["--only-binary", ":all:"] if wheel else ["--no-binary", "ketrag-fast"]
        install = [python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", *only, str(file)]
        run(install, environment, folder)
        print(run([python, "-c", LOCATION], environment, folder).strip().replace(str(folder), "TEMPORARY"))
        print(run([ketrag, "--version"], environment, folder).strip())
        use(python, ketrag, environment, folder)
        size, bytecode = installed_size(python, environment, folder)
        times = import_times(python, environment, folder)
    print(f"file: {file.stat().st_size / 1e6:.1f} MB")
    print(
        f"installed with dependencies: {size:.1f} MB (maximum {LARGEST_INSTALL}), bytecode {bytecode:.1f} MB"
    )
    for name, values in times.items():
        print(f"{name}: median {values[RUNS // 2]:.0f} ms, least {values[0]:.0f} ms of processor time")
    if size > LARGEST_INSTALL:
        raise SystemExit(f"the installation has {size:.1f} MB, maximum {LARGEST_INSTALL}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
