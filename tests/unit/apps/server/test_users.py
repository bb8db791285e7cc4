"""Users of a service: tokens, documents and abilities on every endpoint, revoked without a restart; its
log."""

from __future__ import annotations

import contextlib
import json
import os
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from ketrag_fast import Document, Index, Settings
from ketrag_fast.apps.cli.main import main
from ketrag_fast.apps.server.users import (
    UsersFile,
    add_user,
    check_private,
    digest_of,
    parse_users,
    revoke_user,
)
from ketrag_fast.errors import ConfigError
from tests.process import ketrag
from tests.support.parts import part
from tests.support.service import running

pytestmark = pytest.mark.usefixtures("loopback")
SECRET = "The red team meets Oskar at the lighthouse."


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    documents = [
        Document("red.md", SECRET, "Red plan", {"team": "red"}),
        Document("blue.md", "The blue team meets Paula at the bridge.", "Blue plan", {"team": "blue"}),
        Document("blue2.md", "Paula of the blue team has the keys of the boat.", "Boat", {"team": "blue"}),
    ]
    path = tmp_path_factory.mktemp("team") / "index"
    Index.build(documents, path, settings=Settings(threads=1, llm="heuristic")).close()
    return path


@pytest.fixture
def file(tmp_path: Path) -> str:
    return str(tmp_path / "users.jsonl")


@pytest.fixture(params=[True, False], ids=["front", "application"])
def team(folder: Path, file: str, request: pytest.FixtureRequest) -> Iterator[Any]:
    """The service, and the headers of its users by name."""
    with _team(folder, file, front=request.param) as found:
        yield found


@contextlib.contextmanager
def _team(folder: Path, file: str, *, front: bool) -> Iterator[Any]:
    tokens = {
        "admin": add_user(file, "admin", None, ["read", "add", "remove"]),
        "blue": add_user(file, "blue", "team=blue", ["read"]),
        "feeder": add_user(file, "feeder", None, ["add"]),
    }
    heads = {name: {"Authorization": f"Bearer {token}"} for name, token in tokens.items()}
    with running(folder, users=file, front=front) as service:
        yield service, heads


READS = (
    ("POST", "/v1/retrieve", {"question": "Who meets at the lighthouse?"}),
    ("POST", "/v1/retrieve", {"question": "Who meets at the lighthouse?", "explain": True}),
    ("POST", "/v1/retrieve", {"questions": ["lighthouse", "red team"]}),
    ("POST", "/v1/ask", {"question": "Who meets at the lighthouse?"}),
    ("POST", "/v1/ask", {"question": "Who meets at the lighthouse?", "stream": True}),
    ("POST", "/v1/search", {"query": "lighthouse red team"}),
    ("POST", "/v1/grep", {"pattern": r"Osk\w+|Paula"}),
    ("GET", "/v1/documents?preview=200", None),
    ("GET", "/v1/stats", None),
    ("GET", "/v1/fields", None),
    ("GET", "/v1/themes", None),
    ("GET", "/v1/graph", None),
    ("GET", "/v1/graph-view", None),
    ("GET", "/v1/builds", None),
    ("GET", "/v1/indexes", None),
    ("GET", "/v1/models", None),
)


def test_a_user_sees_the_permitted_documents_alone_on_every_endpoint(team: Any) -> None:
    service, heads = team
    with service.client() as client:
        for method, path, body in READS:
            for name in ("blue", "admin", "blue"):
                reply = client.request(method, path, json=body, headers=heads[name])
                assert reply.status_code == 200, (path, reply.text)
                if name == "blue":
                    assert "Oskar" not in reply.text, path
                    assert "red.md" not in reply.text, path
                    assert "Red plan" not in reply.text, path
        found = client.post(
            "/v1/retrieve", json={"question": "Oskar at the lighthouse"}, headers=heads["admin"]
        )
        assert SECRET in found.text
        for path in ("/v1/text?path=red.md", "/v1/graph/Oskar"):
            assert client.get(path, headers=heads["admin"]).status_code == 200
            assert client.get(path, headers=heads["blue"]).status_code == 404
        assert client.get("/v1/documents", headers=heads["blue"]).json()["total"] == 2
        assert client.get("/metrics", headers=heads["admin"]).status_code == 200
        assert client.get("/metrics", headers=heads["blue"]).status_code == 403
        forged = {"question": "Oskar", "allow": "team=red"}
        assert client.post("/v1/retrieve", json=forged, headers=heads["blue"]).status_code == 422


