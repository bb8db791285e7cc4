"""Mutated files: documents whose locators fit, or failures with a reason, in a process with limits."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from ketrag_fast.base.config import Settings
from ketrag_fast.building.sources import read_sources
from ketrag_fast.readers import FORMATS
from ketrag_fast.readers.file_types import BY_SUFFIX
from ketrag_fast.types import Failure
from ketrag_fast.types.locations import problem_of
from tests.process import python
from tests.support.parts import part
from tests.support.reading import read_all
from tests.support.samples import mutated, samples

_RUN = """
import random, resource, sys, zlib
from tests.support.reading import read_all
from tests.support.samples import mutated, samples
from ketrag_fast.types.locations import problem_of
resource.setrlimit(resource.RLIMIT_AS, (3_000_000_000, 3_000_000_000))
name, first, last = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
good = samples()[name]
read = failed = 0
for seed in range(first, last):
    data = mutated(good, random.Random(zlib.crc32(name.encode()) + seed))
    print(seed, flush=True)
    documents, failures = read_all(name, data)
    for one in documents:
        assert problem_of(one.locators, len(one.text)) is None, (seed, one.locators)
        assert isinstance(one.title, str) and isinstance(one.id, str) and one.id, seed
    assert documents or failures or not data, seed
    assert all(len(why) < 5000 for why in failures), seed
    read, failed = read + bool(documents), failed + bool(failures)
print("done", read, failed)
"""
NAMES = sorted(samples())
ROOT = Path(__file__).parents[3]


def attack(name: str, first: int, last: int) -> tuple[int, int]:
    """How many were read, and how many failed with a reason. A crash names the seed."""
    done = python(_RUN, name, str(first), str(last), cwd=ROOT, timeout=3000)
    lines = done.out.split("\n")
    assert done.code == 0, (
        f"{name}, seed {lines[-2] if len(lines) > 1 else '?'}: {done.code}\n{done.err[-2000:]}"
    )
    _, read, failed = lines[-2].split()
    return int(read), int(failed)


@pytest.mark.parametrize("name", NAMES)
def test_samples_are_read(name: str) -> None:
    for module in ("pypdfium2", "resiliparse", "tree_sitter", "xlrd", "olefile"):
        part(module, "documents,code")
    documents, failures = read_all(name, samples()[name])
    assert documents
    assert all("--ocr" in why for why in failures)


@pytest.mark.parametrize("name", NAMES)
def test_mutated_files(name: str) -> None:
    for module in ("pypdfium2", "resiliparse", "tree_sitter", "xlrd", "olefile"):
        part(module, "documents,code")
    read, failed = attack(name, 0, 60)
    assert read + failed >= (54 if name.endswith((".cpp", ".py", ".rs")) else 58)  # empty code is no failure


@pytest.mark.soak
@pytest.mark.parametrize("name", NAMES)
def test_very_many_mutated_files(name: str) -> None:
    attack(name, 1000, 11_000)


def test_every_kind_has_a_sample() -> None:
    kinds = {BY_SUFFIX.get(f".{name.rpartition('.')[2]}", "man") for name in NAMES} | {"text"}
    codes = {"javascript", "tsx", "java", "go", "c", "code"}
    assert set(FORMATS) - kinds - codes == {
        *("table", "jsonl", "old office", "plain html", "plain code", "source", "source markdown"),
        *("session", "chat", "irc"),
    }


def is_text(data: bytes) -> bool:
    try:
        return b"\0" not in data and bool(data.decode().strip())
    except UnicodeDecodeError:
        return False


def test_a_whole_folder_of_mutated_files_in_processes(tmp_path: Path) -> None:
    """As a build reads them: each ends as a document or as a failure, under its own name."""
    chance = random.Random(7)
    for name, data in samples().items():
        for number in range(3):
            (tmp_path / f"{number}-{name}").write_bytes(mutated(data, chance))
    found = list(read_sources(str(tmp_path), Settings(read_memory=800, read_seconds=60)))
    named = {(item.document if isinstance(item, Failure) else item.id).split("/")[0] for item in found}
    files = {path.name for path in tmp_path.iterdir()}
    assert {name.rpartition(":")[0] if name.rpartition(":")[2].isdigit() else name for name in named} <= files
    for path in tmp_path.iterdir():
        is_named = path.name in named or any(name.startswith(f"{path.name}:") for name in named)
        # A man page without its format is a file of an unknown suffix: only texts are read then.
        assert is_named or (path.suffix == ".1" and not is_text(path.read_bytes())), path.name
    for item in found:
        if not isinstance(item, Failure):
            assert problem_of(item.locators, len(item.text)) is None


def test_other_files_are_left_alone(tmp_path: Path) -> None:
    """Random bytes under names that nobody reads are passed over, whatever they begin with."""
    chance = random.Random(3)
    for number in range(50):
        head = chance.choice((b"", b"PK\3\4", b"\x1f\x8b", b"<x", b"\x89PNG", b"\xd0\xcf\x11\xe0"))
        (tmp_path / f"{number}.bin").write_bytes(head + chance.randbytes(chance.randrange(1, 2000)))
    assert list(read_sources(str(tmp_path), Settings())) == []
