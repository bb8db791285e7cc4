"""Numbers without measure, nesting without end, files that are none: refused with a typed error."""

from __future__ import annotations

import os
import stat
import time
from pathlib import Path
from typing import Any

import pytest

from ketrag_fast import Document, Index, Settings
from ketrag_fast.apps.cli.main import main
from ketrag_fast.base.config import catalogue, from_environment, from_file, parse
from ketrag_fast.errors import ConfigError, InputError, KetragError
from ketrag_fast.eval.prices import read_prices

NESTED: Any = []
for _ in range(100_000):
    NESTED = [NESTED]
HUGE = (10**400, -(10**400), 10**5000, 2**64, 2**63, 1e308, -1e308, float("inf"), float("-inf"), float("nan"))
ODD = (*HUGE, NESTED, {"a": NESTED}, b"x", "x" * 10**6, object(), True, [1], ())


@pytest.mark.parametrize("name", sorted(catalogue()))
def test_any_value_is_a_setting_or_a_typed_error(name: str) -> None:
    for value in ODD:
        try:
            taken = Settings(**{name: value}).value(name)
        except KetragError as error:
            assert len(str(error)) <= 4001
        else:
            assert not isinstance(taken, (int, float)) or abs(taken) < 2**64


@pytest.mark.parametrize(
    "text", ["9" * 400, "9" * 5000, "1e308", "1e999", "nan", "-inf", "1" * 10**6, "[" * 10**5]
)
@pytest.mark.parametrize("name", sorted(n for n, s in catalogue().items() if {int, float} & set(s.types)))
def test_any_text_is_a_number_or_a_typed_error(name: str, text: str) -> None:
    with pytest.raises(ConfigError) as caught:
        found = parse(name, text)
        Settings(**{name: found})
        if abs(found) <= 2**63:  # a price in USD may be what it likes to be
            raise ConfigError("taken")
    assert len(str(caught.value)) <= 4001
    with pytest.raises(ConfigError):
        Settings(**from_environment({f"KETRAG_{name.upper()}": "9" * 5000}))


@pytest.fixture(scope="module")
def index(tmp_path_factory: pytest.TempPathFactory) -> Any:
    documents = [Document("d", "The Fram sailed under Nansen."), Document("e", "The Maud sailed.")]
    path = tmp_path_factory.mktemp("extreme") / "index"
    with Index.build(documents, path, settings=Settings(threads=1)) as made:
        yield made


@pytest.mark.parametrize("option", ["deadline", "budget", "top", "threads"])
def test_any_option_of_a_call_is_taken_or_a_typed_error(index: Index, option: str) -> None:
    for value in (*ODD, -1, "5"):
        try:
            found = index.retrieve_many(["Who sailed the Fram?"], **{option: value})
        except KetragError as error:
            assert len(str(error)) <= 4001
        else:
            assert len(found) == 1


def test_any_bound_of_an_answer_is_taken_or_a_typed_error(index: Index) -> None:
    for value in (*HUGE, NESTED, "5", 0, -1):
        for option in ("tokens", "seconds"):
            with pytest.raises((InputError, ConfigError)):
                index.ask("Who sailed the Fram?", **{option: value})


@pytest.mark.parametrize("question", [None, 5, b"Fram", ["Fram"], object()])
def test_a_question_is_a_text(index: Index, question: Any) -> None:
    with pytest.raises(InputError, match="of type"):
        index.retrieve(question)
    with pytest.raises(InputError):
        index.retrieve_many([question])


@pytest.mark.parametrize(
    "words",
    [
        ["--deadline", "1e308"],
        ["--deadline", "nan"],
        ["--budget", "9" * 5000],
        ["--budget", "9" * 400],
        ["--top", "1e9"],
        ["--threads", "9" * 100],
        ["--limit-usd", "1e999"],
    ],
)
def test_the_command_says_so(index: Index, words: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["retrieve", "-i", str(index.path), *words, "Who?"]) == 2
    assert "ketrag: error:" in capsys.readouterr().err


@pytest.mark.parametrize("read", [from_file, read_prices])
def test_a_file_of_settings_is_a_file(read: Any, tmp_path: Path) -> None:
    pipe = tmp_path / "pipe.toml"
    os.mkfifo(pipe)
    started = time.monotonic()
    for path in (pipe, Path("/dev/zero"), tmp_path):
        with pytest.raises(ConfigError):
            read(path)
    assert time.monotonic() - started < 60
    odd = tmp_path / "odd.toml"
    texts = ("a = " + "[" * 100_000, "budget = " + "9" * 5000, "budget = " + "9" * 400, "x" * 5_000_000)
    for text in (*texts, "budget = inf", "budget = nan", "\x00", "a = 1\na = 2"):
        odd.write_text(text)
        with pytest.raises(ConfigError) as caught:
            Settings(**read(odd))
        assert len(str(caught.value)) <= 4001


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def test_what_is_written_is_its_owner_s_alone(tmp_path: Path) -> None:
    made = tmp_path / "made"
    made.mkdir(mode=0o755)
    made.chmod(0o755)
    record = tmp_path / "record.jsonl"
    settings = Settings(threads=1, llm="heuristic", core_ratio=1.0, record=str(record))
    Index.build([Document("d", "Nansen sailed the Fram.")], made, settings=settings).close()
    assert mode(made) == 0o700
    assert mode(record) == 0o600
    record.chmod(0o644)
    settings = settings.having(retry_failed=True)
    Index.build([Document("e", "Amundsen sailed the Maud.")], made, settings=settings).close()
    assert mode(record) == 0o600
    made.chmod(0o750)  # who opens an index to others does so on purpose
    Index.build([Document("f", "Sverdrup sailed too.")], made, settings=Settings(threads=1)).close()
    assert mode(made) == 0o750