def test_tools_of_assistants_see_what_their_user_may_see(folder: Path, file: str) -> None:
    """Neither results, counts, instructions nor resources tell of other documents."""
    part("mcp", "server")
    from ketrag_fast.apps.server.mcp_tools import create_mcp_app

    tokens = {
        "admin": add_user(file, "admin", None, ["read"]),
        "blue": add_user(file, "blue", "team=blue", ["read"]),
        "feeder": add_user(file, "feeder", None, ["add"]),
    }
    accept = "application/json, text/event-stream"
    heads = {name: {"Authorization": f"Bearer {token}", "Accept": accept} for name, token in tokens.items()}
    calls: tuple[tuple[str, dict[str, Any]], ...] = (
        ("search", {"query": "Who meets at the lighthouse?"}),
        ("list", {}),
        ("grep", {"pattern": r"Osk\w+|Paula"}),
        ("themes", {}),
        ("read", {"path": "red.md"}),
    )
    hello = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}}
    with running(folder, users=file, make=create_mcp_app) as service, service.client() as client:

        def send(user: str, method: str, **params: Any) -> Any:
            body = {"jsonrpc": "2.0", "id": 1, "method": method, "params": params}
            more = {} if method == "initialize" else {"MCP-Protocol-Version": "2025-06-18"}
            return client.post("/mcp", json=body, headers={**heads[user], **more})

        for name in ("admin", "blue"):
            texts = [send(name, "initialize", **hello).text, send(name, "resources/list").text]
            texts += [
                send(name, "tools/call", name=tool, arguments=arguments).text for tool, arguments in calls
            ]
            assert all('"result"' in text for text in texts), texts
            whole = "".join(texts)
            assert "3 documents" not in whole.split("tools")[0]
            assert ("Oskar" in whole) == (name == "admin")
            assert "Paula" in whole and "blue.md" in whole
            if name == "blue":
                assert "Red plan" not in whole and 'isError":true' in texts[-1]
        assert send("feeder", "tools/list").status_code == 403
        revoke_user(file, "blue")
        end = time.monotonic() + 30
        while send("blue", "tools/list").status_code != 401:
            assert time.monotonic() < end, "revoked users are refused without a restart"
            time.sleep(0.1)


def test_users_of_tools_need_http(folder: Path, file: str) -> None:
    done = ketrag("mcp", "-i", str(folder), "--users", file, cwd=folder.parent)
    assert done.code == 2 and "--users needs --http" in done.err


def test_no_token_no_answer(team: Any) -> None:
    service, heads = team
    with service.client() as client:
        for method, path, body in READS:
            for token in (None, "Bearer", "Bearer wrong", f"Basic {heads['admin']['Authorization'][7:]}"):
                given = {} if token is None else {"Authorization": token}
                assert client.request(method, path, json=body, headers=given).status_code == 401
        assert client.get("/health").status_code == 200


def test_abilities(team: Any) -> None:
    service, heads = team
    new = {"documents": [{"id": "new.md", "text": "A new lamp.", "metadata": {"team": "blue"}}]}
    with service.client() as client:
        assert (
            client.post("/v1/retrieve", json={"question": "lamp"}, headers=heads["feeder"]).status_code == 403
        )
        about = client.get("/v1/indexes", headers=heads["blue"]).json()
        assert (about["writable"], about["user"], about["may"]) == (False, "blue", ["read"])
        assert client.post("/v1/documents", json=new, headers=heads["blue"]).status_code == 403
        upload = ("/v1/uploads?name=a.txt", {"Content-Type": "application/octet-stream"})
        assert (
            client.post(upload[0], content=b"text", headers={**heads["blue"], **upload[1]}).status_code == 403
        )
        assert client.post("/v1/documents", json=new, headers=heads["feeder"]).status_code == 200
        for body in (new, {"remove": ["new.md"]}):
            refused = client.post("/v1/documents", json=body, headers=heads["feeder"])
            assert (refused.status_code, refused.json()["code"]) == (403, "forbidden")
            assert '"remove"' in refused.json()["hint"]
        replace = client.post(
            "/v1/uploads?name=a.txt&replace=yes", content=b"text", headers={**heads["feeder"], **upload[1]}
        )
        assert replace.status_code == 403
        # The documents of a user are those of the newest generation.
        found = client.post("/v1/retrieve", json={"question": "new lamp"}, headers=heads["blue"])
        assert "A new lamp." in found.text
        removed = client.post("/v1/documents", json={"remove": ["new.md"]}, headers=heads["admin"])
        assert removed.status_code == 200


