"""Descriptions condensed by the model that reads: asked once, kept, and done without."""

from __future__ import annotations

import json
import random
import re
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from ketrag_fast import Index, Settings, _core
from ketrag_fast.errors import ConfigError
from ketrag_fast.kernels.text import count_tokens, pack, unpack
from ketrag_fast.models.extraction.prompt import PromptOptions
from ketrag_fast.models.extraction.summaries import INPUT, summarise_descriptions, summary_of, summary_task
from ketrag_fast.models.tasks.task import Item
from ketrag_fast.storage.journal import KeptReply
from ketrag_fast.systems.papers.kernels import fold_skeleton
from ketrag_fast.systems.papers.ket_rag.skeleton import JOINED, join_descriptions
from ketrag_fast.systems.shared.rows import strings, strings_out
from tests.process import POLAR
from tests.support.chat import Chat
from tests.support.chat_rules import read_by_rules

pytestmark = pytest.mark.usefixtures("loopback")
_LINE = re.compile(r"^- (.*)$", re.MULTILINE)


def words(request: dict[str, Any]) -> str:
    return "\n".join(message["content"] for message in request["messages"])


def is_summary(request: dict[str, Any]) -> bool:
    return '{"summary": "..."}' in words(request)


def told(about: str, lines: list[str]) -> str:
    return f"{about} in {len(lines)} lines of which the first is {lines[0][:20]}".strip()


def answer(request: dict[str, Any]) -> str:
    prompt = words(request)
    if not is_summary(request):
        return read_by_rules(prompt)
    about = prompt.split(":\n- ", 1)[0].rsplit("\n", 1)[-1]
    return json.dumps({"summary": told(about, _LINE.findall(prompt))})


@pytest.fixture(scope="module")
def docs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("docs")
    for path in sorted((POLAR / "articles").iterdir())[:24]:
        shutil.copy(path, folder)
    return folder


@pytest.fixture
def server() -> Iterator[Chat]:
    with Chat(answer) as chat:
        yield chat


def build(docs: Path, place: Path, spec: str | None, **settings: Any) -> Index:
    named = {} if spec is None else {"llm": spec}
    return Index.build(docs, place, settings=Settings(core_ratio=1.0, **named, **settings))


def skeleton(index: Index) -> tuple[dict[str, str], list[str]]:
    arrays = index.inspect.arrays()["skeleton"]
    names = unpack(arrays["entity_name_blob"], arrays["entity_name_offsets"])
    described = unpack(arrays["entity_description_blob"], arrays["entity_description_offsets"])
    ends = zip(arrays["relation_source"].tolist(), arrays["relation_target"].tolist(), strict=True)
    relations = unpack(arrays["relation_description_blob"], arrays["relation_description_offsets"])
    every = [f"{names[a]}|{names[b]}|{text}" for (a, b), text in zip(ends, relations, strict=True)]
    return dict(zip(names, described, strict=True)), every


def test_what_chunks_say_several_times_is_condensed_once(docs: Path, server: Chat, tmp_path: Path) -> None:
    spec = f"openai:mini@{server.url}"
    with build(docs, tmp_path / "joined", spec) as plain:
        joined, _ = skeleton(plain)
    assert not any(map(is_summary, server.requests))
    server.requests.clear()
    with build(docs, tmp_path / "model", spec, summaries="model") as index:
        made, relations = skeleton(index)
        several = {name for name, text in joined.items() if "\n" in text}
        assert len(several) > 5 and made.keys() == joined.keys()
        for name, text in made.items():
            lines = sorted(joined[name].split("\n"), key=str.encode)
            assert text == (told(name, lines) if name in several else joined[name])
        assert any(" in 2 lines of which" in text for text in relations)
        asked = sum(map(is_summary, server.requests))
        report = index.report
        assert report is not None and report.extraction is not None
        assert report.extraction["summaries"] == {"made": asked, "wanted": asked}
        assert report.extraction["whole"]["calls"] == asked + report.extraction["core"]
        arrays = index.inspect.arrays()["skeleton"]
        rows = [
            f"{n}|{name}|{text}|{rank}\n"
            for n, ((name, text), rank) in enumerate(
                zip(made.items(), arrays["entity_rank"].tolist(), strict=True)
            )
        ]
        assert np.array_equal(arrays["entity_row_tokens"], count_tokens(rows))
        digest = index.digest
        context = index.retrieve("Who led the expedition?", mode="skeleton", budget=3000)
        assert context.tokens == sum(section.tokens for section in context.sections) <= 3000
    server.requests.clear()
    for named in (spec, None):  # nothing is asked again, and without the model nothing is lost
        with build(docs, tmp_path / "model", named, summaries="model") as again:
            assert again.digest == digest and again.report is not None and not again.report.changed
    assert not server.requests
    with build(docs, tmp_path / "model", None, summaries="joined") as back:
        assert skeleton(back)[0] == joined and not server.requests


