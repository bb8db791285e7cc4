"""Bundles in an object store, tried against moto's server on this machine."""

from __future__ import annotations

import json
import resource
import signal
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from ketrag_fast import Document, Index, Settings
from ketrag_fast.errors import BackendError, ConfigError, IndexDamaged, IndexMissing, StorageFull
from ketrag_fast.index import object_stores
from ketrag_fast.index.indexes import Indexes
from tests.process import ketrag
from tests.support.parts import part

moto = part("moto.server", "checks")
s3fs = part("s3fs", "checks")
boto3 = part("boto3", "checks")
pytestmark = pytest.mark.usefixtures("loopback")
FRAM = Document("fram", "Nansen sailed the Fram into the ice.", "Fram")
MAUD = Document("maud", "Amundsen sailed the Maud into the ice.", "Maud")
NORTH = "s3://polar/north.bundle"


@pytest.fixture(scope="module")
def server() -> Iterator[str]:
    running = moto.ThreadedMotoServer("127.0.0.1", 0)
    running.start()
    host, port = running.get_host_and_port()
    yield f"http://{host}:{port}"
    running.stop()


@pytest.fixture
def bucket(server: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> dict[str, str]:
    """An empty bucket `polar`; the variables with which it is reached."""
    variables = {
        "AWS_ACCESS_KEY_ID": "test",
        "AWS_SECRET_ACCESS_KEY": "test",
        "AWS_DEFAULT_REGION": "us-east-1",
        "AWS_ENDPOINT_URL": server,
        "XDG_CACHE_HOME": str(tmp_path / "cache"),
    }
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    s3fs.S3FileSystem.clear_instance_cache()
    client = boto3.client("s3")
    client.create_bucket(Bucket="polar")
    for one in client.list_objects_v2(Bucket="polar").get("Contents", []):
        client.delete_object(Bucket="polar", Key=one["Key"])
    return variables


def build(path: Path, *documents: Document) -> Index:
    return Index.build(documents, path, settings=Settings(threads=1), replace=True)


def copies(folder: Path) -> list[Path]:
    return sorted((folder / "cache" / "ketrag-fast" / "objects").glob("*/*"))


def test_an_index_is_opened_from_a_bucket_and_again_when_it_changes(
    bucket: dict[str, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with build(tmp_path / "north", FRAM) as index:
        size = index.bundle(NORTH)
        digest = index.digest
        with pytest.raises(ConfigError, match="exists"):
            index.bundle(NORTH)
    assert boto3.client("s3").head_object(Bucket="polar", Key="north.bundle")["ContentLength"] == size
    with Index.open(NORTH) as far:
        assert far.digest == digest and far.retrieve("Fram").passages[0].document == "fram"
    first = copies(tmp_path)
    assert len(first) == 1
    downloads: list[Path] = []
    download = object_stores._Store.download

    def counted(self: Any, file: Path) -> None:
        downloads.append(file)
        download(self, file)

    monkeypatch.setattr(object_stores._Store, "download", counted)
    Index.open(NORTH).close()
    assert not downloads
    with build(tmp_path / "north", FRAM, MAUD) as index:
        index.bundle(NORTH, replace=True)
    with Index.open(NORTH) as far:
        assert len(far) == 2
    assert len(downloads) == 1 and len(copies(tmp_path)) == 2
    Index.unbundle(NORTH, tmp_path / "restored")
    assert len(Index.open(tmp_path / "restored")) == 2


def test_shards_of_a_bucket_are_searched_together(bucket: dict[str, str], tmp_path: Path) -> None:
    for name, document in (("north", FRAM), ("south", MAUD)):
        with build(tmp_path / name, document) as index:
            index.bundle(f"s3://polar/{name}.bundle")
    named = {name: f"s3://polar/{name}.bundle" for name in ("north", "south")}
    with Index.open(named["north"]) as north, Index.open(named["south"]) as south:
        found = Indexes({"north": north, "south": south}).retrieve("Who sailed into the ice?")
        assert {one.index for one in found.passages} == {"north", "south"}
    run = ketrag("search", "-i", ",".join(named.values()), "Maud", "--json", cwd=tmp_path, **bucket)
    assert run.code == 0, run
    hit = json.loads(run.out)["hits"][0]
    assert (hit["document"], hit["index"]) == ("maud", named["south"])
    run = ketrag("stats", "-i", NORTH, cwd=tmp_path, **bucket)
    assert run.code == 0, run
    run = ketrag("index", ".", "-i", NORTH, cwd=tmp_path, **bucket)
    assert run.code == 2 and "is built in a folder" in run.err


def test_what_cannot_be_read_is_a_typed_error(bucket: dict[str, str], tmp_path: Path) -> None:
    with pytest.raises(IndexMissing, match="no such object"):
        Index.open("s3://polar/none.bundle")
    boto3.client("s3").put_object(Bucket="polar", Key="text", Body=b"not a bundle")
    with pytest.raises(IndexDamaged):
        Index.open("s3://polar/text")
    assert copies(tmp_path) == []
    with build(tmp_path / "north", FRAM) as index:
        index.bundle(NORTH)
    content = bytearray(boto3.client("s3").get_object(Bucket="polar", Key="north.bundle")["Body"].read())
    content[len(content) // 2] ^= 1
    boto3.client("s3").put_object(Bucket="polar", Key="north.bundle", Body=bytes(content))
    with pytest.raises(IndexDamaged):
        Index.open(NORTH)


def test_a_bucket_without_rights(bucket: dict[str, str], server: str, tmp_path: Path) -> None:
    with build(tmp_path / "north", FRAM) as index:
        index.bundle(NORTH)
        # From now on, the server checks that the keys are those of a user who may do this.
        require_rights(server, after="0")
        try:
            with pytest.raises(BackendError, match=r"north\.bundle is not permitted"):
                Index.open(NORTH)
            with pytest.raises(BackendError, match=r"north\.bundle is not permitted"):
                index.bundle(NORTH, replace=True)
        finally:
            require_rights(server, after="inf")


def require_rights(server: str, *, after: str) -> None:
    head = {"Content-Type": "application/octet-stream"}
    request = urllib.request.Request(f"{server}/moto-api/reset-auth", after.encode(), head)
    with urllib.request.urlopen(request) as reply:
        assert reply.status == 200


def test_a_store_that_cannot_be_reached(bucket: dict[str, str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_ENDPOINT_URL", "http://127.0.0.1:9")
    monkeypatch.setenv("AWS_MAX_ATTEMPTS", "1")
    s3fs.S3FileSystem.clear_instance_cache()
    with pytest.raises(BackendError, match=r"north\.bundle cannot be used"):
        Index.open(NORTH)


def test_a_cache_without_space(bucket: dict[str, str], tmp_path: Path) -> None:
    with build(tmp_path / "north", FRAM) as index:
        index.bundle(NORTH)
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (4096, before[1]))
    try:
        with pytest.raises(StorageFull):
            Index.open(NORTH)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
    assert copies(tmp_path) == []
    Index.open(NORTH).close()
