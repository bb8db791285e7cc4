"""The index as tools, asked by the protocol's own client: over pipes and over HTTP."""

from __future__ import annotations

import asyncio
import json
import sys
import threading
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

from tests.process import environment, ketrag, start
from tests.support.parts import part
from tests.support.service import running
from tests.unit.apps.server.conftest import QUESTION, TEXTS

pytestmark = pytest.mark.usefixtures("loopback")
TOKEN = "0123456789abcdef0123456789abcdef"


def over_pipes(folder: Path, use: Callable[[Any], Awaitable[None]]) -> None:
    part("mcp", "server")
    from mcp.client.client import Client
    from mcp.client.stdio import StdioServerParameters, stdio_client

    command = ["-m", "ketrag_fast.apps.cli.main", "mcp", "-i", f"ships={folder}"]
    server = StdioServerParameters(command=sys.executable, args=command, env=environment())

    async def run() -> None:
        # Not sys.stderr: the default is the one of whichever test imported the library first.
        async with Client(stdio_client(server, errlog=sys.__stderr__)) as client:
            await use(client)

    asyncio.run(asyncio.wait_for(run(), 120))


def test_the_tools_over_pipes(folder: Path) -> None:
    async def use(client: Any) -> None:
        listed = {tool.name: tool for tool in (await client.list_tools()).tools}
        assert set(listed) == {"search", "ask", "read_passage", "entity", "list_documents"}
        assert all(tool.annotations.read_only_hint for tool in listed.values())
        assert listed["search"].input_schema["required"] == ["question"]

        found = (await client.call_tool("search", {"question": QUESTION, "budget": 100})).structured_content
        assert found["passages"][0]["document"] == "fram.md"
        unit = found["passages"][0]["unit"]
        near = await client.call_tool("read_passage", {"unit": unit, "before": 3, "after": 3})
        assert "".join(one["text"] for one in near.structured_content["passages"]) == TEXTS["fram"]

        node = (await client.call_tool("entity", {"name": "colin archer"})).structured_content
        assert node["name"] == "COLIN ARCHER"
        documents = (await client.call_tool("list_documents", {"containing": "m"})).structured_content
        assert (documents["index"], documents["total"]) == ("ships", 4)
        answer = (await client.call_tool("ask", {"question": QUESTION})).structured_content
        assert (answer["reason"], answer["passages"][0]["document"]) == ("no_model", "fram.md")
        explained = await client.call_tool("search", {"question": QUESTION, "explain": True, "deadline": 60})
        assert explained.structured_content["passages"][0]["why"]
        assert found["passages"][0]["metadata"] == near.structured_content["metadata"] == {"letters": 4}
        assert all(one["metadata"]["letters"] >= 3 for one in documents["documents"])
        few = (await client.call_tool("list_documents", {"filter": "letters<4"})).structured_content
        assert [one["document"] for one in few["documents"]] == ["odd.md"]
        for tool in ("search", "ask"):
            for where in ("letters<4", {"letters": {"$lt": 4}}):
                reply = await client.call_tool(tool, {"question": QUESTION, "filter": where, "top": 3})
                passages = reply.structured_content["passages"]
                assert [(one["document"], one["metadata"]) for one in passages] == [
                    ("odd.md", {"letters": 3})
                ], (tool, where)

        for tool, given, said in (
            ("search", {"question": ""}, "question"),
            ("search", {"question": "  "}, "empty_query"),
            ("search", {"question": "a", "mode": "no-such"}, "config"),
            ("search", {"question": "a", "filters": "letters<4"}, "filters"),
            ("list_documents", {"conut": 3}, "conut"),
            ("search", {"question": "a", "index": "../x"}, "unknown_index"),
            ("search", {"question": "a", "budget": 10**9}, "budget"),
            ("search", {"question": "a", "deadline": 0}, "deadline"),
            ("ask", {"question": "a", "deadline": 1e-9}, "deadline"),
            ("ask", {"question": "a", "filter": "letters="}, "input: filter"),
            ("ask", {"question": "a", "filter": {"letters": {"$no": 1}}}, "input: filter"),
            ("entity", {"name": "colin archex"}, "COLIN ARCHER"),
            ("read_passage", {"unit": 10**6}, "does not exist"),
        ):
            wrong = await client.call_tool(tool, given)
            assert wrong.is_error, (tool, given)
            assert said in wrong.content[0].text, (tool, given, wrong)
            assert str(folder) not in wrong.content[0].text
        assert not (await client.call_tool("search", {"question": "Fram"})).is_error

    over_pipes(folder, use)


SEARCH = {"jsonrpc": "2.0", "method": "tools/call"}


def searched(number: Any, **given: Any) -> str:
    return json.dumps({**SEARCH, "id": number, "params": {"name": "search", "arguments": given}})


