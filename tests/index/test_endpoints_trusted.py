"""Endpoints that only an index names: no question, document or key is sent there before it is confirmed."""

from __future__ import annotations

import asyncio
import json
import shlex
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from ketrag_fast import Document, Index, Settings
from ketrag_fast.apps.cli.main import main
from ketrag_fast.base.user_records import state_folder
from ketrag_fast.errors import ConfigError, EndpointNotConfirmed, KetragError
from ketrag_fast.index.endpoints import list_endpoints, trust_endpoint
from ketrag_fast.storage import confirmations
from ketrag_fast.storage.generation import MANIFEST, current_number
from ketrag_fast.storage.layout import Layout
from ketrag_fast.storage.manifest import SEAL, seal_of
from tests.support.changed import bundle, reembed
from tests.support.chat import Chat
from tests.support.endpoint import Endpoint, words_encoder

pytestmark = pytest.mark.usefixtures("loopback")

DOCUMENTS = [Document(f"d{i}", f"w{i} w{i + 1} w{i + 2} harbour", f"w{i}", {"team": "a"}) for i in range(12)]
KEY = "sk-of-the-user-0123456789"
QUESTION = "w3 w4 in secret"


@pytest.fixture
def server() -> Iterator[Endpoint]:
    with Endpoint(words_encoder()) as running:
        yield running


def built(folder: Path, server: Endpoint, **more: Any) -> Path:
    settings = Settings(embedder=f"openai:mini@{server.url}", **more)
    Index.build(DOCUMENTS, folder, settings=settings).close()
    return folder


@pytest.fixture
def foreign(tmp_path: Path, server: Endpoint, monkeypatch: pytest.MonkeyPatch) -> Path:
    """What somebody else bundled, unbundled by a user who has a key. The endpoint has recorded nothing."""
    built(tmp_path / "theirs", server)
    assert main(["bundle", "-i", str(tmp_path / "theirs"), str(tmp_path / "file")]) == 0
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state of the user"))
    monkeypatch.setenv("KETRAG_OPENAI_API_KEY", KEY)
    assert main(["import", "bundle", str(tmp_path / "file"), "-i", str(tmp_path / "mine")]) == 0
    clear(server)
    return tmp_path / "mine"


def clear(server: Endpoint) -> None:
    server.texts.clear()
    server.keys.clear()


def untouched(server: Endpoint) -> bool:
    return not server.texts and not server.keys


def command_of(error: KetragError) -> list[str]:
    """The command of the hint, as a shell takes it apart."""
    assert error.hint is not None
    text = error.hint.split("confirm it once: ")[1].split("; or name it")[0]
    words = shlex.split(text)
    assert words[0] == "ketrag"
    return words[1:]


def test_nothing_arrives_before_it_is_confirmed(
    foreign: Path, server: Endpoint, capfd: pytest.CaptureFixture[str]
) -> None:
    for words in (["retrieve", QUESTION], ["retrieve", QUESTION, "--mode", "text"], ["ask", QUESTION]):
        assert main([*words, "-i", str(foreign)]) == 5
        said = capfd.readouterr().err
        assert server.url.removesuffix("/v1") in said and "query would be sent there" in said
        assert f"ketrag trust -i {foreign} --endpoint {server.url}" in said and "--embedder" in said
    with Index.open(foreign) as index:
        calls = (
            lambda: index.retrieve(QUESTION),
            lambda: index.retrieve(QUESTION, mode="walk"),
            lambda: index.retrieve_many([QUESTION] * 2),
            lambda: index.retrieve(QUESTION, mode="text", allow="team=a"),
            index.inspect.warm,
            lambda: index.inspect.vectors([QUESTION]),
            lambda: index.ask(QUESTION),
            lambda: asyncio.run(index.aretrieve(QUESTION)),
        )
        for call in calls:
            with pytest.raises(EndpointNotConfirmed) as caught:
                call()
        assert index.retrieve(QUESTION, mode="bm25").passages, "what needs no endpoint goes on"
        with pytest.raises(EndpointNotConfirmed, match="text of the documents"):
            index.update(add=Document("new", "a secret of the user", "new"))
    with pytest.raises(EndpointNotConfirmed):
        reembed(foreign)
    assert untouched(server)

    assert main(command_of(caught.value)) == 0
    with Index.open(foreign) as index:
        assert index.retrieve(QUESTION, mode="text").passages
    assert QUESTION in server.texts and set(server.keys) == {f"Bearer {KEY}"}


