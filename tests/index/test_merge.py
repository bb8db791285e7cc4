"""Several indexes become one: the index that a build over all their documents gives, to the byte."""

from __future__ import annotations

import json
import random
import shutil
from pathlib import Path

import pytest

from ketrag_fast import Index, Settings
from ketrag_fast.apps.cli.main import main
from ketrag_fast.errors import (
    ModelMismatch,
)
from tests import small_model
from tests.support.merging import build, document, split


@pytest.mark.parametrize("seed", [0, 1, 3])
def test_random_splits_give_the_index_of_one_build(tmp_path: Path, seed: int) -> None:
    """Some documents are in several parts; the parts come in any order."""
    dice = random.Random(seed)
    modes = "all" if seed == 3 else "auto"
    rules = Settings(llm="heuristic", core_ratio=1.0, chunk_tokens=dice.choice((30, 200)), modes=modes)
    settings = rules if seed % 2 else None
    documents = [document(f"d{number}") for number in range(dice.randint(6, 25))]
    parts = split(documents, dice.randint(2, 5), dice)
    for own in parts:
        own += [one for one in dice.sample(documents, k=2) if one not in own]
    for number, own in enumerate(parts):
        build(tmp_path / f"p{number}", own, settings)
    wanted = build(tmp_path / "whole", sorted(documents, key=lambda one: one.id), settings)
    for turn in range(2):
        order = dice.sample(range(len(parts)), k=len(parts))
        with Index.merge([tmp_path / f"p{n}" for n in order], tmp_path / f"m{turn}") as merged:
            assert merged.digest == wanted
            assert merged.report is not None and merged.report.failures == merged.report.warnings == ()
            assert merged.retrieve("Who met Nansen?", filter="year>=1920").text
            # It can be changed like any other.
            merged.update(remove=documents[0].id)
            rest = sorted(documents[1:], key=lambda one: one.id)
            assert merged.digest == build(tmp_path / f"rest{turn}", rest, settings)


@pytest.mark.parametrize("others", [["a"], ["a", "z"], ["z", "b", "a"]])
def test_documents_that_several_parts_hold_stand_by_their_ids(tmp_path: Path, others: list[str]) -> None:
    """Also where one of the parts holds all of them, in another order."""
    documents = {name: document(name) for name in ("z", "b", "a")}
    build(tmp_path / "p", documents.values())
    build(tmp_path / "q", [documents[name] for name in others])
    wanted = build(tmp_path / "whole", [documents[name] for name in sorted(documents)])
    for number, order in enumerate((["p", "q"], ["q", "p"])):
        with Index.merge([tmp_path / name for name in order], tmp_path / f"m{number}") as merged:
            assert merged.digest == wanted


def test_merging_in_steps_is_merging_at_once(tmp_path: Path) -> None:
    documents = [document(f"d{number}") for number in range(12)]
    parts = split(documents, 3, random.Random(3))
    for number, own in enumerate(parts):
        build(tmp_path / f"p{number}", own)
    Index.merge([tmp_path / "p2", tmp_path / "p0"], tmp_path / "m").close()
    with Index.merge([tmp_path / "m", tmp_path / "p1"], tmp_path / "all") as merged:
        assert merged.digest == build(tmp_path / "whole", sorted(documents, key=lambda one: one.id))


def test_vectors_of_a_model_are_not_made_again(tmp_path: Path) -> None:
    """The model lies elsewhere for one of the parts; it is known by its files."""
    model = small_model.save(tmp_path / "model", small_model.config(max_position_embeddings=66))
    moved = tmp_path / "elsewhere"
    shutil.copytree(model, moved)
    documents = [document(f"d{number}") for number in range(9)]
    own = [Settings(embedder=f"native:{place}", llm="heuristic", core_ratio=1.0) for place in (model, moved)]
    wanted = build(tmp_path / "whole", documents, own[0])
    build(tmp_path / "a", documents[5:], own[0])
    build(tmp_path / "b", documents[:5], own[1])
    with Index.merge([tmp_path / "a", tmp_path / "b"], tmp_path / "m") as merged:
        assert merged.digest == wanted
        assert merged.report is not None
        # Only the sample, and descriptions of entities that both parts name.
        assert merged.report.usage.embedding_texts <= 10 + merged.stats()["counts"]["entities"]
    shutil.rmtree(moved)
    with Index.merge([tmp_path / "b", tmp_path / "a"], tmp_path / "m2") as merged:
        assert merged.digest == wanted  # found where the other part had it
    far = model.rename(tmp_path / "far")
    with pytest.raises(ModelMismatch, match="not on this machine"):
        Index.merge([tmp_path / "b", tmp_path / "a"], tmp_path / "m3")
    assert not (tmp_path / "m3").exists()
    there = Settings(embedder=f"native:{far}")
    with Index.merge([tmp_path / "b", tmp_path / "a"], tmp_path / "m3", settings=there) as merged:
        assert merged.digest == wanted


