"""`ketrag train SYSTEM`: train the weights of a system on judged queries."""

from __future__ import annotations

import time
from dataclasses import dataclass
from pathlib import Path

from ketrag_fast.apps.cli import options, output
from ketrag_fast.apps.cli.command import Command, argument, option
from ketrag_fast.errors import ConfigError
from ketrag_fast.systems.registry import registry


@dataclass(frozen=True, kw_only=True)
class Train(Command):
    """Train a system on the judged queries of a data set, over an index of its documents, and write the
    weights. The index does not change. Needs torch. A tenth of the queries is held out to find the best
    epoch. Run it again after an interruption to continue."""

    examples = (
        "ketrag train cg-rag dataset/ -i docs-index --out weights.safetensors",
        "ketrag train cg-rag dataset/ -i docs-index --epochs 5 --share 0.1",
        "ketrag retrieve QUERY --mode cg-rag-trained -o lesegr_weights=weights.safetensors",
    )
    system: str = argument("SYSTEM", f"system to train: {', '.join(registry().learning) or 'none installed'}")
    dataset: str = argument("DATASET", "folder in BEIR layout with qrels.tsv")
    out: str | None = option("FILE", "file for the weights (default: named by the system)")
    share: str = option("X", "share of the judged queries to use (default 1; paper: 0.1)", default="1")
    epochs: str = option("N", "maximum number of epochs (default 20)", default="20")
    rate: str = option("X", "learning rate (default 1e-4)", default="1e-4")
    hidden: str = option("N", "hidden dimension (default 256)", default="256")
    heads: str = option("N", "attention heads (default 4)", default="4")

    def run(self) -> int:
        """Train, and print how to use the weights."""
        path = options.one_path(self)
        from ketrag_fast.eval import load_dataset
        from ketrag_fast.index.training import train

        training = registry().trainable(self.system).train
        assert training is not None  # noqa: S101 - `trainable` checked
        out = Path(self.out or training.file)
        options.require_data_set(self.dataset)
        dataset = load_dataset(self.dataset)
        began = time.perf_counter()

        def on_epoch(number: int, of: int, loss: float, hit: float) -> None:
            if not self.quiet:
                output.warn(
                    f"epoch {number} of {of}: loss {loss:.4f}; Hit@1 of held-out queries {100 * hit:.0f} %"
                )

        with options.open_index(self) as index:
            outcome = train(
                index,
                self.system,
                [(q.text, q.gold) for q in dataset.questions if q.gold],
                out,
                share=_number("share", self.share, 0.0, 1.0),
                epochs=int(_number("epochs", self.epochs, 1, 10_000)),
                rate=_number("rate", self.rate, 1e-9, 1.0),
                hidden=int(_number("hidden", self.hidden, 4, 4096)),
                heads=int(_number("heads", self.heads, 1, 64)),
                on_epoch=on_epoch,
            )
        data = {
            "schema": "ketrag/training/1",
            "weights": str(out),
            "epochs": outcome.epochs,
            "best_epoch": outcome.best,
            "questions": outcome.questions,
            "without_gold": outcome.without_gold,
            "stopped": outcome.stopped,
            "seconds": round(time.perf_counter() - began, 1),
        }
        if self.json:
            output.write_json(data)
            return 0
        missed = outcome.without_gold
        lost = f"; {missed} without a judged unit among their candidates" if missed else ""
        ended = f" ({outcome.stopped})" if outcome.stopped else ""
        output.write(
            f"{out}: {outcome.questions} questions{lost}; {outcome.epochs} epochs{ended}, the best is "
            f"{outcome.best}; {data['seconds']} s\n"
            f"use it: ketrag retrieve -i {path} --mode {training.mode} -o {training.setting}={out} QUESTION"
        )
        return 0


def _number(name: str, text: str, low: float, high: float) -> float:
    try:
        found = float(text)
    except ValueError:
        found = float("nan")
    if not low <= found <= high:
        raise ConfigError(f"--{name} {text} must be a number between {low:g} and {high:g}")
    return found