def _status(client: Any, head: dict[str, str], wanted: int) -> None:
    until = time.monotonic() + 20
    while time.monotonic() < until:
        reply = client.post("/v1/retrieve", json={"question": "keys of the boat"}, headers=head)
        if reply.status_code == wanted:
            return
        time.sleep(0.05)
    raise AssertionError(reply.status_code)


@pytest.mark.parametrize("front", [True, False], ids=["front", "application"])
def test_revoked_and_edited_without_a_restart(
    folder: Path, file: str, capfd: pytest.CaptureFixture[str], front: bool
) -> None:
    with _team(folder, file, front=front) as (service, heads), service.client() as client:
        _status(client, heads["blue"], 200)
        good = Path(file).read_text()
        Path(file).write_text(good[:-30])  # an editor that has written half of it
        time.sleep(0.3)
        _status(client, heads["blue"], 200)
        _status(client, heads["feeder"], 403)
        Path(file).unlink()
        time.sleep(0.3)
        _status(client, heads["blue"], 200)
        Path(file).write_text(good)
        Path(file).chmod(0o600)
        revoke_user(file, "blue")
        _status(client, heads["blue"], 401)
        _status(client, heads["admin"], 200)
        head = {"Authorization": f"Bearer {add_user(file, 'blue', 'team=red', ['read'])}"}
        _status(client, head, 200)
        found = client.post("/v1/retrieve", json={"question": "Who has the keys?"}, headers=head)
        assert "Paula" not in found.text
    said = capfd.readouterr().err
    assert "the users stay as they were" in said
    assert "changed: blue" in said


def test_an_unknown_field_hides_an_index(folder: Path, file: str) -> None:
    head = {"Authorization": f"Bearer {add_user(file, 'odd', 'floor=3', ['read'])}"}
    with running(folder, users=file) as service, service.client() as client:
        reply = client.post("/v1/retrieve", json={"question": "boat"}, headers=head)
        assert (reply.status_code, reply.json()["code"]) == (404, "unknown_index")
        assert client.get("/v1/indexes", headers=head).json()["indexes"] == []


@pytest.mark.parametrize(
    ("line", "wrong"),
    [
        ("no json", "not a JSON object"),
        ("[1]", "not a JSON object"),
        ('{"name": "a b", "sha256": "%s"}', "name must have"),
        ('{"name": "a", "sha256": "12"}', "sha256 must be"),
        ('{"name": "a", "sha256": "%s", "may": ["write"]}', "may must be"),
        ('{"name": "a", "sha256": "%s", "can": []}', "unknown field 'can'"),
        ('{"name": "a", "sha256": "%s", "allow": ""}', "allow"),
        ('{"name": "a", "sha256": "%s", "allow": "team="}', "allow"),
        ('{"name": "a", "sha256": "%s", "allow": "team=a", "may": ["read", "add"]}', "may only read"),
        ('{"name": "a", "sha256": "%s"}\n{"name": "a", "sha256": "11%s"}', "another user has the name a"),
        ('{"name": "a", "sha256": "%s"}\n{"name": "b", "sha256": "%s"}', "another user has the token"),
    ],
)
def test_a_wrong_file_names_its_line(line: str, wrong: str) -> None:
    digest = "0" * 64
    text = "# comment\n\n" + line.replace('"11%s"', f'"11{digest[2:]}"').replace("%s", digest)
    with pytest.raises(ConfigError, match=rf"users\.jsonl, line [34]: .*{wrong}"):
        parse_users(text, "users.jsonl")


@pytest.mark.skipif(os.name == "nt", reason="permissions of Unix")
def test_files_that_others_can_read_are_refused(folder: Path, file: str, tmp_path: Path) -> None:
    add_user(file, "anna", None, ["read"])
    assert Path(file).stat().st_mode & 0o777 == 0o600
    Path(file).chmod(0o644)
    with pytest.raises(ConfigError, match="every user of this machine can read") as caught:
        UsersFile(file)
    assert caught.value.hint == f"chmod 600 {file}"
    Path(file).chmod(0o660)
    with pytest.raises(ConfigError, match="its group can write"):
        check_private(file, "--users")
    (tmp_path / "token").write_text("0123456789abcdef0123456789abcdef")
    (tmp_path / "token").chmod(0o644)
    done = ketrag("serve", "-i", str(folder), "--token-file", "token", "--port", "0", cwd=tmp_path)
    assert done.code == 2
    assert "chmod 600" in done.err


