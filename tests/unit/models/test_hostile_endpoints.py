"""Hostile endpoints: every call ends within its time, typed error or not, and shows no key anywhere."""

from __future__ import annotations

import json
import logging
import socket
import sys
import threading
import time
import traceback
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import pytest

from ketrag_fast import Document, Index, Settings
from ketrag_fast.apps.cli.main import main
from ketrag_fast.errors import DeadlineExceeded, KetragError
from ketrag_fast.models.embedders.openai import OpenAIEmbedder
from ketrag_fast.models.http.endpoints import RetryPolicy
from ketrag_fast.models.llms.openai import OpenAIModel
from ketrag_fast.models.llms.protocol import Limits, Prompt
from ketrag_fast.models.llms.registry import ModelOptions
from tests.support.hostile import (
    ENDLESS,
    HOLD,
    KEY,
    SCENARIOS,
    Asked,
    Hostile,
    Play,
    Slowly,
    generated,
    good,
    reply,
)

pytestmark = pytest.mark.usefixtures("loopback", "key")

DEADLINE = 1.0
LONGEST = 50 * DEADLINE
"""What waits here ends by itself after a minute at the earliest, most of it never: a call that is back before
has watched the clock, however slow the machine is.
"""
QUESTION = "Who sailed the Fram?"
TEXTS = ("The Fram sailed under Nansen.", "The Maud sailed under Amundsen.", "The Gjøa sailed west.")
DOCUMENTS = [Document(f"d{number}", text) for number, text in enumerate(TEXTS)]
TESTS = str(Path(__file__).parents[2])


@pytest.fixture
def key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KETRAG_OPENAI_API_KEY", f"{KEY}\r\n")


@dataclass(frozen=True)
class Folders:
    plain: Path
    embedded: Path


@pytest.fixture(scope="module")
def folders(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Folders]:
    """An index without a model, and one with that of an endpoint."""
    root = tmp_path_factory.mktemp("hostile")
    made = Folders(root / "plain", root / "embedded")
    Index.build(DOCUMENTS, made.plain, settings=Settings(threads=1, modes="auto")).close()
    yield made


@pytest.fixture
def built(folders: Folders) -> Folders:
    if not folders.embedded.exists():
        with Hostile(good) as server:
            settings = Settings(threads=1, embedder=spec(server), modes="text")
            Index.build(DOCUMENTS, folders.embedded, settings=settings).close()
    return folders


def spec(server: Hostile) -> str:
    return f"openai:mini@http://127.0.0.1:{server.port}/v1"


def embeds(server: Hostile, built: Folders) -> Any:
    """A question whose vector an endpoint makes."""
    settings = Settings(threads=1, embedder=spec(server), deadline=DEADLINE)
    with Index.open(built.embedded, settings=settings) as index:
        return index.retrieve(QUESTION, mode="text").to_json()


def asks(server: Hostile, built: Folders) -> Any:
    """A question that an endpoint answers."""
    with Index.open(built.plain, settings=Settings(threads=1)) as index:
        return index.ask(QUESTION, llm=spec(server), mode="bm25", deadline=DEADLINE).to_json()


def answers(server: Hostile, built: Folders) -> Any:
    """The same under a limit for the answer alone."""
    with Index.open(built.plain, settings=Settings(threads=1)) as index:
        return index.ask(QUESTION, llm=spec(server), mode="bm25", seconds=DEADLINE).to_json()


def reads(server: Hostile, built: Folders) -> Any:
    """Chunks that an endpoint reads for a skeleton, with no limit but that of each reply."""
    retry = RetryPolicy(attempts=2, pause=0.01, timeout=DEADLINE)
    model = OpenAIModel(spec(server), ModelOptions(slots=2, retry=retry))
    try:
        limits = Limits(tokens=50, seconds=DEADLINE)
        found = []
        for reply in model.replies([Prompt(n, "Read.", text) for n, text in enumerate(TEXTS)], limits):
            found.append(asdict(reply))
            if len(found) == 2:
                break
        return found
    finally:
        model.close()


def opens(server: Hostile, built: Folders) -> Any:
    """An embedding model that is opened and used, with no limit but that of each request."""
    embedder = OpenAIEmbedder(spec(server), retry=RetryPolicy(attempts=2, pause=0.01, timeout=DEADLINE / 2))
    try:
        return embedder.embed(list(TEXTS)).tolist()
    finally:
        embedder.close()


Call = Callable[[Hostile, Folders], Any]
CALLS: dict[str, tuple[Call, str]] = {
    "embeds": (embeds, "/embeddings"),
    "opens": (opens, "/embeddings"),
    "asks": (asks, "/chat/completions"),
    "answers": (answers, "/chat/completions"),
    "reads": (reads, "/chat/completions"),
    "looks": (asks, "/models"),
}


