"""Several indexes become one: the index that a build over all their documents gives, to the byte."""

from __future__ import annotations

import json
import random
import shutil
import signal
import sqlite3
import time
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from ketrag_fast import Document, Index, Settings
from ketrag_fast.apps.cli.main import main
from ketrag_fast.base.progress import Event
from ketrag_fast.errors import (
    Cancelled,
    ConfigError,
    DocumentError,
    IndexDamaged,
    IndexIncompatible,
    IndexLocked,
    IndexMissing,
    KetragError,
    ModelMismatch,
    ReadOnly,
)
from ketrag_fast.storage.layout import Layout
from ketrag_fast.storage.lock import builder_lock
from tests import small_model
from tests.process import command, start

NAMES = ("Amundsen", "Shackleton", "Nansen", "Frank Wild", "Tom Crean", "Oslo", "Fram", "Endurance")
WORDS = (
    "river",
    "stone",
    "market",
    "winter",
    "bridge",
    "library",
    "painter",
    "harbour",
    "ship",
    "w1",
    "w7",
    "w22",
)


def document(name: str, more: str = "") -> Document:
    """Some sentences that share names with others'."""
    dice = random.Random(name + more)
    said = [
        f"{dice.choice(NAMES)} met {dice.choice(NAMES)} by the {' '.join(dice.choices(WORDS, k=5))}."
        for _ in range(dice.randint(2, 6))
    ]
    return Document(name, " ".join(said), name.upper(), {"year": dice.randrange(1900, 1950)})


def build(place: Path, sources: object, settings: Settings | None = None) -> str:
    with Index.build(sources, place, settings=settings) as index:  # type: ignore[arg-type]
        return index.digest


def split(documents: Sequence[Document], count: int, dice: random.Random) -> list[list[Document]]:
    """Into so many parts, none of them empty, in an order of their own."""
    parts: list[list[Document]] = [[] for _ in range(count)]
    for number, one in enumerate(dice.sample(documents, k=len(documents))):
        (parts[number] if number < count else dice.choice(parts)).append(one)
    return parts


@pytest.mark.parametrize("seed", range(6))
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


