"""`ketrag train SYSTEM`: train the weights of a system on judged queries."""

from __future__ import annotations

import argparse
import time
from pathlib import Path
from typing import Any

from ketrag_fast.apps.cli import options, output
from ketrag_fast.errors import ConfigError
from ketrag_fast.systems.registry import registry


def declare(commands: Any, shared: argparse.ArgumentParser) -> None:
    """Declare the command."""
    parser = commands.add_parser(
        "train",
        parents=[shared],
        description="Train a system on the judged queries of a data set, over an index of its documents, "
        "and write the weights. The index does not change. Needs torch. A tenth of the "
        "queries is held out to find the best epoch. Run it again after an interruption to "
        "continue.",
        examples=(
            "ketrag train cg-rag dataset/ -i docs-index --out weights.safetensors",
            "ketrag train cg-rag dataset/ -i docs-index --epochs 5 --share 0.1",
            "ketrag retrieve QUERY --mode cg-rag-trained -o lesegr_weights=weights.safetensors",
        ),
    )
    systems = ", ".join(registry().learning) or "none installed"
    parser.add_argument("system", metavar="SYSTEM", help=f"system to train: {systems}")
    parser.add_argument("dataset", metavar="DATASET", help="folder in BEIR layout with qrels.tsv")
    parser.add_argument("--out", metavar="FILE", help="file for the weights (default: named by the system)")
    parser.add_argument(
        "--share", metavar="X", default="1", help="share of the judged queries to use (default 1; paper: 0.1)"
    )
    parser.add_argument("--epochs", metavar="N", default="20", help="maximum number of epochs (default 20)")
    parser.add_argument("--rate", metavar="X", default="1e-4", help="learning rate (default 1e-4)")
    parser.add_argument("--hidden", metavar="N", default="256", help="hidden dimension (default 256)")
    parser.add_argument("--heads", metavar="N", default="4", help="attention heads (default 4)")
    parser.set_defaults(run=run, go_on="run the same command again")


def run(args: argparse.Namespace) -> int:
    """Run the command."""
    path, _ = options.index_path(args)
    from ketrag_fast.eval import load_dataset
    from ketrag_fast.index import Index
    from ketrag_fast.index.training import train

    training = registry().trainable(args.system).train
    assert training is not None  # noqa: S101 - `trainable` checked
    out = Path(args.out or training.file)
    options.require_data_set(args.dataset)
    dataset = load_dataset(args.dataset)
    began = time.perf_counter()

    def on_epoch(number: int, of: int, loss: float, hit: float) -> None:
        if not args.quiet:
            output.warn(
                f"epoch {number} of {of}: loss {loss:.4f}; Hit@1 of held-out queries {100 * hit:.0f} %"
            )

    with Index.open(path, settings=options.query_settings_of(args)) as index:
        outcome = train(
            index,
            args.system,
            [(q.text, q.gold) for q in dataset.questions if q.gold],
            out,
            share=_number("share", args.share, 0.0, 1.0),
            epochs=int(_number("epochs", args.epochs, 1, 10_000)),
            rate=_number("rate", args.rate, 1e-9, 1.0),
            hidden=int(_number("hidden", args.hidden, 4, 4096)),
            heads=int(_number("heads", args.heads, 1, 64)),
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
    if args.json:
        output.write_json(data)
    else:
        lost = (
            f"; {outcome.without_gold} without a judged unit among their candidates"
            if outcome.without_gold
            else ""
        )
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