def test_naming_it_is_enough_each_time(
    foreign: Path, server: Endpoint, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    spec = f"openai:mini@{server.url}"
    words = ["retrieve", QUESTION, "-i", str(foreign), "--mode", "text"]
    assert main([*words, "--embedder", spec]) == 0
    assert QUESTION in server.texts
    clear(server)
    assert main(words) == 5 and untouched(server), "naming it once confirms nothing"
    monkeypatch.setenv("KETRAG_EMBEDDER", spec)
    assert main(words) == 0 and server.texts
    monkeypatch.delenv("KETRAG_EMBEDDER")
    Path("ketrag.toml").write_text(f'embedder = "{spec}"\n', "utf-8")
    clear(server)
    assert main(words) == 5 and untouched(server), "the file of a folder is not the user's word"
    assert main([*words, "--config", "ketrag.toml"]) == 0 and server.texts


def test_another_endpoint_of_the_user_gets_the_question_alone(foreign: Path, server: Endpoint) -> None:
    with Endpoint(words_encoder()) as own:
        settings = Settings(embedder=f"openai:mini@{own.url}")
        with Index.open(foreign, settings=settings) as index:
            assert index.retrieve(QUESTION, mode="text").passages
        assert QUESTION in own.texts
        assert main(["retrieve", QUESTION, "-i", str(foreign), "--mode", "text"]) == 5
    assert untouched(server)


def test_an_own_build_goes_on_without_a_word_and_a_copy_does_not(tmp_path: Path, server: Endpoint) -> None:
    place = built(tmp_path / "own", server)
    with Index.open(place) as index:
        assert index.retrieve(QUESTION, mode="text").passages
        index.update(add=Document("new", "w8 w9 w30", "new"))
        assert index.retrieve(QUESTION, mode="text").passages
    shutil.copytree(place, tmp_path / "copy")
    clear(server)
    with Index.open(tmp_path / "copy") as index, pytest.raises(EndpointNotConfirmed):
        index.retrieve(QUESTION, mode="text")
    shutil.rmtree(place)
    bundle(tmp_path / "copy", tmp_path / "file")
    Index.unbundle(tmp_path / "file", place)  # in the place of one that is confirmed
    with Index.open(place) as index, pytest.raises(EndpointNotConfirmed):
        index.retrieve(QUESTION, mode="text")
    assert untouched(server)


def test_it_is_the_address_that_is_confirmed(tmp_path: Path, server: Endpoint) -> None:
    """An index that is altered in its place, to name another endpoint, is not confirmed."""
    place = built(tmp_path / "own", server)
    clear(server)
    with Endpoint(words_encoder()) as evil:
        alter(place, lambda data: data["settings"].update(embedder=f"openai:mini@{evil.url}"))
        with Index.open(place) as index, pytest.raises(EndpointNotConfirmed, match=str(evil.port)):
            index.retrieve(QUESTION, mode="text")
        assert untouched(evil)
    assert untouched(server)


def test_it_can_be_taken_back(tmp_path: Path, server: Endpoint, capsys: pytest.CaptureFixture[str]) -> None:
    place = built(tmp_path / "own", server)
    assert [one.trusted for one in list_endpoints(place)] == [True]
    assert (
        main(["trust", "-i", str(place), "--endpoint", server.url.upper().replace("/V1", "/v1"), "--forget"])
        == 0
    )
    assert "not confirmed" in capsys.readouterr().out
    with Index.open(place) as index, pytest.raises(EndpointNotConfirmed):
        index.retrieve(QUESTION, mode="text")
    assert main(["trust", "-i", str(place), "--endpoint", "http://127.0.0.1:9/v1"]) == 2
    with pytest.raises(ConfigError, match="does not name"):
        trust_endpoint(place, "http://127.0.0.1:9/v1")
    trust_endpoint(place, server.url)
    assert [one.trusted for one in list_endpoints(place)] == [True]


def test_the_rest_of_the_settings_is_not_the_indexs(foreign: Path, server: Endpoint) -> None:
    """How an index is queried, and by which model, is not for its manifest to decide."""
    with Endpoint(words_encoder()) as evil:
        spec = f"openai:mini@{evil.url}"
        alter(foreign, lambda data: data["settings"].update(answer_llm=spec, rerank="native:/tmp", budget=7))
        with Index.open(foreign, settings=Settings(budget=900)) as index:
            found = index._opened.settings
            assert (found.answer_llm, found.rerank, found.budget) == (None, None, 900)
            assert index.ask(QUESTION, mode="bm25").reason == "no_model"
        assert untouched(evil)
    assert untouched(server)


def test_the_language_model_of_the_index(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An answer would come from the model that read the chunks."""
    place = tmp_path / "ix"
    Index.build(DOCUMENTS, place, settings=Settings(modes="auto")).close()
    monkeypatch.setenv("KETRAG_OPENAI_API_KEY", KEY)
    with Chat(lambda _: "w3 w4 w5 harbour") as chat:
        alter(place, lambda data: data["settings"].update(llm=f"openai:mini@{chat.url}"))
        message = r"language model.*query would be sent"
        with Index.open(place) as index, pytest.raises(EndpointNotConfirmed, match=message) as caught:
            index.ask(QUESTION)
        assert not chat.requests and not chat.keys and not chat.listings
        assert main(command_of(caught.value)) == 0
        with Index.open(place) as index:
            assert index.ask(QUESTION).text
        assert QUESTION in json.dumps(chat.requests) and f"Bearer {KEY}" in chat.keys


def test_a_service_and_an_assistant_send_nothing(foreign: Path, server: Endpoint) -> None:
    from tests.support.service import running
    from tests.unit.apps.server.test_mcp import over_pipes

    with running(foreign) as service, service.client() as client:
        for path, body in {
            "/v1/retrieve": {"question": QUESTION, "budget": 100},
            "/v1/embeddings": {"input": QUESTION, "model": "ketrag"},
        }.items():
            reply = client.post(path, json=body)
            assert reply.status_code == 503, reply.text
            assert str(foreign) not in reply.text
        assert client.post("/v1/retrieve", json={"question": QUESTION, "mode": "bm25"}).json()["passages"]

    async def use(client: Any) -> None:
        reply = await client.call_tool("search", {"query": QUESTION})
        assert reply.is_error

    over_pipes(foreign, use)
    assert untouched(server)
    trust_endpoint(foreign, server.url)
    with running(foreign) as service, service.client() as client:
        assert client.post("/v1/retrieve", json={"question": QUESTION, "mode": "text"}).json()["passages"]
    assert QUESTION in server.texts


def test_an_estimate_sends_nothing(foreign: Path, server: Endpoint, tmp_path: Path) -> None:
    (tmp_path / "docs").mkdir()
    (tmp_path / "docs" / "a.txt").write_text("The harbour of the user. " * 50, "utf-8")
    assert main(["estimate", str(tmp_path / "docs"), "-i", str(foreign)]) == 0
    assert untouched(server)


def test_a_merge_takes_the_confirmations_of_its_parts(
    tmp_path: Path, server: Endpoint, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings = Settings(embedder=f"openai:mini@{server.url}")
    Index.build(DOCUMENTS[:6], tmp_path / "a", settings=settings).close()
    Index.build(DOCUMENTS[6:], tmp_path / "b", settings=settings).close()
    with Index.merge([tmp_path / "a", tmp_path / "b"], tmp_path / "both") as index:
        assert index.retrieve(QUESTION, mode="text").passages
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "another user"))
    clear(server)
    with (
        Index.merge([tmp_path / "a", tmp_path / "b"], tmp_path / "again") as index,
        pytest.raises(EndpointNotConfirmed),
    ):
        index.retrieve(QUESTION, mode="text")
    assert untouched(server)


def test_commands_say_where_queries_would_go(
    foreign: Path, server: Endpoint, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    capsys.readouterr()
    for words in (["stats"], ["doctor"], ["trust"], ["import", "bundle", str(tmp_path / "file")]):
        place = tmp_path / "other" if words[0] == "import" else foreign
        assert main([*words, "-i", str(place)]) == 0
        said = capsys.readouterr().out
        assert server.url in said and "not confirmed" in said, words
        shutil.rmtree(tmp_path / "other", ignore_errors=True)
        assert main([*words, "-i", str(place), "--json"]) == 0
        (one,) = json.loads(capsys.readouterr().out)["endpoints"]
        assert one["address"] == server.url and one["setting"] == "embedder" and one["trusted"] is False
    assert untouched(server)


def test_a_state_folder_that_cannot_be_written_is_a_warning(
    tmp_path: Path, server: Endpoint, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").write_text("no folder", "utf-8")
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "file"))
    settings = Settings(embedder=f"openai:mini@{server.url}")
    with Index.build(DOCUMENTS, tmp_path / "ix", settings=settings) as index:
        assert index.report is not None
        assert any("must name it with --embedder" in line for line in index.report.warnings)
        assert index.retrieve(QUESTION, mode="text").passages
    with pytest.raises(KetragError):
        trust_endpoint(tmp_path / "ix", server.url)


@pytest.mark.parametrize("data", [b"", b"[]", b"{}", b"\xff", b'{"index": 1}'])
def test_a_record_that_makes_no_sense_confirms_nothing(
    tmp_path: Path, server: Endpoint, data: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    place = built(tmp_path / "own", server)
    layout, address = Layout(place), list_endpoints(place)[0].address
    assert confirmations.is_confirmed(layout, address)
    (file,) = state_folder().iterdir()
    file.write_bytes(data)
    assert not confirmations.is_confirmed(layout, address)
    layout.identity.write_bytes(b"../../x")
    confirmations.confirm(layout, address)
    assert confirmations.is_confirmed(layout, address)


def alter(place: Path, change: Any) -> None:
    """Change the manifest, and seal it again as its author would."""
    layout = Layout(place)
    number = current_number(layout)
    assert number is not None
    file = layout.generation(number) / MANIFEST
    data = json.loads(file.read_bytes())
    change(data)
    data[SEAL] = seal_of({name: value for name, value in data.items() if name != SEAL})
    file.write_text(json.dumps(data), "utf-8")