def test_lines_over_pipes_that_cannot_be_read_get_a_reply(folder: Path) -> None:
    """Without one the client waits for ever."""
    part("mcp", "server")
    about = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}}
    hello = {"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": about}
    lines: list[tuple[str, Any, str]] = [
        (json.dumps(hello), 0, "protocolVersion"),
        (json.dumps({"jsonrpc": "2.0", "method": "notifications/initialized"}), None, ""),
        (searched(1, question="Fram \ud800"), 1, "lone surrogate"),
        (searched("two", question="Fram", filter="\udfff=1"), "two", "lone surrogate"),
        (searched("\ud800", question="Fram"), None, "id"),
        (json.dumps({**SEARCH, "params": {"name": "\ud800"}}), None, ""),
        ("no JSON", None, "not JSON"),
        ("[" * 100_000, None, "not JSON"),
        ("{}", None, "JSON-RPC"),
        ("[]", None, "JSON-RPC"),
        (searched(3, question="Fram", filter="{"), 3, "input: filter"),
        (searched(4, question="Fram"), 4, "fram.md"),
    ]
    child = start("mcp", "-i", str(folder), cwd=folder.parent, stdin=-1)
    timer = threading.Timer(120, child.kill)
    timer.start()
    try:
        assert child.stdin is not None and child.stdout is not None
        for line, number, said in lines:
            child.stdin.write(line + "\n")
            child.stdin.flush()
            if said:
                reply = json.loads(child.stdout.readline())
                assert (reply["id"], said in json.dumps(reply)) == (number, True), (line[:200], reply)
        child.stdin.close()
        assert child.wait(60) == 0
    finally:
        timer.cancel()
        child.kill()
        child.wait()
        for pipe in (child.stdin, child.stdout, child.stderr):
            if pipe is not None:
                pipe.close()


def test_requests_are_answered_although_the_input_has_ended(folder: Path) -> None:
    """As from a shell: `printf '...' | ketrag mcp`."""
    part("mcp", "server")
    about = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}}
    lines = [
        json.dumps({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": about}),
        json.dumps({"jsonrpc": "2.0", "method": "notifications/initialized"}),
        *(searched(number, question="Who built the Fram?") for number in range(1, 5)),
        searched("last", question="Fram", mode="no-such"),
    ]
    done = ketrag("mcp", "-i", str(folder), cwd=folder.parent, text="\n".join(lines), timeout=120)
    replies = {reply["id"]: reply for reply in map(json.loads, done.out.splitlines())}
    assert (done.code, set(replies)) == (0, {0, 1, 2, 3, 4, "last"})
    for number in range(1, 5):
        assert "fram.md" in json.dumps(replies[number]["result"]), replies[number]
    assert replies["last"]["result"]["isError"]


def test_a_request_that_the_client_has_cancelled_is_not_waited_for() -> None:
    part("mcp", "server")
    from ketrag_fast.apps.server.mcp_pipes import _OpenRequests

    async def wait() -> None:
        requests = _OpenRequests()
        await requests.wait()
        requests.add(1)
        requests.add("two")
        waiting = asyncio.create_task(requests.wait())
        for number in (1, None, {}, "one"):
            requests.close(number)
            await asyncio.sleep(0)
            assert not waiting.done()
        requests.close("two")
        await waiting

    asyncio.run(asyncio.wait_for(wait(), 60))


def test_the_tools_over_http_with_a_token(folder: Path) -> None:
    part("mcp", "server")
    httpx2 = part("httpx2", "server")
    from mcp.client.client import Client
    from mcp.client.streamable_http import streamable_http_client

    from ketrag_fast.apps.server.mcp_tools import create_mcp_app

    async def use(url: str) -> Any:
        http = httpx2.AsyncClient(headers={"Authorization": f"Bearer {TOKEN}"}, trust_env=False)
        async with http, Client(streamable_http_client(url, http_client=http)) as client:
            found = await client.call_tool("search", {"question": QUESTION})
            return found.structured_content["passages"][0]["document"]

    with running(folder, token=TOKEN, make=create_mcp_app) as service:
        with service.client() as plain:
            for headers in ({}, {"Authorization": "Bearer wrong"}):
                assert plain.post("/mcp", json={}, headers=headers).status_code == 401
            good = {"Authorization": f"Bearer {TOKEN}"}
            evil = {**good, "Origin": "https://evil.example"}
            assert plain.post("/mcp", json={}, headers=evil).status_code == 403
            assert plain.post("/mcp", json={}, headers={**good, "Host": "evil.example"}).status_code == 421
        assert asyncio.run(asyncio.wait_for(use(f"{service.url}/mcp"), 60)) == "fram.md"