def attempt(call: Call, play: Play, only: str, built: Folders, *, at_once: bool = False) -> str:
    """What came of one call, with the key wherever it shows in an error, its causes and their frames."""
    with Hostile(play, only, at_once=at_once) as server:
        started = time.monotonic()
        try:
            said = repr(call(server, built))
            wrong = "the result holds the key" if KEY in said else ""
        except KetragError as error:
            wrong = shown_in(error)
        except BaseException as error:  # noqa: BLE001 - of any kind, it is the finding
            wrong = f"untyped: {type(error).__name__}: {error}"
        taken = time.monotonic() - started
    if taken > LONGEST:
        wrong = f"{wrong} took {taken:.1f} s"
    return wrong.strip()


def shown_in(error: BaseException) -> str:
    seen: set[int] = set()
    left: list[BaseException | None] = [error]
    while left:
        one = left.pop()
        if one is None or id(one) in seen:
            continue
        seen.add(id(one))
        left += [one.__cause__, one.__context__]
        if KEY in f"{one} {one!r} {one.args} {getattr(one, 'hint', '')}":
            return f"{type(one).__name__} holds the key"
        for frame, _ in traceback.walk_tb(one.__traceback__):
            if frame.f_code.co_filename.startswith(TESTS):
                continue  # what the test knows
            shown = [name for name, value in frame.f_locals.items() if KEY in repr(value)]
            if shown:
                return f"{shown} in {frame.f_code.co_filename}:{frame.f_code.co_name} holds the key"
    return ""


def run_all(
    plays: dict[str, Play], names: list[str], built: Folders, caplog: pytest.LogCaptureFixture
) -> dict[str, str]:
    """All scripts by all calls, sixteen at a time: nearly all of it is waiting."""
    with caplog.at_level(logging.DEBUG), ThreadPoolExecutor(16) as pool:
        running = {
            f"{call}: {name}": pool.submit(attempt, *_places(call, play), built)
            for name, play in plays.items()
            for call in names
        }
        found = {name: future.result() for name, future in running.items()}
    if KEY in caplog.text:
        found["log"] = "the log holds the key"
    return {name: wrong for name, wrong in found.items() if wrong}


def _places(call: str, play: Play) -> tuple[Call, Play, str]:
    made, only = CALLS[call]
    return made, play, only


def no_key_in(folder: Path) -> None:
    for path in folder.rglob("*"):
        assert not path.is_file() or KEY.encode() not in path.read_bytes(), path


@pytest.mark.parametrize("call", CALLS)
def test_every_call_ends_in_time_and_shows_no_key(
    call: str, built: Folders, caplog: pytest.LogCaptureFixture, capfd: pytest.CaptureFixture[str]
) -> None:
    patient = {"a wait of a minute"} if call in ("opens", "reads") else set()  # they have no deadline
    plays = {name: play for name, play in SCENARIOS.items() if name not in patient}
    assert run_all(plays, [call], built, caplog) == {}
    out, err = capfd.readouterr()
    assert KEY not in out + err
    no_key_in(built.plain.parent)


def stuck(seconds: float, name: str) -> Any:
    """A look-up of names that does not come back, but for addresses of this machine."""
    real, over = socket.getaddrinfo, threading.Event()
    looked: list[str] = []

    def getaddrinfo(host: Any, *rest: Any, **named: Any) -> Any:
        if str(host) == name:
            looked.append(name)
            over.wait(seconds)
            raise socket.gaierror("no such host")
        return real(host, *rest, **named)

    return getaddrinfo, looked, over


def test_a_name_whose_look_up_hangs(built: Folders, monkeypatch: pytest.MonkeyPatch) -> None:
    found, looked, over = stuck(600.0, "slow.example.org")
    monkeypatch.setattr(socket, "getaddrinfo", found)
    started = time.monotonic()
    with Index.open(built.plain, settings=Settings(threads=1)) as index, pytest.raises(DeadlineExceeded):
        index.ask(QUESTION, llm="openai:m@https://slow.example.org/v1", mode="bm25", deadline=DEADLINE)
    over.set()
    assert looked and time.monotonic() - started < LONGEST