def test_texts_alone_are_embedded_once(tmp_path: Path) -> None:
    model = small_model.save(tmp_path / "model", small_model.config(max_position_embeddings=66))
    documents = [document(f"d{number}") for number in range(6)]
    settings = Settings(embedder=f"native:{model}")
    wanted = build(tmp_path / "whole", documents, settings)
    build(tmp_path / "a", documents[:2], settings)
    build(tmp_path / "b", documents[2:], settings)
    with Index.merge([tmp_path / "b", tmp_path / "a"], tmp_path / "m") as merged:
        assert merged.report is not None
        assert (merged.digest, merged.report.usage.embedding_tokens) == (wanted, 0)


def test_replies_are_kept_and_the_rest_is_pending(tmp_path: Path) -> None:
    """A recording in the place of a language model: a part's replies count, and no chunk is read again."""
    documents = [document(f"d{number}") for number in range(20)]
    said = tmp_path / "said.jsonl"
    build(tmp_path / "first", documents, Settings(llm="heuristic", core_ratio=1.0, record=str(said)))
    recorded = Settings(llm=f"replay:{said}", core_ratio=0.4)
    wanted = build(tmp_path / "whole", documents, recorded)
    ordered = sorted(documents, key=lambda one: one.id)
    in_order = build(tmp_path / "ordered", ordered, recorded)
    build(tmp_path / "a", documents[::2], recorded)
    build(tmp_path / "b", documents[1::2], recorded)
    said.rename(tmp_path / "gone.jsonl")  # nobody asks for it
    with Index.merge([tmp_path / "a", tmp_path / "b"], tmp_path / "m") as merged:
        report = merged.report
        assert report is not None and report.extraction is not None
        pending = report.extraction["pending"]
        assert 0 < pending < report.extraction["core"]
        assert report.extraction["asked"] == 0
        assert any(f"{pending} of " in warning for warning in report.warnings)
    (tmp_path / "gone.jsonl").rename(said)
    with Index.build([], tmp_path / "m", settings=Settings(llm=f"replay:{said}")) as whole:
        assert whole.report is not None and whole.report.extraction is not None
        assert whole.report.extraction["asked"] == pending
        assert whole.digest == in_order
    assert wanted != in_order  # the order of documents counts


def test_what_was_removed_stays_away(tmp_path: Path) -> None:
    for name in ("north", "south"):
        (tmp_path / name).mkdir()
        for number in range(3):
            (tmp_path / name / f"{name}{number}.md").write_text(document(f"{name}{number}").text, "utf-8")
        with Index.build(tmp_path / name, tmp_path / f"ix-{name}") as index:
            index.update(remove=f"{name}1.md")
    with Index.merge([tmp_path / "ix-north", tmp_path / "ix-south"], tmp_path / "m") as merged:
        assert merged.inspect.document_count == 4
    with Index.build([], tmp_path / "m") as again:
        assert again.report is not None and not again.report.changed
        assert any("skipped 2" in warning for warning in again.report.warnings)


def test_sources_of_other_machines(tmp_path: Path) -> None:
    """What is not here stays as it was read, until it is named again; what is here is read again."""
    for name in ("here", "away"):
        (tmp_path / name).mkdir()
        for number in range(3):
            (tmp_path / name / f"{name}{number}.md").write_text(document(f"{name}{number}").text, "utf-8")
        build(tmp_path / f"ix-{name}", tmp_path / name)
    wanted = build(tmp_path / "whole", [tmp_path / "away", tmp_path / "here"])
    (tmp_path / "away").rename(tmp_path / "hidden")
    with Index.merge([tmp_path / "ix-here", tmp_path / "ix-away"], tmp_path / "m") as merged:
        assert merged.digest == wanted
        assert merged.report is not None
        assert [
            w for w in merged.report.warnings if "away is not on this machine: its 3 documents are kept" in w
        ]
    (tmp_path / "here" / "here1.md").unlink()
    with Index.build([], tmp_path / "m") as again:
        assert again.report is not None
        assert (again.report.removed, again.inspect.document_count) == (1, 5)
        again.update(add=document("given"))
        assert again.inspect.document_count == 6
    (tmp_path / "hidden").rename(tmp_path / "away")
    (tmp_path / "away" / "away0.md").unlink()
    with Index.build(tmp_path / "away", tmp_path / "m") as again:
        assert again.report is not None
        assert (again.report.removed, again.report.failures, again.inspect.document_count) == (1, (), 5)
    with Index.build(tmp_path / "here", tmp_path / "m", replace=True) as again:
        assert [one.document for one in again.inspect.documents()] == ["here0.md", "here2.md"]


def test_the_command(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for name in ("a", "b"):
        build(tmp_path / name, [document(f"{name}{n}") for n in range(3)])
    assert main(["merge", str(tmp_path / "a"), str(tmp_path / "b"), "-i", str(tmp_path / "m"), "--json"]) == 0
    data = json.loads(capsys.readouterr().out)
    assert (data["documents"], data["index"]) == (
        {"total": 6, "added": 6, "removed": 0, "updated": 0},
        str(tmp_path / "m"),
    )
    assert main(["doctor", "-i", str(tmp_path / "m")]) == 0
    assert main(["merge", str(tmp_path / "a"), str(tmp_path / "b"), "-i", str(tmp_path / "m")]) == 1
    assert "already exists" in capsys.readouterr().err
