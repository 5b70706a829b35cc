"""A real MCP client, over stdio and HTTP, lists and calls every tool."""

import json
import os
import subprocess
import sys
from contextlib import asynccontextmanager

import anyio
import httpx2
import pytest
from mcp import Client, StdioServerParameters, stdio_client
from mcp.client.streamable_http import streamable_http_client

from memex.serve.mcp import make_mcp
from memex.serve.recall import PAGE_TOKENS
from memex.text import estimate_tokens
from tests.serve.serving import Serving

SESSION = "claude:5d0c1f52-6c1e-4b8e-9a55-0f4d2f1a7c01"
TOOLS = {
    "search_history", "get_session", "get_recent_sessions", "timeline", "get_observations", "list_projects", "remember",
}  # fmt: skip
COMMAND = [sys.executable, "-m", "memex.cli.main", "mcp"]


@asynccontextmanager
async def over_stdio(_home):
    parameters = StdioServerParameters(command=COMMAND[0], args=COMMAND[1:], env=dict(os.environ))
    async with Client(stdio_client(parameters)) as client:
        yield client


@asynccontextmanager
async def over_http(home):
    with Serving(home) as service:
        head = {"Authorization": f"Bearer {service.token}"}
        async with (
            httpx2.AsyncClient(headers=head, timeout=60) as http,
            Client(streamable_http_client(f"{service.url}/mcp", http_client=http)) as client,
        ):
            yield client


@asynccontextmanager
async def in_memory(memex):
    async with Client(make_mcp(memex)) as client:
        yield client


async def call(client, name, **arguments):
    """Call a tool; return what it says, parsed."""
    result = await client.call_tool(name, arguments)
    assert not result.is_error, result.content
    found = result.structured_content
    return found["result"] if set(found) == {"result"} else found


async def walk(client):
    """Do what a model does: look around, search, read on, remember."""
    listed = (await client.list_tools()).tools
    assert {tool.name for tool in listed} == TOOLS
    assert all(len(tool.description) > 80 for tool in listed)
    assert "BEFORE" in client.instructions
    projects = await call(client, "list_projects")
    recent = await call(client, "get_recent_sessions", project=projects[0]["name"], limit=2)
    assert 1 <= len(recent) <= 2
    found = await call(client, "search_history", query="export", limit=3)
    hit = found["hits"][0]
    assert len(found["hits"]) <= 3 and hit["level"] == "raw" and hit["tokens"] > 0 and "\n" not in hit["what"]
    session = await call(client, "get_session", id=SESSION)
    assert session["summary"]["summary"] and len(session["talks"]) == 3 and session["raw_tokens"] > 0
    raw = await call(client, "get_session", id=SESSION, format="raw")
    assert raw["of"] == session["raw_lines"] and raw["lines"][0]["text"]
    around = await call(client, "timeline", session=SESSION, prompt=2, before=1, after=2)
    assert [line["prompt"] for line in around["lines"]] == [1, 2, 2, 3] and around["next"] is None
    lines = await call(client, "get_observations", session=SESSION)
    [whole] = await call(client, "get_observations", ids=[lines[0]["id"]])
    assert whole["session_id"] == SESSION and whole["title"]
    made = await call(client, "remember", text="Never deploy on Fridays", kind="rule")
    assert made["kind"] == "rule"


@pytest.mark.parametrize("connected", [over_stdio, over_http])
def test_a_client_lists_and_calls_every_tool(filled, connected):
    async def main():
        async with connected(filled.home) as client:
            await walk(client)

    anyio.run(main)
    assert [row["text"] for row in filled.lake.scan("memories").to_pylist()] == ["Never deploy on Fridays"]


@pytest.mark.parametrize(
    ("name", "arguments", "says"),
    [
        ("get_session", {"id": "../../serve.token"}, "no session is called"),
        ("get_session", {"id": "nobody"}, "no session is called"),
        ("get_session", {"id": SESSION, "format": "html"}, "format"),
        ("search_history", {"query": "x", "since": "tomorrow"}, "is no date"),
        ("search_history", {"query": "x", "limit": 10_000}, "limit"),
        ("timeline", {"session": SESSION, "prompt": 99}, "no text of its own"),
        ("get_observations", {}, "neither a session nor ids"),
        ("remember", {"text": " "}, "nothing to remember"),
        ("remember", {"text": "x", "kind": "decision", "project": "nobody"}, "no project is called"),
    ],
)
def test_a_wrong_call_says_what_is_wrong(filled, name, arguments, says):
    async def main():
        async with in_memory(filled) as client:
            return await client.call_tool(name, arguments)

    result = anyio.run(main)
    assert result.is_error and says in result.content[0].text


def test_pages_lead_through_a_session_and_are_small(filled):
    async def main():
        lines, start = [], 0
        async with in_memory(filled) as client:
            while start is not None:
                page = await call(client, "get_session", id=SESSION, format="raw", start=start)
                assert sum(estimate_tokens(line["text"]) for line in page["lines"]) <= PAGE_TOKENS + 100
                lines += page["lines"]
                start = page["next"]
        return lines, page["of"]

    lines, count = anyio.run(main)
    assert len(lines) == count


def test_mcp_over_http_needs_the_token(filled):
    with Serving(filled.home) as service:
        ping = {"jsonrpc": "2.0", "id": 1, "method": "tools/list"}
        assert service.ask("/mcp", ping, token=None)[0] == 401
        assert service.ask("/mcp", ping, Origin="http://evil.example")[0] == 403


def test_nothing_but_protocol_reaches_stdout(filled):
    start = {
        "protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "t", "version": "1"},
    }  # fmt: skip
    given = [
        {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": start},
        {"jsonrpc": "2.0", "method": "notifications/initialized"},
        {"jsonrpc": "2.0", "id": 2, "method": "tools/call",
         "params": {"name": "search_history", "arguments": {"query": "export", "level": "all"}}},
        {"jsonrpc": "2.0", "id": 3, "method": "tools/call",
         "params": {"name": "remember", "arguments": {"text": "Tea, not coffee", "kind": "preference"}}},
    ]  # fmt: skip
    with subprocess.Popen(COMMAND, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL) as process:
        process.stdin.write("".join(json.dumps(one) + "\n" for one in given).encode())
        process.stdin.flush()
        answers = [json.loads(process.stdout.readline()) for _ in range(3)]
        rest, _errors = process.communicate(timeout=60)
    assert {answer["id"] for answer in answers} == {1, 2, 3} and rest == b""