@pytest.mark.parametrize("name", ["localhost", "model.localhost", "LOCALHOST", "a.b.localhost."])
def test_names_of_this_machine_are_not_looked_up(
    built: Folders, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def getaddrinfo(host: Any, *rest: Any, **named: Any) -> Any:
        assert host in ("127.0.0.1", "::1"), f"{host} was looked up"
        return real(host, *rest, **named)

    real = socket.getaddrinfo
    monkeypatch.setattr(socket, "getaddrinfo", getaddrinfo)
    settings = Settings(threads=1, offline=True)
    with Hostile(good) as server, Index.open(built.plain, settings=settings) as index:
        found = index.ask(QUESTION, llm=f"openai:mini@http://{name}:{server.port}/v1", mode="bm25")
    assert found.text == "Nansen [1]."


@pytest.mark.parametrize(
    "script", [(HOLD,), (Slowly(b"\x16\x03\x03\x40\x00" + b"\x02" * 16_000),), (b"HTTP/1.1 ",)]
)
def test_a_handshake_that_never_ends(built: Folders, script: Any) -> None:
    def call(server: Hostile, built: Folders) -> Any:
        llm = f"openai:mini@https://127.0.0.1:{server.port}/v1"
        with Index.open(built.plain, settings=Settings(threads=1)) as index:
            found = index.ask(QUESTION, llm=llm, mode="bm25", deadline=DEADLINE)
        assert not found.text
        return found

    assert attempt(call, lambda _: script, "", built, at_once=True) == ""


def test_who_listens_and_accepts_nobody(built: Folders) -> None:
    with socket.create_server(("127.0.0.1", 0), backlog=0) as full:
        port = full.getsockname()[1]
        taken = []
        for _ in range(3):  # until there is no place left
            waiting = socket.socket()
            waiting.setblocking(False)
            waiting.connect_ex(("127.0.0.1", port))
            taken.append(waiting)
        started = time.monotonic()
        with Index.open(built.plain, settings=Settings(threads=1)) as index, pytest.raises(KetragError):
            index.ask(QUESTION, llm=f"openai:m@http://127.0.0.1:{port}/v1", mode="bm25", deadline=DEADLINE)
        assert time.monotonic() - started < LONGEST
        for waiting in taken:
            waiting.close()


def test_a_silent_list_of_models_does_not_hold_a_question_without_a_deadline(
    built: Folders, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("ketrag_fast.models.llms.openai.LIST_SECONDS", DEADLINE)
    for script in ((HOLD,), (b"HTTP/1.1 200 OK\r\n", Slowly(b"X-A: b\r\n" * ENDLESS))):
        with Hostile(lambda _, script=script: script, "/models") as server:
            started = time.monotonic()
            with Index.open(built.plain, settings=Settings(threads=1)) as index:
                found = index.ask(QUESTION, llm=spec(server), mode="bm25")
            assert found.text == "Nansen [1]." and time.monotonic() - started < LONGEST


def test_an_index_and_a_recording_hold_no_key(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A model that repeats the key, plain, between control characters, as entities, and where it fails."""

    def play(asked: Asked) -> Any:
        text = json.dumps(asked.body)
        if "Amundsen" in text:
            return [reply(json.dumps({"error": {"message": f"no {KEY}"}}).encode(), f"400 {KEY}")]
        wild = "\x1b".join(KEY) if "Nansen" in text else "".join(f"&#{ord(sign)};" for sign in KEY)
        entities = [
            [f"Fram {KEY}", "work", f"a ship {wild}"],
            [wild, "person", KEY],
            ["Nansen", "person", wild],
        ]
        content = json.dumps({"e": entities, "r": [["Nansen", "Fram", f"of {wild}", 5]]})
        return [reply(json.dumps({"choices": [{"message": {"content": content}}]}).encode())]

    source = tmp_path / "docs.jsonl"
    rows = [json.dumps({"_id": f"d{number}", "text": text}) for number, text in enumerate(TEXTS)]
    source.write_text("\n".join(rows), encoding="utf-8")
    folder, record = tmp_path / "index", tmp_path / "record.jsonl"
    with Hostile(play, "/chat/completions") as server:
        words = ["index", str(source), "-i", str(folder), "--llm", spec(server), "--record", str(record)]
        code = main([*words, "--core-ratio", "1", "-v"])
        assert code in (0, 3)
        assert main(["stats", "-i", str(folder), "--json"]) == 0
        main(["graph", "-i", str(folder), "Nansen", "--json"])
    out, err = capsys.readouterr()
    assert KEY not in out + err
    assert record.exists() and "Nansen" in record.read_text("utf-8")
    no_key_in(tmp_path)


def test_the_good_server_is_good(built: Folders, monkeypatch: pytest.MonkeyPatch) -> None:
    """Else nothing above would mean anything. A slow machine gets its time."""
    monkeypatch.setattr(sys.modules[__name__], "DEADLINE", 60.0)
    for call, only in CALLS.values():
        with Hostile(good, only) as server:
            assert call(server, built)
            assert server.requests > 0


def test_scripts_by_chance(built: Folders, caplog: pytest.LogCaptureFixture) -> None:
    plays = {f"seed {seed}": generated(seed) for seed in range(6)}
    assert run_all(plays, list(CALLS), built, caplog) == {}


@pytest.mark.soak
def test_many_scripts_by_chance(built: Folders, caplog: pytest.LogCaptureFixture) -> None:
    for first in range(0, 400, 50):
        plays = {f"seed {seed}": generated(seed) for seed in range(1000 + first, 1050 + first)}
        assert run_all(plays, list(CALLS), built, caplog) == {}
    no_key_in(built.plain.parent)