def test_the_command_adds_lists_and_revokes(file: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["users", "add", "anna", "--users", file, "--allow", "team=red"]) == 0
    token = capsys.readouterr().out.strip()
    assert len(token) >= 22
    users = UsersFile(file)
    found = users.of(token)
    assert found is not None
    assert (found.name, found.allow, found.may) == ("anna", "team=red", frozenset({"read"}))
    assert token not in Path(file).read_text()
    assert digest_of(token).hex() in Path(file).read_text()
    assert main(["users", "add", "anna", "--users", file]) == 2
    assert main(["users", "add", "robot", "--users", file, "--may", "fly"]) == 2
    assert main(["users", "add", "robot", "--users", file, "--may", "read,add"]) == 0
    capsys.readouterr()
    assert main(["users", "list", "--users", file]) == 0
    assert capsys.readouterr().out == "anna  read  team=red\nrobot  read,add  all documents\n"
    assert main(["users", "revoke", "anna", "--users", file]) == 0
    assert [user.name for user in UsersFile(file)] == ["robot"]
    assert main(["users", "revoke", "anna", "--users", file]) == 2


def test_a_line_for_each_request(folder: Path, file: str, capfd: pytest.CaptureFixture[str]) -> None:
    head = {"Authorization": f"Bearer {add_user(file, 'anna', None, ['read'])}"}
    for front in (True, False):
        with running(folder, users=file, log="json", front=front) as service, service.client() as client:
            for _ in range(2):
                client.post("/v1/retrieve", json={"question": "lighthouse"}, headers=head)
            client.get("/v1/graph-view?query=lighthouse", headers=head)
            client.get("/v1/stats", headers={"Authorization": "Bearer wrong"})
        rows = [json.loads(line) for line in capfd.readouterr().err.splitlines() if '"path"' in line]
        shown = [(row["user"], row["method"], row["path"], row["status"]) for row in rows]
        assert shown == [
            ("anna", "POST", "/v1/retrieve", 200),
            ("anna", "POST", "/v1/retrieve", 200),
            ("anna", "GET", "/v1/graph-view", rows[2]["status"]),
            (None, "GET", "other", 401),
        ]
        assert all("question" not in row and row["ms"] >= 0 for row in rows)
        asked = {"users": file, "log": "text", "log_questions": True}
        with running(folder, front=front, **asked) as service, service.client() as client:
            client.post("/v1/retrieve", json={"question": "light\nhouse"}, headers=head)
        assert r"anna POST /v1/retrieve 200" in (line := capfd.readouterr().err)
        assert r'"light\nhouse"' in line
    with running(folder, users=file, slow_seconds=1e-9) as service, service.client() as client:
        client.post("/v1/retrieve", json={"question": "lighthouse"}, headers=head)
        client.get("/v1/stats")
    quiet = capfd.readouterr().err
    assert " slow" in quiet
    assert " 401 " in quiet
    assert "lighthouse" not in quiet


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="Linux has a device that is always full")
def test_a_log_on_a_full_disk_does_not_end_the_service(folder: Path) -> None:
    saved = os.dup(2)
    full = os.open("/dev/full", os.O_WRONLY)
    try:
        os.dup2(full, 2)
        with running(folder, log="text") as service, service.client() as client:
            for _ in range(50):
                reply = client.post("/v1/retrieve", json={"question": "lighthouse"})
                assert reply.status_code == 200
    finally:
        os.dup2(saved, 2)
        os.close(saved)
        os.close(full)


def test_a_file_that_is_emptied_before_it_is_written_keeps_its_users(tmp_path: Path) -> None:
    file = tmp_path / "users.jsonl"
    token = add_user(str(file), "anna", None, ["read"])
    users, content = UsersFile(str(file)), file.read_bytes()
    file.write_bytes(b"")
    assert users.refresh() is None and users.of(token) is not None
    os.utime(file, (1_000_000_000, 1_000_000_000))  # empty for longer: the last user was revoked
    assert users.refresh() == "0 users; changed: anna" and users.of(token) is None
    file.write_bytes(content)
    assert users.refresh() == "1 users; changed: anna" and users.of(token) is not None
