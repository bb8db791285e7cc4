"""A bundle with the embedding model: on the other side nothing else is needed."""

from __future__ import annotations

import hashlib
import io
import json
import shutil
import tarfile
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from ketrag_fast import Document, Index, Settings
from ketrag_fast.apps.cli.main import main
from ketrag_fast.errors import BackendError, ConfigError, IndexDamaged, KetragError, ModelMismatch
from tests import small_model
from tests.support.changed import bundle, reembed
from tests.support.endpoint import Endpoint

DOCUMENTS = [Document(f"d{i}", f"w{i} w{i + 1} w{i + 2} harbour", f"w{i}") for i in range(12)]


@pytest.fixture
def model(tmp_path: Path) -> Path:
    return small_model.save(tmp_path / "model", small_model.config(max_position_embeddings=66))


@pytest.fixture
def made(model: Path, tmp_path: Path) -> Path:
    """The bundle; the model is not on this machine any more."""
    Index.build(DOCUMENTS, tmp_path / "ix", settings=Settings(embedder=f"native:{model}")).close()
    assert main(["bundle", "-i", str(tmp_path / "ix"), str(tmp_path / "b"), "--with-model"]) == 0
    model.rename(tmp_path / "hidden")
    return tmp_path / "b"


def test_it_answers_and_is_built_upon_with_nothing_else(made: Path, tmp_path: Path) -> None:
    with pytest.raises(BackendError), Index.open(tmp_path / "ix") as index:
        index.retrieve("w3 w4", mode="text")
    there = tmp_path / "far" / "ix"
    Index.unbundle(made, there)
    (tmp_path / "far").rename(tmp_path / "moved")  # wherever the folder goes
    there = tmp_path / "moved" / "ix"
    with Index.open(there, settings=Settings(offline=True)) as index:
        context = index.retrieve("w3 w4", mode="text")
        assert context.passages and not context.warnings
        report = index.update(add=Document("new", "w8 w9 w30", "new"))
        assert report.added == 1 and report.usage.embedding_tokens > 0
        assert report.settings_changed == ()
        digest = index.digest
    assert main(["doctor", "-i", str(there)]) == 0
    with Index.build([], there) as again:
        assert again.report is not None and not again.report.changed
    # And it can be carried on from here, with its model.
    assert main(["bundle", "-i", str(there), str(tmp_path / "b2"), "--with-model"]) == 0
    Index.unbundle(tmp_path / "b2", tmp_path / "third")
    shutil.rmtree(tmp_path / "moved")
    with Index.open(tmp_path / "third") as index:
        assert index.digest == digest
        assert index.retrieve("w3 w4", mode="text").passages
    (tmp_path / "hidden").rename(tmp_path / "model")
    settings = Settings(embedder=f"native:{tmp_path / 'model'}")
    with Index.build(
        [*DOCUMENTS, Document("new", "w8 w9 w30", "new")], tmp_path / "w", settings=settings
    ) as whole:
        assert whole.digest == digest


def test_parts_with_models_of_their_own_can_be_merged(made: Path, tmp_path: Path) -> None:
    Index.unbundle(made, tmp_path / "a")
    Index.unbundle(made, tmp_path / "b-ix")
    with Index.open(tmp_path / "b-ix") as index:
        index.update(add=Document("new", "w8 w9 w30", "new"))
    with Index.merge([tmp_path / "a", tmp_path / "b-ix"], tmp_path / "m") as merged:
        assert merged.inspect.document_count == 13
        assert merged.retrieve("w3 w4", mode="text").passages


def test_another_model_later_is_not_hidden_by_it(made: Path, tmp_path: Path) -> None:
    Index.unbundle(made, tmp_path / "a")
    other = small_model.save(tmp_path / "other", small_model.config(max_position_embeddings=66), seed=4)
    with reembed(tmp_path / "a", f"native:{other}") as index:
        assert index.retrieve("w3 w4", mode="text").passages
        assert index.stats()["backends"]["embedder"] == f"native:{other}"
    with Index.open(tmp_path / "a") as index:
        assert index.retrieve("w3 w4", mode="text").passages


