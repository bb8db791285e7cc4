"""With an embedding model, the words of an edit are found by the next query, and its vectors follow."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from ketrag_fast import Index, Settings
from ketrag_fast.apps.server.service import OpenIndex
from ketrag_fast.building import placeholders
from ketrag_fast.index import freshness
from tests import small_model
from tests.process import ketrag
from tests.support.endpoint import Endpoint
from tests.support.parts import part

pytestmark = pytest.mark.usefixtures("loopback")


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    sizes = small_model.config(max_position_embeddings=514)
    return small_model.save(tmp_path_factory.mktemp("model") / "model", sizes)


@pytest.fixture
def notes(tmp_path: Path) -> Path:
    folder = tmp_path / "notes"
    folder.mkdir()
    for number in range(12):
        text = (
            f"# Note {number}\n\nThe penguins of {number} swim. The wind is cold.\n\nShips pass in the ice.\n"
        )
        (folder / f"{number}.md").write_text(text)
    return folder


@pytest.fixture
def slow(monkeypatch: pytest.MonkeyPatch) -> None:
    """Predicts that encoding a single byte takes too long before an answer."""
    monkeypatch.setattr(freshness, "_PER_BYTE_EMBEDDED", 1e9)


def edit(notes: Path, number: int, word: str) -> None:
    (notes / f"{number}.md").write_text(f"# Note {number}\n\nThe {word} of {number} sleep. They are big.\n")


def found(index: Index, word: str) -> list[str]:
    return [hit.document for hit in index.search(word) if word in hit.text]


def same(index: Index, fresh: Index) -> None:
    """Assert that all arrays and the answers of two indexes are equal."""
    assert index.stats()["content_digest"] == fresh.stats()["content_digest"]
    mine, theirs = (one._state.opened.generation.stages for one in (index, fresh))
    for stage, arrays in theirs.items():
        for name in arrays:
            np.testing.assert_array_equal(arrays[name], mine[stage][name], f"{stage}.{name}")
    for query in ("penguins swim", "the walruses sleep", "ice"):
        assert index.retrieve(query).text == fresh.retrieve(query).text


@pytest.mark.usefixtures("slow")
@pytest.mark.parametrize("format", ["4bit", "int8", "f32"])
def test_words_first_and_then_the_bytes_of_a_fresh_build(
    format: str,  # noqa: A002
    model: Path,
    notes: Path,
    tmp_path: Path,
) -> None:
    settings = Settings(threads=1, embedder=f"native:{model}", vector_format=format)
    with Index.build(notes, tmp_path / "index", settings=settings) as index:
        before = index.stats()["content_digest"]
        edit(notes, 3, "walruses")
        state = index.freshen()
        assert state.updated and state.unembedded == 1 and state.is_pending
        assert "1 passage without a vector yet" in str(state.line)
        assert found(index, "walruses") == ["3.md"]
        assert index.stats()["counts"]["passages without a vector"] == 1
        edit(notes, 4, "kestrels")
        (notes / "new.md").write_text("# New\n\nNarwhals dive.\n")
        (notes / "5.md").unlink()
        assert index.freshen().unembedded == 3
        edit(notes, 3, "herons")  # a passage that waited is replaced by another one
        assert index.freshen().unembedded == 3
        state = index.freshen()
        assert (state.changes, state.updated, state.unembedded) == (0, False, 3)
        assert found(index, "kestrels") == ["4.md"] and found(index, "herons") == ["3.md"]
        state = index.freshen("always")
        assert state.updated and state.unembedded == 0 and state.line is None
        with Index.build(notes, tmp_path / "fresh", settings=settings) as fresh:
            same(index, fresh)
        edit(notes, 4, "penguins")
        assert index.freshen().unembedded == 1
        assert index.stats()["content_digest"] != before


@pytest.mark.usefixtures("slow")
def test_a_build_computes_what_is_missing_and_keeps_the_rest(
    model: Path, notes: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings = Settings(threads=1, embedder=f"native:{model}")
    index = Index.build(notes, tmp_path / "index", settings=settings)
    edit(notes, 3, "walruses")
    assert index.freshen().unembedded == 1
    index.close()
    encoded: list[str] = []
    from ketrag_fast.models.embedders.native import NativeEmbedder

    encode = NativeEmbedder._encode_spans

    def count(self: Any, texts: list[str], *rest: Any) -> Any:
        encoded.extend(texts)
        return encode(self, texts, *rest)

    monkeypatch.setattr(NativeEmbedder, "_encode_spans", count)
    with Index.build([], tmp_path / "index", settings=settings) as index:
        assert [text for text in encoded if "walruses" not in text] == []
        assert len(encoded) == 1
        with Index.build(notes, tmp_path / "fresh", settings=settings) as fresh:
            same(index, fresh)
            assert index.digest == fresh.digest


def test_a_quick_model_is_used_at_once_and_completes_what_waits(
    model: Path, notes: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings = Settings(threads=1, embedder=f"native:{model}")
    with Index.build(notes, tmp_path / "index", settings=settings) as index:
        with monkeypatch.context() as patch:
            patch.setattr(freshness, "_PER_BYTE_EMBEDDED", 1e9)
            edit(notes, 3, "walruses")
            assert index.freshen().unembedded == 1
        edit(notes, 4, "kestrels")
        state = index.freshen()
        assert state.updated and state.unembedded == 0 and state.line is None
        with Index.build(notes, tmp_path / "fresh", settings=settings) as fresh:
            same(index, fresh)


@pytest.mark.usefixtures("slow")
def test_vectors_are_published_in_portions(
    model: Path, notes: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(placeholders, "PORTION", 2)
    settings = Settings(threads=1, embedder=f"native:{model}")
    with Index.build(notes, tmp_path / "index", settings=settings) as index:
        for number in range(7):
            edit(notes, number, "walruses")
        assert index.freshen().unembedded == 7
        generation = index.generation
        assert index.freshen("always").unembedded == 0
        assert index.generation - generation == 4
        with Index.build(notes, tmp_path / "fresh", settings=settings) as fresh:
            same(index, fresh)


def encode(texts: Sequence[str]) -> NDArray[Any]:
    """Return a direction for each text, which depends on all of it."""
    return np.stack([np.random.default_rng(list(text.encode())).normal(size=32) for text in texts])


@pytest.fixture
def endpoint() -> Iterator[Endpoint]:
    with Endpoint(encode) as served:
        yield served


def test_an_endpoint_gets_no_document_before_an_answer(
    endpoint: Endpoint, notes: Path, tmp_path: Path
) -> None:
    settings = Settings(threads=1, embedder=f"openai:small@{endpoint.url}")
    with Index.build(notes, tmp_path / "index", settings=settings) as index:
        sent = len(endpoint.texts)
        edit(notes, 3, "walruses")
        assert index.freshen().unembedded == 1
        assert len(endpoint.texts) == sent
        assert found(index, "walruses") == ["3.md"]
        entry = OpenIndex("notes", index, 0)
        entry.keep_up()  # what the service does behind its answers
        assert any("walruses" in text for text in endpoint.texts[sent:])
        assert index.freshen().unembedded == 0
        with Index.build(notes, tmp_path / "fresh", settings=settings) as fresh:
            same(index, fresh)


def test_an_edit_is_found_while_the_endpoint_is_down(notes: Path, tmp_path: Path) -> None:
    with Endpoint(encode) as served:
        settings = Settings(threads=1, embedder=f"openai:small@{served.url}")
        Index.build(notes, tmp_path / "index", settings=settings).close()
    edit(notes, 3, "walruses")
    for command in ("search", "retrieve", "grep"):
        done = ketrag(command, "walruses", "--index", str(tmp_path / "index"), cwd=tmp_path)
        assert "walruses of 3" in done.out, (command, done.out, done.err)
    assert "1 passage without a vector yet" in done.err
    done = ketrag("search", "walruses", "--fresh", "--index", str(tmp_path / "index"), cwd=tmp_path)
    assert "walruses of 3" in done.out and "could not be indexed" in done.err


def test_an_assistant_finds_an_edit_while_the_endpoint_is_busy(notes: Path, tmp_path: Path) -> None:
    """The tool answers by words while the endpoint computes the vectors of the edit behind it."""
    part("mcp", "server")
    from mcp.client.client import Client

    from ketrag_fast.apps.server.mcp_tools import create_mcp_server
    from ketrag_fast.apps.server.options import ServerOptions
    from ketrag_fast.apps.server.service import OpenIndexes

    free, began = threading.Event(), threading.Event()
    free.set()

    def encode_later(texts: Sequence[str]) -> NDArray[Any]:
        if any("of 3 sleep" in text for text in texts):
            began.set()
            free.wait(30)
        return encode(texts)

    with Endpoint(encode_later) as served:
        settings = Settings(threads=1, embedder=f"openai:small@{served.url}", mode="bm25")
        Index.build(notes, tmp_path / "index", settings=settings).close()
        opened = OpenIndexes(ServerOptions(indexes={"notes": str(tmp_path / "index")}))

        async def call(word: str) -> str:
            async with Client(create_mcp_server(opened, local=True)) as client:
                found = await client.call_tool("search", {"query": word})
                return str(found.content[0].text)

        free.clear()
        edit(notes, 3, "walruses")
        reply = asyncio.run(asyncio.wait_for(call("walruses"), 60))
        assert "The walruses of 3 sleep" in reply and "1 passage without a vector yet" in reply
        entry = opened.find("notes")
        behind = threading.Thread(target=entry.keep_up)
        behind.start()
        assert began.wait(30)
        edit(notes, 4, "kestrels")
        free.set()
        assert "The kestrels of 4 sleep" in asyncio.run(asyncio.wait_for(call("kestrels"), 60))
        behind.join()
        entry.keep_up()
        assert entry.index.freshen().unembedded == 0
        opened.close()


def test_a_model_that_is_slower_than_predicted_delays_no_words(
    model: Path, notes: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from ketrag_fast.models.embedders.native import NativeEmbedder

    encode_now, tries = NativeEmbedder._encode_spans, []

    def encode_slowly(self: Any, *given: Any) -> Any:
        tries.append(1)
        time.sleep(3)
        return encode_now(self, *given)

    settings = Settings(threads=1, embedder=f"native:{model}")
    with Index.build(notes, tmp_path / "index", settings=settings) as index, monkeypatch.context() as patch:
        patch.setattr(freshness, "LONGEST", 2.0)
        patch.setattr(NativeEmbedder, "_encode_spans", encode_slowly)
        edit(notes, 3, "walruses")
        state = index.freshen()
        assert tries and state.updated and state.unembedded >= 1
        assert found(index, "walruses") == ["3.md"]
        tries.clear()
        edit(notes, 4, "kestrels")
        assert index.freshen().updated and not tries  # it is not tried again at once
        assert found(index, "kestrels") == ["4.md"]
        patch.undo()
        assert index.freshen("always").unembedded == 0
        with Index.build(notes, tmp_path / "fresh", settings=settings) as fresh:
            same(index, fresh)


@pytest.mark.usefixtures("slow")
def test_callers_with_rights_find_the_words_of_what_they_may_see(
    model: Path, notes: Path, tmp_path: Path
) -> None:
    for path in notes.iterdir():
        path.write_text(f"---\nteam: {'a' if path.stem < '4' else 'b'}\n---\n{path.read_text()}")
    settings = Settings(threads=1, embedder=f"native:{model}")
    with Index.build(notes, tmp_path / "index", settings=settings) as index:
        text = "---\nteam: a\n---\n# Note 3\n\nThe walruses sleep.\n"
        (notes / "3.md").write_text(text)
        assert index.freshen().unembedded == 1
        seen, other = index.allowed("team=a"), index.allowed("team=b")
        assert found(seen, "walruses") == ["3.md"] and found(other, "walruses") == []
        assert "without a vector" not in str(seen.freshen().line)
        index.freshen("always")
        assert found(index.allowed("team=a"), "walruses") == ["3.md"]


@pytest.mark.usefixtures("slow")
def test_two_at_a_time_find_the_edit_and_end_with_the_same_vectors(
    model: Path, notes: Path, tmp_path: Path
) -> None:
    settings = Settings(threads=1, embedder=f"native:{model}")
    Index.build(notes, tmp_path / "index", settings=settings).close()
    for number in range(5):
        edit(notes, number, "walruses")
    results: list[list[str]] = []

    def use(how: freshness.Refresh) -> None:
        with Index.open(tmp_path / "index") as index:
            index.freshen(how)
            index.refresh()
            results.append(sorted(found(index, "walruses")))

    threads = [threading.Thread(target=use, args=(how,)) for how in ("auto", "always", "auto", "always")]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert results == [[f"{number}.md" for number in range(5)]] * 4
    with Index.open(tmp_path / "index") as index:
        assert index.freshen("always").unembedded == 0
        with Index.build(notes, tmp_path / "fresh", settings=settings) as fresh:
            same(index, fresh)


@pytest.mark.usefixtures("slow")
def test_a_merge_computes_the_vectors_that_its_parts_lack(model: Path, notes: Path, tmp_path: Path) -> None:
    settings = Settings(threads=1, embedder=f"native:{model}")
    parts = []
    for number in range(2):
        folder = tmp_path / f"notes{number}"
        folder.mkdir()
        for path in sorted(notes.iterdir())[number::2]:
            (folder / path.name).write_text(path.read_text())
        parts.append(tmp_path / f"part{number}")
        Index.build(folder, parts[-1], settings=settings).close()
    (tmp_path / "notes1" / "1.md").write_text("# Note 1\n\nThe walruses of 1 sleep.\n")
    with Index.open(parts[1]) as part:
        part.freshen()
        waits = part.freshen().unembedded
    assert waits == 1
    with Index.merge(parts, tmp_path / "merged", settings=settings) as merged:
        assert "passages without a vector" not in merged.stats()["counts"]
        assert found(merged, "walruses") == ["1.md"]
    again = [tmp_path / "again0", tmp_path / "again1"]
    for number, path in enumerate(again):
        Index.build(tmp_path / f"notes{number}", path, settings=settings).close()
    with (
        Index.merge(again, tmp_path / "fresh", settings=settings) as fresh,
        Index.open(tmp_path / "merged") as own,
    ):
        same(own, fresh)
