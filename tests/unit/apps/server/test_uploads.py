"""Uploaded files: read by their format, never a silent replacement, and refused with a reason."""

from __future__ import annotations

import io
import itertools
import socket
import sys
import tempfile
import time
import zipfile
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest

from ketrag_fast import Document, Index, Settings
from ketrag_fast.apps.server import uploads
from tests.process import ketrag
from tests.support.samples import samples
from tests.support.service import command, httpx, running

pytestmark = pytest.mark.usefixtures("loopback")
BINARY = {"Content-Type": "application/octet-stream"}


@pytest.fixture
def own(tmp_path: Path) -> Path:
    folder = tmp_path / "index"
    Index.build([Document("a.md", "The Fram sailed.", "Fram")], folder, settings=Settings(threads=1)).close()
    return folder


def send(client: Any, name: str, content: bytes, **more: str) -> Any:
    return client.post("/v1/uploads", params={"name": name, **more}, content=content, headers=BINARY)


def test_a_file_is_read_by_its_format(own: Path) -> None:
    with running(own, writable=True) as service, service.client() as client:
        reply = send(client, "ship.html", b"<p>The <b>quagga</b> sailed on the Maud.</p>").json()
        assert (reply["state"], reply["documents"]) == ("read", ["ship.html"])
        found = client.post("/v1/retrieve", json={"question": "quagga"}).json()["passages"]
        assert found[0]["text"] == "The quagga sailed on the Maud."


def test_samples_of_all_formats_are_read_or_refused_with_a_reason(own: Path) -> None:
    states = {}
    with running(own, writable=True) as service, service.client() as client:
        for name, content in list(samples().items())[:20]:
            reply = send(client, name, content, replace="yes")
            assert reply.status_code == 200, name
            assert reply.json()["state"] == "read" or reply.json()["warnings"], name
            assert "ketrag-upload-" not in reply.text, "no path of the service"
            assert not any(text.startswith("…") for text in reply.json()["warnings"]), reply.text
            states[name] = reply.json()["state"]
    assert list(states.values()).count("read") >= 15, states


def test_a_document_is_replaced_only_if_that_is_requested(own: Path) -> None:
    with running(own, writable=True) as service, service.client() as client:
        reply = send(client, "a.md", b"The Maud sailed.").json()
        assert (reply["state"], reply["existing"]) == ("exists", ["a.md"])
        assert client.post("/v1/retrieve", json={"question": "Maud"}).json()["passages"] == []
        assert send(client, "a.md", b"The Maud sailed.", replace="yes").json()["state"] == "read"
        assert client.post("/v1/retrieve", json={"question": "Maud"}).json()["passages"]


def test_the_files_of_a_form_are_read_each_with_a_result(own: Path) -> None:
    table = b"name,year\nFram,1892\n"
    parts = [("file", ("maud.html", b"<p>The quagga sailed.</p>")), ("file", ("../ships.csv", table))]
    parts += [("file", ("junk.bin", b"\0\1\2\xff")), ("file", ("a.md", b"The Maud sailed."))]
    with running(own, writable=True) as service, service.client() as client:
        reply = client.post("/v1/uploads", files=parts).json()
        states = [(one["name"], one["state"]) for one in reply["files"]]
        assert states == [
            ("maud.html", "read"),
            ("ships.csv", "read"),
            ("junk.bin", "refused"),
            ("a.md", "exists"),
        ]
        assert client.post("/v1/retrieve", json={"question": "quagga"}).json()["passages"]
        again = client.post("/v1/uploads", params={"replace": "yes"}, files=parts[3:]).json()["files"]
        assert [one["state"] for one in again] == ["read"]