def folder(base: Path) -> Path:
    """Files of one document and of many, below one another."""
    (base / "deep").mkdir(parents=True)
    for name in ("zebra.md", "deep/alpha.md", "deep/mu.md", "beta.txt"):
        (base / name).write_text(document(name).text, "utf-8")
    (base / "page.html").write_text("<title>Page</title><p>Tom Crean met Nansen.</p>", "utf-8")
    (base / "walk.py").write_text('def walk() -> None:\n    """Goes."""\n', "utf-8")
    (base / "rows.csv").write_text("id,text\nc1,A river\nc2,A stone\n", "utf-8")
    (base / "zip.txt").symlink_to(base / "beta.txt")
    rows = [{"_id": f"row{n}", "title": "", "text": document(f"row{n}").text} for n in (3, 1, 2, 11, 7, 5)]
    (base / "rows.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows), "utf-8")
    (base / "bad.jsonl").write_text('{"_id": "ok", "text": "A ship in winter."}\n{"_id": 3\n', "utf-8")
    return base


@pytest.mark.parametrize("count", [1, 2, 5])
def test_shards_together_are_one_build(tmp_path: Path, count: int) -> None:
    """Whatever the order of the sources: it is in the shards as in the whole."""
    notes, other = folder(tmp_path / "notes"), tmp_path / "a-file.md"
    other.write_text("The Fram came home. Nansen was there.", "utf-8")
    given = [document(f"given{n}") for n in (4, 2, 9, 1)]
    sources = [notes, other, *given]
    wanted = build(tmp_path / "whole", sources)
    for number in range(1, count + 1):
        build(tmp_path / f"s{number}", sources, Settings(shard=f"{number}/{count}"))
        # It is remembered, and nothing changes when it is built again.
        with Index.build([], tmp_path / f"s{number}") as again:
            assert again.report is not None and not again.report.changed
            said = [text for text in again.report.warnings if "outside shard" in text]
            assert len(said) == (count > 1)
    places = [tmp_path / f"s{number}" for number in range(1, count + 1)]
    with Index.merge(reversed(places), tmp_path / "m") as merged:
        assert merged.digest == wanted
        assert merged.stats()["settings"]["shard"] is None
        assert [failure.document for failure in merged.report.failures] == ["bad.jsonl:2"]  # type: ignore[union-attr]
    with Index.build([], tmp_path / "m") as again:  # its sources are read again, and are the same
        assert again.digest == wanted


def test_a_merge_that_lacks_a_shard_says_so(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    notes = folder(tmp_path / "notes")
    (notes / "bad.jsonl").unlink()
    places = [str(tmp_path / f"s{number}") for number in range(4)]
    for number, place in enumerate(places, 1):
        assert main(["index", str(notes), "-i", place, "--shard", f"{number}/4"]) == 0
    capsys.readouterr()
    assert main(["merge", places[3], places[0], "-i", str(tmp_path / "half")]) == 0
    assert "shard 2/4, 3/4 is missing" in capsys.readouterr().err
    with Index.open(tmp_path / "half") as half:
        assert half.stats()["settings"]["shard"] == "1,4/4"
    assert main(["merge", *places[1:3], str(tmp_path / "half"), "-i", str(tmp_path / "all"), "--json"]) == 0
    assert "index is incomplete" not in capsys.readouterr().err
    with Index.open(tmp_path / "all") as merged:
        assert merged.digest == build(tmp_path / "whole", notes)
    build(tmp_path / "plain", notes)
    with pytest.raises(ConfigError, match="not shards of one build"):
        Index.merge([places[0], tmp_path / "plain"], tmp_path / "no")
    assert main(["index", str(notes), "-i", str(tmp_path / "x"), "--shard", "1/3"]) == 0
    with pytest.raises(ConfigError, match=r"shard 1/4; .* shard 1/3"):
        Index.merge([places[0], tmp_path / "x"], tmp_path / "no")


@pytest.mark.parametrize(
    "text", ["0/3", "4/3", "1", "1/0", "-1/3", "a/b", "1/3/5", "1,/3", "1/99999999", "²/3"]
)
def test_shards_that_make_no_sense(text: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(ConfigError, match="0 < I <= N"):
        Settings(shard=text)
    assert main(["index", ".", f"--shard={text}"]) == 2


def test_one_id_for_two_documents(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    same = [document(f"d{number}") for number in range(5)]
    a = [*same, document("x", "old"), document("y", "old")]
    b = [*same, document("x", "new"), document("y", "new"), document("z")]
    build(tmp_path / "a", a)
    build(tmp_path / "b", b)
    places = [str(tmp_path / "a"), str(tmp_path / "b")]
    with pytest.raises(
        DocumentError, match=r"2 ids have different documents in these indexes: 'x' .*/a, .*/b.*'y'"
    ):
        Index.merge(places, tmp_path / "m")
    assert not (tmp_path / "m").exists()
    for prefer, own in (("first", a), ("last", b)):
        assert main(["merge", *places, "-i", str(tmp_path / prefer), "--prefer", prefer]) == 0
        ids = {one.id: one for one in (*a, *b, *own)}
        wanted = build(tmp_path / f"w{prefer}", [ids[name] for name in sorted(ids)])
        with Index.open(tmp_path / prefer) as merged:
            assert merged.digest == wanted
    capsys.readouterr()
    assert main(["merge", *places, "-i", str(tmp_path / "n")]) == 1
    assert "--prefer first" in capsys.readouterr().err


def test_the_same_document_from_two_sources_is_one(tmp_path: Path) -> None:
    for name in ("north", "south"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "both.md").write_text("Nansen met Amundsen.", "utf-8")
        (tmp_path / name / f"{name}.md").write_text(document(name).text, "utf-8")
        build(tmp_path / f"ix-{name}", tmp_path / name)
    with Index.merge([tmp_path / "ix-south", tmp_path / "ix-north"], tmp_path / "m") as merged:
        assert [one.document for one in merged.inspect.documents()] == ["both.md", "north.md", "south.md"]
        assert merged.digest == build(tmp_path / "whole", [tmp_path / "north", tmp_path / "south"])
        assert merged.inspect.files(["both.md"]) == {"both.md": tmp_path / "north" / "both.md"}


def test_what_does_not_go_together(tmp_path: Path) -> None:
    documents = [document(f"d{number}") for number in range(6)]
    model = small_model.save(tmp_path / "model", small_model.config(max_position_embeddings=66))
    other = small_model.save(tmp_path / "other", small_model.config(max_position_embeddings=66), seed=9)
    plain, cut = tmp_path / "plain", tmp_path / "cut"
    build(plain, documents[:3])
    build(cut, documents[3:], Settings(chunk_tokens=50, core_ratio=0.5))
    build(tmp_path / "one", documents[:3], Settings(embedder=f"native:{model}"))
    build(tmp_path / "two", documents[3:], Settings(embedder=f"native:{other}"))
    build(tmp_path / "rules", documents[3:], Settings(llm="heuristic"))
    cases: list[tuple[str, str, type[KetragError], str]] = [
        ("plain", "cut", ConfigError, "chunk_tokens is 200 in .*plain and 50 in .*cut; core_ratio is 0.8"),
        ("plain", "one", ModelMismatch, "vectors of builtin"),
        ("one", "two", ModelMismatch, "fingerprint"),
        ("plain", "rules", ConfigError, "llm is 'none' in .*plain and 'heuristic'"),
        ("plain", "plain", ConfigError, "given twice"),
        ("plain", "nothing", IndexMissing, "there is no index"),
    ]
    for a, b, error, text in cases:
        with pytest.raises(error, match=text):
            Index.merge([tmp_path / a, tmp_path / b], tmp_path / "m")
        assert not (tmp_path / "m").exists()
    with pytest.raises(ReadOnly, match="already exists"):
        Index.merge([plain], cut)
    with pytest.raises(ReadOnly, match="already exists"):
        Index.merge([plain], plain)
    with pytest.raises(ConfigError, match="no index given"):
        Index.merge([], tmp_path / "m")


def test_parts_that_are_not_whole(tmp_path: Path) -> None:
    documents = [document(f"d{number}") for number in range(6)]
    whole = tmp_path / "whole"
    build(whole, documents[:3])

    def spoiled(name: str, spoil: Callable[[Path], None]) -> Path:
        place = tmp_path / name
        build(place, documents[3:])
        spoil(place)
        return place

    def sql(statement: str) -> Callable[[Path], None]:
        def run(place: Path) -> None:
            with sqlite3.connect(place / "index.sqlite") as db:
                db.execute(statement)
            db.close()

        return run

    cases: list[tuple[Path, type[KetragError], str]] = [
        (spoiled("t", lambda p: (p / "index.sqlite").unlink()), IndexDamaged, "is missing"),
        (spoiled("g", lambda p: shutil.rmtree(p / "gen-000001")), IndexMissing, "never finished"),
        (spoiled("d", sql("DELETE FROM documents WHERE id = 'd4'")), IndexMissing, "was not finished"),
        (spoiled("v", sql("UPDATE documents SET text = 'altered' WHERE id = 'd4'")), IndexDamaged, "'d4'"),
        (spoiled("f", sql("PRAGMA user_version = 99")), IndexIncompatible, "format 99"),
        (spoiled("s", lambda p: (p / "index.sqlite").write_bytes(b"x" * 9000)), IndexDamaged, "damaged"),
    ]
    for place, error, text in cases:
        with pytest.raises(error, match=text):
            Index.merge([whole, place], tmp_path / "m")
        assert not (tmp_path / "m").exists()


def test_stopped_anywhere_it_goes_on(tmp_path: Path) -> None:
    documents = [document(f"d{number}") for number in range(10)]
    build(tmp_path / "a", documents[:4], Settings(llm="heuristic"))
    build(tmp_path / "b", documents[4:], Settings(llm="heuristic"))
    build(tmp_path / "c", [document("c")], Settings(llm="heuristic"))
    parts = [tmp_path / "a", tmp_path / "b"]
    wanted = Index.merge(parts, tmp_path / "whole").digest
    for step in range(0, 40, 3):
        calls = 0

        def stop(_: object, step: int = step) -> bool:
            nonlocal calls
            calls += 1
            return calls <= step

        place = tmp_path / f"m{step}"
        try:
            Index.merge(parts, place, progress=stop).close()
        except Cancelled:
            if step == 9:
                with pytest.raises(ReadOnly, match="unfinished merge of other indexes"):
                    Index.merge([tmp_path / "a", tmp_path / "c"], place)
            with Index.merge(list(reversed(parts)), place) as merged:
                assert merged.digest == wanted
            assert not list((place / "work").iterdir())
        else:
            break
    assert step > 5


@pytest.mark.parametrize("kills", [3, pytest.param(40, marks=pytest.mark.soak)])
def test_killed_anywhere_it_goes_on(tmp_path: Path, kills: int) -> None:
    documents = [document(f"d{number}") for number in range(300)]
    for number in range(3):
        build(tmp_path / f"p{number}", documents[number::3], Settings(llm="heuristic"))
    wanted = build(tmp_path / "whole", sorted(documents, key=lambda one: one.id), Settings(llm="heuristic"))
    dice = random.Random(11)
    argv = ["merge", "p0", "p1", "p2", "-i"]
    for number in range(kills):
        place = tmp_path / f"m{number}"
        child = start(*argv, str(place), cwd=tmp_path)
        limit = time.monotonic() + 60
        while not (place / "work").exists() and child.poll() is None and time.monotonic() < limit:
            time.sleep(0.005)
        time.sleep(dice.random() * 0.4)
        child.send_signal(signal.SIGKILL)
        child.communicate(timeout=60)
        done = command(*argv, str(place), cwd=tmp_path)
        assert done.code == 0 or "already exists" in done.err, done.err
        assert Layout(place).generations() == [1] and not list((place / "work").iterdir())
        with Index.build([], place) as merged:
            assert merged.digest == wanted
        shutil.rmtree(place)


def test_killed_before_it_began_and_after_it_ended(tmp_path: Path) -> None:
    documents = [document(f"d{number}") for number in range(4)]
    parts = [tmp_path / "a", tmp_path / "b"]
    for place, own in zip(parts, (documents[:2], documents[2:]), strict=True):
        build(place, own)
    target = Layout(tmp_path / "m")
    target.create()
    (target.work / "merge.json.tmp").write_bytes(b"{")
    wanted = Index.merge(parts, target.root).digest
    with pytest.raises(ReadOnly, match="already exists"):
        Index.merge(parts, target.root)

    def stop(event: Event) -> bool:
        if event.stage == "words":
            record.append((Layout(tmp_path / "n").work / "merge.json").read_bytes())
        return True

    record: list[bytes] = []
    Index.merge(parts, tmp_path / "n", progress=stop).close()
    last = Layout(tmp_path / "n")
    (last.work / "merge.json").write_bytes(record[0])
    last.current.unlink()
    with Index.merge(parts, last.root) as merged:
        assert merged.digest == wanted and last.generations() == [1]
    assert not list(last.work.iterdir())
    other = tmp_path / "strange"
    (other / "work").mkdir(parents=True)
    (other / "letter.txt").write_text("mine")
    with pytest.raises(ReadOnly, match="already exists"):
        Index.merge(parts, other)


def test_a_part_that_is_being_built_is_not_read(tmp_path: Path) -> None:
    build(tmp_path / "a", [document("a")])
    build(tmp_path / "b", [document("b")])
    with builder_lock(Layout(tmp_path / "b")), pytest.raises(IndexLocked):
        Index.merge([tmp_path / "a", tmp_path / "b"], tmp_path / "m")
    assert not (tmp_path / "m").exists()


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
