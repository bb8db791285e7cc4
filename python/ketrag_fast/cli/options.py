"""Options that several commands share, and how they become settings."""

from __future__ import annotations

import argparse
import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ketrag_fast.config import FIELDS, Settings, from_environment, from_file, names, parse

if TYPE_CHECKING:
    from ketrag_fast.progress import Callback, Kind

BUILD_FLAGS = (
    "system",
    "embedder",
    "chunk_tokens",
    "overlap",
    "split_level",
    "cut",
    "encoding",
    "language",
    "core_ratio",
    "core_selection",
    "knn_k",
    "max_df_ratio",
    "builtin_dim",
    "keyword_norm",
    "ann",
    "ann_from",
    "knn_ann_from",
    "words",
    "keyword_mean",
    "core_unit",
    "core_rounding",
    "core_rank",
    "knn_repeats",
    "knn_zero",
    "nltk_data",
    "seed",
    "fallback_encoding",
)
TABLE_FLAGS = ("kg_share", "rollover", "seed_entities", "tables")
"""How the tables of the skeleton are made for a question."""
READING_FLAGS = (
    "llm",
    "entity_types",
    "gleanings",
    "terse_replies",
    "rewire",
    "summaries",
    "llm_tokens",
    "llm_seconds",
    "llm_slots",
    "llm_context",
    "llm_usd_per_million",
    "llm_usd_per_million_out",
    "on_barren",
    "record",
)
_METAVARS = {int: "N", float: "X"}


def common() -> argparse.ArgumentParser:
    """The options that every command takes."""
    parser = argparse.ArgumentParser(add_help=False)
    group = parser.add_argument_group("common options")
    group.add_argument(
        "-i", "--index", metavar="DIR", help="folder of the index (else $KETRAG_INDEX, else ./.ketrag)"
    )
    group.add_argument(
        "--config", metavar="FILE", help="settings file (else $KETRAG_CONFIG, else ./ketrag.toml)"
    )
    group.add_argument("--json", action="store_true", help="print JSON")
    group.add_argument(
        "--progress",
        choices=("auto", "bar", "json", "none"),
        default="auto",
        help="how progress is shown on stderr (auto: a bar on a terminal)",
    )
    setting(group, "threads", "verify")
    group.add_argument(
        "--offline",
        dest="set_offline",
        action="store_const",
        const="true",
        help=FIELDS["offline"].metadata["help"],
    )
    loudness = group.add_mutually_exclusive_group()
    loudness.add_argument("-q", "--quiet", action="store_true", help="say nothing on stderr but errors")
    loudness.add_argument("-v", "--verbose", action="store_true", help="say more on stderr")
    return parser


def setting(group: Any, *wanted: str) -> None:
    """One flag for each setting, with its help and default."""
    for name in wanted:
        spec = FIELDS[name]
        default = "none" if spec.default is None else spec.default
        group.add_argument(
            "--" + name.replace("_", "-"),
            dest=f"set_{name}",
            metavar=_METAVARS.get(type(spec.default), "VALUE"),
            help=f"{spec.metadata['help']} (default {default})",
        )


def model(group: Any) -> None:
    """How an embedding model is found and computes."""
    setting(group, "precision", "device", "limit_usd", "usd_per_million")
    group.add_argument(
        "--allow-download",
        dest="set_allow_download",
        action="store_const",
        const="true",
        help=FIELDS["allow_download"].metadata["help"],
    )


def reading(group: Any) -> None:
    """What reads the core chunks, and how."""
    setting(group, *READING_FLAGS)
    group.add_argument(
        "--retry-failed",
        dest="set_retry_failed",
        action="store_const",
        const="true",
        help=FIELDS["retry_failed"].metadata["help"],
    )


def writer(group: Any) -> None:
    """The model that mode hyde asks."""
    group.add_argument(
        "--llm", dest="set_writer", metavar="SPEC", help=FIELDS["writer"].metadata["help"] + " (default none)"
    )


def flags(args: argparse.Namespace) -> dict[str, Any]:
    """The settings given as flags."""
    given = {name: getattr(args, f"set_{name}", None) for name in FIELDS}
    return {name: parse(name, text) for name, text in given.items() if text is not None}


def asked(args: argparse.Namespace) -> tuple[dict[str, Any], dict[str, Any], dict[str, Any]]:
    """The settings from flags, environment and file, each by itself."""
    file = args.config or os.environ.get("KETRAG_CONFIG")
    return flags(args), from_environment(os.environ), from_file(Path(file) if file else None)


def build_settings_of(args: argparse.Namespace) -> Settings:
    """All that was asked for, as settings; what was not is left to the index and the defaults."""
    flag, environment, file = asked(args)
    given = {**file, **environment, **flag}
    if given.get("writer", "") is None:  # "none" was said: no model, not the one that read the chunks
        given["writer"] = "none"
    return Settings(**given)


def query_settings_of(args: argparse.Namespace) -> Settings:
    """The same for a command that does not build: how the index was made is its own affair."""
    given = build_settings_of(args).given
    used = {*names("query", "run"), "embedder"}
    return Settings(**{name: value for name, value in given.items() if name in used})


def index_path(args: argparse.Namespace) -> tuple[Path, str]:
    """The folder of the index and where its name comes from."""
    if args.index is not None:
        return Path(args.index), "flag"
    named = os.environ.get("KETRAG_INDEX")
    return (Path(named), "environment") if named else (Path(".ketrag"), "default")


def progress(args: argparse.Namespace) -> Callback | None:
    """Where progress goes."""
    from ketrag_fast.progress import sink

    kind: Kind = "none" if args.quiet and args.progress == "auto" else args.progress
    return sink(kind, sys.stderr)