def test_a_form_without_files_a_broken_and_a_large_one_add_nothing(
    own: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(uploads, "LARGEST", 1000)
    kind = {"Content-Type": "multipart/form-data; boundary=x"}
    with running(own, writable=True, body=1000) as service, service.client() as client:
        for content, code in (
            (b"--x--\r\n", "bad_request"),
            (b"--x\r\nContent-Disposition: form-data; name=file\r\n\r\ntext\r\n--x--\r\n", "bad_request"),
            (b"no form", "bad_request"),
            (b"--x\r\n" + b"x" * 2000, "too_large"),
        ):
            reply = client.post("/v1/uploads", content=content, headers=kind)
            assert reply.json()["code"] == code, reply.text
        reply = client.post("/v1/uploads", content=b"", headers={"Content-Type": "multipart/form-data"})
        assert reply.status_code == 422
        many = [("file", (f"{number}.md", b"")) for number in range(101)]
        assert client.post("/v1/uploads", files=many).status_code in (413, 422)
        foreign = {"Origin": "https://elsewhere.example"}
        parts = [("file", ("b.md", b"The quagga sailed."))]
        assert client.post("/v1/uploads", files=parts, headers=foreign).json()["code"] == "foreign_origin"
        assert client.post("/v1/retrieve", json={"question": "quagga"}).json()["passages"] == []


@pytest.mark.parametrize("name", ["../../a.md", "C:\\notes\\a.md", "/etc/a.md", "..a.md", "a\u0000.md"])
def test_a_name_is_never_a_path(own: Path, name: str) -> None:
    with running(own, writable=True) as service, service.client() as client:
        assert send(client, name, b"Text.").json()["name"] == "a.md"
        assert send(client, "..", b"Text.").status_code == 422
    assert not (own.parent / "a.md").exists()


def test_a_bomb_and_a_file_without_text_are_refused(own: Path) -> None:
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("word/document.xml", b"<w>" + b" " * 200_000_000 + b"</w>")
    with running(own, writable=True) as service, service.client() as client:
        for name, content in (
            ("bomb.docx", packed.getvalue()),
            ("junk.bin", b"\0\1\2\xff"),
            ("empty.md", b""),
        ):
            reply = send(client, name, content).json()
            assert (reply["state"], reply["documents"]) == ("refused", []), name


def test_a_large_file_another_type_and_a_service_for_reading_are_errors(
    own: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(uploads, "LARGEST", 10)
    with running(own, writable=True, body=20) as service, service.client() as client:
        reply = send(client, "b.md", b"x" * 21)
        assert (reply.status_code, reply.json()["code"]) == (413, "too_large")
        assert "--max-body" in reply.json()["hint"]
        reply = client.post(
            "/v1/uploads", params={"name": "b.md"}, content=b"x", headers={"Content-Type": "text/plain"}
        )
        assert reply.status_code == 415
    with running(own) as service, service.client() as client:
        assert send(client, "b.md", b"x").json()["code"] == "read_only"


def test_two_files_at_a_time_are_both_read(own: Path) -> None:
    """One waits or is refused with 409 and a time to wait, after which it is read; neither is lost."""

    def upload(number: int) -> str:
        with service.client() as client:
            for _ in range(100):
                reply = send(client, f"boat{number}.md", f"The boat quagga{number} sailed.".encode())
                if reply.status_code != 409:
                    return str(reply.json()["state"])
                assert reply.headers["Retry-After"] == "1"
                time.sleep(0.1)
        return "locked"

    with running(own, writable=True) as service, ThreadPoolExecutor(2) as pool:
        assert list(pool.map(upload, (1, 2))) == ["read", "read"]
        with service.client() as client:
            for number in (1, 2):
                found = client.post("/v1/retrieve", json={"question": f"quagga{number}"}).json()["passages"]
                assert found[0]["document"] == f"boat{number}.md"


def test_a_connection_that_breaks_in_the_middle_adds_nothing(own: Path) -> None:
    head = (
        "POST /v1/uploads?name=half.md HTTP/1.1\r\nHost: localhost\r\n"
        "Content-Type: application/octet-stream\r\nContent-Length: 100000\r\n\r\n"
    )
    before = set(Path(tempfile.gettempdir()).glob("ketrag-upload-*"))
    with running(own, writable=True) as service, service.client() as client:
        address = urlsplit(service.url)
        with socket.create_connection((str(address.hostname), int(address.port or 80))) as line:
            line.sendall(head.encode() + b"The quagga sailed. " * 100)
        end = time.monotonic() + 30
        while set(Path(tempfile.gettempdir()).glob("ketrag-upload-*")) - before:
            assert time.monotonic() < end, "the part that arrived is removed"
            time.sleep(0.1)
        assert client.post("/v1/retrieve", json={"question": "quagga"}).json()["passages"] == []
        assert send(client, "half.md", b"The quagga sailed.").json()["state"] == "read"


@pytest.mark.skipif(sys.platform != "linux", reason="/proc has the memory of a process")
def test_500_megabytes_are_refused_without_memory_and_without_a_rest(own: Path, tmp_path: Path) -> None:
    """Whole, as a form, and with a connection that breaks; the service takes what comes next."""
    part_of_body, parts = b"The quagga sailed again. " * 40_000, 500  # a million bytes each
    (tmp_path / "tmp").mkdir()
    options = ("-i", str(own), "--allow-write")
    with (
        command(*options, cwd=tmp_path, TMPDIR=str(tmp_path / "tmp")) as (port, process),
        httpx.Client(base_url=f"http://127.0.0.1:{port}", timeout=120, trust_env=False) as client,
    ):
        assert send(client, "b.md", b"The Maud sailed.").json()["state"] == "read"
        before = most_memory(process.pid)

        def body() -> Iterator[bytes]:
            yield from itertools.repeat(part_of_body, parts)

        head = b'--x\r\nContent-Disposition: form-data; name="file"; filename="big.md"\r\n\r\n'
        for kind, beginning in (
            ("application/octet-stream", b""),
            ("multipart/form-data; boundary=x", head),
        ):
            length = str(len(beginning) + parts * len(part_of_body))
            headers = {"Content-Type": kind, "Content-Length": length}
            content = itertools.chain([beginning], body())
            reply = client.post("/v1/uploads", params={"name": "big.md"}, content=content, headers=headers)
            assert (reply.status_code, reply.json()["code"]) == (413, "too_large")
        with socket.create_connection(("127.0.0.1", port)) as line:
            line.sendall(
                b"POST /v1/uploads?name=half.md HTTP/1.1\r\nHost: localhost\r\nContent-Type: "
                b"application/octet-stream\r\nContent-Length: 500000000\r\n\r\n"
            )
            for _ in range(50):
                line.sendall(part_of_body)
        assert send(client, "c.md", b"The Gjoa sailed.").json()["state"] == "read"
        end = time.monotonic() + 60
        while left := list((tmp_path / "tmp").glob("ketrag-upload-*")):
            assert time.monotonic() < end, left
            time.sleep(0.1)
        assert client.post("/v1/retrieve", json={"question": "quagga"}).json()["passages"] == []
        assert most_memory(process.pid) - before < 30_000_000


def most_memory(process: int) -> int:
    """Return the most bytes of memory that a process had."""
    status = Path(f"/proc/{process}/status").read_text()
    return 1024 * int(status.partition("VmHWM:")[2].split()[0])


def test_the_command_creates_an_empty_index_that_clients_fill(tmp_path: Path) -> None:
    with (
        command("-i", "team", "--allow-write", cwd=tmp_path) as (port, _),
        httpx.Client(base_url=f"http://127.0.0.1:{port}", timeout=60, trust_env=False) as client,
    ):
        assert send(client, "ship.md", b"The quagga sailed.").json()["state"] == "read"
    with command("-i", "team", "--allow-write", cwd=tmp_path) as (port, _):  # it is kept
        reply = httpx.post(
            f"http://127.0.0.1:{port}/v1/retrieve", json={"question": "quagga"}, trust_env=False
        )
        assert reply.json()["passages"][0]["document"] == "ship.md"
    ended = ketrag("serve", "-i", "other", "--port", "0", cwd=tmp_path)
    assert (ended.code, (tmp_path / "other").exists()) == (4, False)
    assert "no index in" in ended.err