def test_useless_summaries_leave_the_joined_lines_and_say_so(docs: Path, tmp_path: Path) -> None:
    def useless(request: dict[str, Any]) -> str:
        return '{"summary": ""}' if is_summary(request) else read_by_rules(words(request))

    with Chat(useless) as server:
        spec = f"openai:mini@{server.url}"
        with build(docs, tmp_path / "plain", spec) as plain:
            joined = skeleton(plain)
        with build(docs, tmp_path / "useless", spec, summaries="model") as index:
            assert skeleton(index) == joined
            report = index.report
            assert report is not None and report.extraction is not None
            wanted = report.extraction["summaries"]["wanted"]
            assert report.extraction["summaries"]["made"] == 0 < wanted
            assert any("are concatenated" in warning for warning in report.warnings)
        asked = sum(map(is_summary, server.requests))
        assert asked == 2 * wanted
        build(docs, tmp_path / "useless", spec, summaries="model").close()
        assert sum(map(is_summary, server.requests)) == asked


def test_replies_are_folded_once(
    docs: Path, server: Chat, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folds: list[int] = []
    fold = _core.fold_skeleton

    def counting(*arrays: Any, **options: Any) -> Any:
        folds.append(options["description_tokens"])
        return fold(*arrays, **options)

    monkeypatch.setattr(_core, "fold_skeleton", counting)
    spec = f"openai:mini@{server.url}"
    build(docs, tmp_path / "i", spec, summaries="model").close()
    assert len(folds) == 1
    build(docs, tmp_path / "i", spec, summaries="model").close()  # looked at, and not made again
    assert len(folds) == 2


def test_a_fold_with_all_lines_is_cut_as_the_fold_cuts() -> None:
    """`join_descriptions` in place of a second fold."""
    chance = random.Random(3)
    words = ["Fram", "polar basin", "drifted", "北極", "naïve", "Ærø", "1895", "under Nansen,"]
    lines = [" ".join(chance.choices(words, k=chance.randint(1, 90))) for _ in range(160)]
    said = [*lines, *lines[:60]]
    nothing = pack([])
    replies: dict[str, Any] = {
        "reply_chunk": np.arange(len(said)),
        "reply_entities_indptr": np.arange(len(said) + 1),
        "reply_relations_indptr": np.zeros(len(said) + 1, np.int64),
        "relation_strength": np.zeros(0),
    }
    texts = {
        "entity_name": pack([f"E{chance.randrange(25)}" for _ in said]),
        "entity_type": pack(["x"] * len(said)),
        "entity_description": pack(said),
        **{f"relation_{name}": nothing for name in ("source", "target", "description")},
    }
    for name, packed in texts.items():
        replies |= strings_out(name, packed)
    units, spans = ["text"] * len(said), np.zeros((len(said), 2), np.int64)

    def descriptions(tokens: int) -> list[str]:
        arrays = fold_skeleton(replies, np.arange(len(said) + 1), units, spans, description_tokens=tokens)
        return unpack(*strings(arrays, "entity_description"))

    whole, cut = descriptions(2**62), descriptions(JOINED)
    assert sum(a != b for a, b in zip(whole, cut, strict=True)) > 5
    assert join_descriptions(whole, "cl100k_base") == cut
    assert join_descriptions(["word " * 2000], "cl100k_base") is None  # the fold alone cuts inside a line


@pytest.mark.parametrize("llm", ["heuristic", "none"])
def test_rules_write_no_summaries(docs: Path, tmp_path: Path, llm: str) -> None:
    if llm == "none":  # nothing reads, so there is nothing to condense
        build(docs, tmp_path / "i", llm, summaries="model").close()
        return
    with pytest.raises(ConfigError, match="summaries = model needs a language model"):
        build(docs, tmp_path / "i", llm, summaries="model")


def test_many_lines_go_in_batches_and_none_is_left_out() -> None:
    lines = [f"line {n} " + "word " * 300 for n in range(40)]
    (one,) = summarise_descriptions([(("A",), lines)])
    task = summary_task(PromptOptions(), None)
    item = Item(task, one, task.key(one))
    seen: list[str] = []
    made: list[str] = []
    while (batch := one.batch(made)) is not None:
        assert batch == sorted(batch, key=str.encode)
        assert len(batch) > 1 and count_tokens(batch).sum() <= INPUT + 400
        assert not made or made[-1] in batch
        seen += [line for line in batch if line not in made]
        made.append(f"summary {len(made)}")
        item.kept.append(KeptReply(len(made) - 1, 1, "", "stop", None, "clean", 0, 0, made[-1]))
        assert item.values == made
    assert sorted(seen) == sorted(lines) and len(made) > 2
    assert summary_of(item) == made[-1] and item.next() is None