def test_damage_of_the_model_is_found(made: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    Index.unbundle(made, tmp_path / "a")
    weights = tmp_path / "a" / "model" / "model.safetensors"
    data = bytearray(weights.read_bytes())
    data[-5] ^= 1
    weights.write_bytes(data)
    assert main(["doctor", "-i", str(tmp_path / "a")]) == 4
    assert "model.safetensors is altered" in capsys.readouterr().out
    with pytest.raises(ModelMismatch), Index.open(tmp_path / "a") as index:
        index.retrieve("w3 w4", mode="text")
    weights.unlink()
    assert main(["doctor", "-i", str(tmp_path / "a")]) == 4


def rewritten(made: Path, to: Path, change: dict[str, bytes | None], model: object = ...) -> Path:
    """The bundle with other members, and a list that says so."""
    with tarfile.open(made) as tar:
        members = {m.name: tar.extractfile(m).read() for m in tar}  # type: ignore[union-attr]
    about = json.loads(members.pop("bundle.json"))
    for name, data in change.items():
        members.pop(name, None)
        if data is not None:
            members[name] = data
    about["files"] = [
        {"name": n, "size": len(d), "blake2b": hashlib.blake2b(d, digest_size=32).hexdigest()}
        for n, d in members.items()
    ]
    if model is not ...:
        about["model"] = model
    with tarfile.open(to, "w", format=tarfile.PAX_FORMAT) as tar:
        for name, data in {"bundle.json": json.dumps(about).encode(), **members}.items():
            info = tarfile.TarInfo(name)
            info.size = len(data)
            tar.addfile(info, io.BytesIO(data))
    return to


def test_models_that_are_not_the_indexs(made: Path, tmp_path: Path) -> None:
    with tarfile.open(made) as tar:
        about = json.loads(tar.extractfile("bundle.json").read())  # type: ignore[union-attr]
    record = about["model"]
    other = small_model.save(tmp_path / "other", small_model.config(max_position_embeddings=66), seed=4)
    stranger = (other / "model.safetensors").read_bytes()
    cases: list[tuple[dict[str, bytes | None], object]] = [
        ({"model/model.safetensors": stranger}, ...),
        ({"model/model.safetensors": None}, ...),
        ({"model/modules.json": b"[]"}, ...),
        ({"model/../../evil": b"x"}, ...),
        ({"/model/evil": b"x"}, ...),
        ({"model\\evil": b"x"}, ...),
        ({}, {**record, "fingerprint": "0" * 32}),
        ({}, {**record, "spec": "native:elsewhere"}),
        ({}, {"spec": 3}),
        ({}, [1]),
        ({}, None),
    ]
    for number, (change, model) in enumerate(cases):
        file = rewritten(made, tmp_path / f"c{number}", change, model)
        with pytest.raises(IndexDamaged):
            Index.unbundle(file, tmp_path / f"t{number}")
        assert not (tmp_path / f"t{number}").exists()
    assert not list(tmp_path.glob(".unbundle-*")) and not list(tmp_path.rglob("evil"))
    Index.unbundle(rewritten(made, tmp_path / "right", {}), tmp_path / "t")
    whole = made.read_bytes()
    for cut in range(1, 9):
        made.write_bytes(whole[: len(whole) * cut // 9])
        with pytest.raises(KetragError):
            Index.unbundle(made, tmp_path / "cut")
        assert not (tmp_path / "cut").exists()


def test_what_cannot_go_along(made: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(BackendError, match=r"no folder|not on this machine"):
        bundle(tmp_path / "ix", tmp_path / "x", with_model=True)
    small_model.save(tmp_path / "model", small_model.config(max_position_embeddings=66), seed=4)
    with pytest.raises(ModelMismatch, match="the index was built with"):
        bundle(tmp_path / "ix", tmp_path / "x", with_model=True)
    Index.build(DOCUMENTS, tmp_path / "plain").close()
    bundle(tmp_path / "plain", tmp_path / "p1", with_model=True)  # it needs none
    bundle(tmp_path / "plain", tmp_path / "p2")
    assert (tmp_path / "p1").read_bytes() == (tmp_path / "p2").read_bytes()
    assert not (tmp_path / "x").exists()


@pytest.mark.usefixtures("loopback")
def test_a_model_behind_an_endpoint_stays_there(tmp_path: Path) -> None:
    def encode(texts: Sequence[str]) -> NDArray[np.float32]:
        rows = [[len(text), text.count("w") + 1.0, 1.0] for text in texts]
        return np.array(rows, np.float32)

    with Endpoint(encode) as server:
        settings = Settings(embedder=f"openai:some@{server.url}")
        Index.build(DOCUMENTS, tmp_path / "ix", settings=settings).close()
        with pytest.raises(ConfigError, match="not a model folder"):
            bundle(tmp_path / "ix", tmp_path / "b", with_model=True)
        bundle(tmp_path / "ix", tmp_path / "b")
