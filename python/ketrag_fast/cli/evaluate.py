"""`ketrag eval DATASET`: scores retrieval on a data set in BEIR layout."""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ketrag_fast.cli import options, output
from ketrag_fast.cli.index import report_of
from ketrag_fast.config import FIELDS, Settings, parse
from ketrag_fast.errors import ConfigError, DocumentError

if TYPE_CHECKING:
    from ketrag_fast.eval import DataSet
    from ketrag_fast.index import Index

_MODES = "bm25,text,fused,knng,keyword,walk"
_BUDGETS = "12000,6000,3000"


def add(commands: Any, shared: argparse.ArgumentParser) -> None:
    """Declares the command."""
    parser = commands.add_parser(
        "eval",
        parents=[shared],
        help="score retrieval on a data set",
        description="Scores a data set (corpus.jsonl, queries.jsonl, qrels.tsv): a row for each mode and "
        "budget. Without -i the data set is indexed in a temporary folder with the options given.",
    )
    parser.add_argument("dataset", metavar="DATASET", help="folder of the data set")
    parser.add_argument("--mode", metavar="MODES", default=_MODES, help=f"a list (default {_MODES})")
    parser.add_argument("--budget", metavar="TOKENS", default=_BUDGETS, help=f"a list (default {_BUDGETS})")
    options.setting(
        parser.add_argument_group("how passages are found"), "top", "fill_policy", "oversize_policy"
    )
    options.setting(parser.add_argument_group("what is built without -i"), *options.BUILD_FLAGS)
    options.model(parser.add_argument_group("the embedding model"))
    parser.set_defaults(run=run, go_on="run the same command again")


def run(args: argparse.Namespace) -> int:
    """Runs the command."""
    modes = [Settings(mode=parse("mode", text)).mode for text in args.mode.split(",")]
    budgets = [Settings(budget=parse("budget", text)).budget for text in args.budget.split(",")]
    settings = options.build_settings_of(args)
    from ketrag_fast.eval import evaluate, load_dataset, render

    dataset = load_dataset(args.dataset)
    if not args.quiet:
        for warning in dataset.warnings:
            output.warn(warning)
    with _index(args, dataset) as index:
        rows = evaluate(index, dataset, modes, budgets, top=settings.top)
    if args.json:
        output.write_json(
            {
                "schema": "ketrag/eval/1",
                "dataset": str(args.dataset),
                "questions": len(dataset.questions),
                "rows": [row.as_dict() for row in rows],
            }
        )
    else:
        output.write(render(rows))
    return 0


@contextmanager
def _index(args: argparse.Namespace, dataset: DataSet) -> Iterator[Index]:
    from ketrag_fast.index import Index

    if args.index is not None:
        given = [name for name in options.flags(args) if FIELDS[name].metadata["concerns"] == "build"]
        if given:
            flag = given[0].replace("_", "-")
            raise ConfigError(f"--{flag} says how to build, but -i names an index that is built")
        with Index.open(Path(args.index), settings=options.query_settings_of(args)) as index:
            yield index
        return
    if dataset.corpus is None:
        raise DocumentError(f"{args.dataset} has no corpus.jsonl", hint="name an index that holds it with -i")
    import tempfile

    settings = options.build_settings_of(args)
    if settings.on_error == "stop":
        raise ConfigError("on_error: a data set is indexed with skip")
    with tempfile.TemporaryDirectory(prefix="ketrag-", ignore_cleanup_errors=True) as folder:
        progress = options.progress(args)
        with Index.build(
            [dataset.corpus], Path(folder) / "index", settings=settings, progress=progress
        ) as index:
            failures = report_of(index).failures
            if failures and not args.quiet:
                output.warn(f"{len(failures):,} passages could not be read:")
                output.list_failures(failures)
            yield index
