#!/usr/bin/env python3
"""Put small faults (mutants) into copies of the code, and list those that no test notices.

    .venv/bin/python .ci/mutants.py AREA [--only '*_restrict*']     an area of AREAS, or mutants of it
    .venv/bin/python .ci/mutants.py rust [--shard 2/10] [FILE ...]  files of rust/core, or a tenth

Run it by hand, with the environment of `make test`. It takes minutes to hours on one core. Each mutant of
Python runs only the tests that enter its function, until one fails; one run of all tests of the area finds
out which these are. An area with more mutants than `--most` is sampled, and the result says so; another
`--seed` chooses another sample. A mutant that survives must be killed by a test, or explained in mutants.txt
next to this file; the command fails if one is not. mutmut does not change module-level code and functions
with decorators, such as properties; `strict=` of `zip` is an assertion and stays as it is.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import re
import shutil
import subprocess
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, Final

ROOT: Final = Path(__file__).resolve().parent.parent
WORK: Final = ROOT / "target" / "mutants"
EXPLAINED: Final = Path(__file__).with_name("mutants.txt")
AREAS: Final[dict[str, tuple[str, tuple[str, ...]]]] = {
    "state": ("index/state.py", ("index/test_restricted_state.py", "index/test_unnoticed_faults.py")),
    "filters": (
        "base/filters/*.py",
        ("unit/test_filter_errors.py",),
    ),
    "unchanged": ("building/unchanged.py", ("unit/building/test_unchanged.py",)),
    "indexes": (
        "index/indexes.py,index/part_ranking.py,index/merged_results.py,query/shards.py",
        (
            "index/test_several_indexes.py",
            "index/test_indexes.py",
            "index/test_shards.py::test_hops_lead_from_index_to_index",
            "index/test_shards.py::test_filters_and_rights_hold_in_each_index",
            "index/test_shards.py::test_a_document_of_two_indexes_is_returned_once",
            "index/test_shards.py::test_a_late_index_is_named",
            "index/test_shards.py::test_a_query_of_function_words",
            *(
                f"index/test_remote_shards.py::test_{name}"
                for name in (
                    "services_rank_as_local_shards",
                    "hits_of_services_are_those_of_local_shards",
                    "a_service_next_to_an_open_index",
                    "one_service_answers_alone",
                    "settings_hold_for_services",
                    "a_change_between_the_calls_runs_the_query_again",
                    "a_service_that_changes_twice_is_left_out",
                    "wrong_replies_name_the_shard",
                    "requests_that_a_service_refuses",
                )
            ),
        ),
    ),
    "search": (
        "query/search.py",
        ("index/test_search_exactly.py", "index/test_search.py", "index/test_unnoticed_faults.py"),
    ),
    "storage": (
        "storage/*.py",
        (
            "unit/storage",
            "unit/test_locks.py",
            "unit/models/test_cache.py",
            "index/test_bundle.py",
            "index/test_delta_tools.py",
            "index/test_generations_kept.py",
            "index/test_history.py",
            "index/test_sources_trusted.py",
            "index/test_unchanged_files.py",
            "index/test_update.py",
        ),
    ),
    "building": (
        "building/*.py",
        (
            "unit/building",
            *(
                f"index/test_{name}.py"
                for name in (
                    *(
                        "update",
                        "unchanged_files",
                        "source_faults",
                        "first_build_settings",
                        "sources_trusted",
                    ),
                    *("freshness", "vectors_behind", "delta_levels", "delta_tools", "reuse", "dry_run"),
                    *("allowed", "merge", "merge_refused", "merge_stopped", "purge_faults"),
                )
            ),
        ),
    ),
}
"""For each area its modules below python/ketrag_fast, separated by commas, and the few, fast files and
folders below tests/ that guard them.
"""
_LEFT_OUT: Final = (
    "unit/storage/test_durable.py::test_removing_folders_imports_no_packers",
    "unit/models/test_cache.py::test_a_full_disk_while_codes_are_written_is_an_error_and_nothing_is_half_written",
    "unit/models/test_cache.py::test_rows_without_room_are_an_error",
    "index/test_freshness.py::test_what_cannot_be_read_keeps_its_documents",
)
"""Tests that fail without a mutant: mutmut imports more modules, is slower, and works in one process only."""
_RUST_DONE: Final = (0, 2, 3)
"""Exit codes of cargo-mutants after a whole run: all mutants caught, some missed, some timed out."""
RUST: Final = ("rust/core/src/rank/**", "rust/core/src/search/**")


def main() -> int:
    """Run the mutants of an area; return 1 if one survives without an explanation."""
    about = __doc__ or ""
    parser = argparse.ArgumentParser(description=about, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("area", choices=[*AREAS, "rust"])
    parser.add_argument("files", nargs="*", default=RUST, metavar="FILE")
    parser.add_argument("--only", metavar="PATTERN", help="run the mutants of Python with such names")
    parser.add_argument("--most", type=int, default=200, metavar="N", help="sample an area of more mutants")
    parser.add_argument("--seed", type=int, default=0, help="seed of the sample")
    parser.add_argument("--shard", default="0/1", metavar="K/N", help="run a part of the mutants of Rust")
    given = parser.parse_args()
    WORK.mkdir(parents=True, exist_ok=True)
    if given.area == "rust":
        count, survivors = run_rust(given.files, given.shard)
    else:
        count, survivors = run_python(given.area, [given.only] if given.only else [], given.most, given.seed)
    if not count:
        raise SystemExit("there are no such mutants")
    left = [one for one in survivors if not any(known.fullmatch(one) for known in read_explained())]
    print(f"{count} mutants, {len(survivors)} survived, {len(survivors) - len(left)} of these are explained")
    print(*left, sep="\n")
    return int(bool(left))


def read_explained() -> list[re.Pattern[str]]:
    """Return a pattern for each entry of the list: a line of this command, in which `...` is any text."""
    entries = [line for line in EXPLAINED.read_text().splitlines() if line and line[0] not in " #"]
    return [re.compile(".*".join(map(re.escape, entry.split("...")))) for entry in entries]


def run_python(area: str, only: list[str], most: int, seed: int) -> tuple[int, list[str]]:
    """Run mutmut over an area; return the number of mutants, and a line for each that survived."""
    modules, tests = AREAS[area]
    work = WORK / area
    shutil.rmtree(work, ignore_errors=True)
    work.mkdir()
    for name in ("python/ketrag_fast", "tests", "examples"):
        (work / Path(name).name).symlink_to(ROOT / name)
    options: dict[str, Any] = {
        "source_paths": ["ketrag_fast"],
        "only_mutate": [f"ketrag_fast/{one}" for one in modules.split(",")],
        "also_copy": ["examples"],
        "pytest_add_cli_args": [
            *("-p", "no:cacheprovider", "-p", "pytest_rerunfailures"),
            *(f"--deselect=tests/{name}" for name in _LEFT_OUT),
        ],
        "pytest_add_cli_args_test_selection": [f"tests/{name}" for name in tests],
        "process_isolation": "forkserver",  # threads of the core do not survive a fork
        "timeout_constant": 20.0,
        "timeout_multiplier": 2.0,
        "track_dependencies": False,
        "use_git_change_detection": False,
    }
    lines = "".join(f"{name} = {json.dumps(value)}\n" for name, value in options.items())
    (work / "pyproject.toml").write_text(f"{(ROOT / 'pyproject.toml').read_text()}\n[tool.mutmut]\n{lines}")
    # Plugins of pytest that other packages bring take seconds to import.
    os.environ |= {"PYTHONPATH": str(work / "mutants"), "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}
    os.chdir(work)
    if subprocess.run([sys.executable, "-c", "import mutmut"], capture_output=True).returncode:
        subprocess.run([sys.executable, "-m", "pip", "install", "--quiet", "mutmut==3.8.1"], check=True)
    return _run_mutmut(only, most, seed)


def _run_mutmut(only: list[str], most: int, seed: int) -> tuple[int, list[str]]:
    from mutmut import __main__ as mutmut  # reads the configuration in the working folder
    from mutmut.mutation import file_mutation, mutators
    from mutmut.mutation.diff_apply import get_diff_for_mutant
    from mutmut.state import state
    from mutmut.workers import isolation

    def change_key(node: Any) -> Iterator[Any]:
        """Change texts that are names or signs. Messages may be worded in another way."""
        if re.fullmatch(r"""(['"])[^\s'"]+\1""", node.value):
            yield node.with_changes(value=f"{node.value[0]}XX{node.value[1:]}")

    def change_argument(node: Any) -> Iterator[Any]:
        """Replace an argument by None, or drop one with a name. Without others a call fails at once."""
        for at, one in enumerate(node.args):
            before, behind = node.args[:at], node.args[at + 1 :]
            if one.star or is_assertion(one):
                continue
            if getattr(one.value, "value", "") != "None":
                yield node.with_changes(
                    args=[*before, one.with_changes(value=mutators.cst.Name("None")), *behind]
                )
            if one.keyword:
                yield node.with_changes(args=[*before, *behind])

    def is_assertion(node: Any) -> bool:
        """Return whether a node is the argument `strict` of `zip`, which a right caller cannot notice."""
        return isinstance(node, mutators.cst.Arg) and bool(node.keyword) and node.keyword.value == "strict"

    skip = file_mutation.MutationVisitor._skip_node_and_children
    file_mutation.MutationVisitor._skip_node_and_children = lambda visitor, node: (
        is_assertion(node) or skip(visitor, node)
    )
    changes = {
        mutators.operator_string: [(mutators.cst.SimpleString, change_key)],
        mutators.operator_arg_removal: [(mutators.cst.Call, change_argument)],
        mutators.operator_assignment: [],  # of None: nearly always an error at once
    }
    pairs = [pair for one in mutators.mutation_operators for pair in changes.get(one[1], [one])]
    mutators.mutation_operators[:] = pairs
    collect = mutmut.collect_source_file_mutation_data

    def sample(*, mutant_names: Any) -> tuple[list[Any], dict[str, Any]]:
        """Collect the mutants, or a sample of them. Both calls of this function return the same sample."""
        # Names of parametrised tests may have characters that mutmut cannot pass to pytest.
        for tests in state().tests_by_mangled_function_name.values():
            for name in [one for one in tests if "[" in one]:
                tests.remove(name)
                tests.add(name.partition("[")[0])
        every, data = collect(mutant_names=mutant_names)
        if len(every) <= most:
            return every, data
        print(f"a sample of {most} of {len(every)} mutants, chosen with the seed {seed}")
        return random.Random(seed).sample(sorted(every, key=lambda one: one[1]), most), data  # noqa: S311

    register = isolation.register_timeout

    def register_later(process: int, seconds: float) -> None:
        """Leave the limit to the processor's seconds, as other programs may have the processor."""
        register(process, min(10 * seconds, 300.0))

    isolation.register_timeout = register_later
    mutmut.collect_source_file_mutation_data = sample
    mutmut._run(only, max_children=1)
    mutants = sample(mutant_names=only)[0]
    survivors = []
    for file, name, code in mutants:
        if code == 255:  # mutmut calls it a timeout
            raise SystemExit(f"pytest does not find the tests of {name}: does one have an unusual name?")
        if mutmut.status_by_exit_code[code] in ("survived", "no tests", "suspicious"):
            changes = get_diff_for_mutant(name, path=file.path).splitlines()[2:]
            changed = [" ".join(line.split()) for line in changes if line[0] in "+-"]
            mangled = name.rpartition(".")[2].partition("__mutmut")[0]  # as x_function or xǁClassǁmethod
            function = re.sub("^x[_ǁ]", "", mangled).replace("ǁ", ".")
            survivors.append(f"python/{file.path} {function}: {' '.join(changed)}")
    return len(mutants), sorted(survivors)


def run_rust(files: Iterable[str], shard: str) -> tuple[int, list[str]]:
    """Run cargo-mutants with the tests of the crate `core`; return the number of mutants, and survivors."""
    tool = Path(sys.prefix) / "bin" / "cargo-mutants"
    if not tool.exists():
        install = ["cargo", "install", "--quiet", "--locked", "--debug", "--root", sys.prefix]
        subprocess.run([*install, "cargo-mutants@27.1.0"], check=True)  # noqa: S603 - ours
    command = [
        tool,
        "mutants",
        "--package",
        "ketrag-core",
        "--output",
        WORK,
        "--shard",
        shard,
        "--timeout",
        "120",
    ]
    for name in files:
        command += ["--file", name]
    code = subprocess.run([*command, "--", "--lib"], cwd=ROOT).returncode  # noqa: S603 - ours
    if code not in _RUST_DONE:
        raise SystemExit(f"cargo-mutants ended with {code}: do the tests pass without mutants?")
    outcomes = json.loads((WORK / "mutants.out" / "outcomes.json").read_text())["outcomes"]
    mutants = [one for one in outcomes if one["scenario"] != "Baseline"]
    missed = [one["scenario"]["Mutant"] for one in mutants if one["summary"] == "MissedMutant"]
    return len(mutants), sorted(map(_describe_rust, missed))


def _describe_rust(mutant: dict[str, Any]) -> str:
    line = (ROOT / mutant["file"]).read_text().splitlines()[mutant["span"]["start"]["line"] - 1]
    what = re.sub(r"^[^ ]+:\d+:\d+: ", "", mutant["name"])
    return f"{mutant['file']} {what}: {' '.join(line.split())}"


if __name__ == "__main__":
    sys.exit(main())
