"""A service that speaks the protocol of OpenAI, on a real socket, in a process or a thread of its own.

What it answers is decided by a script: a list of moves that it makes in turn and then over and over, or a chance for
each move. It writes every request, and whether it answered it, to a log that a test reads. Its answers say only what
the request says, so that they are grounded, unless a move makes them otherwise.

    python -m tests.llm.server '{"moves": ["ok", "busy"]}' requests.jsonl
"""

import json
import random
import re
import sys
import threading
import time
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

INVENTED = "It also changed /invented/by_nobody.py at commit deadbeef1, see https://nowhere.example/x."
ERRORS = {
    "busy": (429, "Rate limit reached", "rate_limit_exceeded"),
    "broken": (500, "Internal error", ""),
    "overloaded": (503, "overloaded", ""),
    "no_key": (401, "Incorrect API key provided", "invalid_api_key"),
    "no_money": (402, "Payment required", ""),
    "no_quota": (429, "You exceeded your current quota, please check your billing details", "insufficient_quota"),
    "forbidden": (403, "This key may not use that", ""),
    "no_model": (404, "The model does not exist", "model_not_found"),
    "too_long": (400, "This model's maximum context length is 4096 tokens", "context_length_exceeded"),
    "filtered": (400, "Flagged by our content filter", "content_filter"),
    "bad_request": (400, "Unknown parameter", ""),
}


@dataclass
class Script:
    """What the service does."""

    moves: list[str] = field(default_factory=lambda: ["ok"])
    chances: dict[str, float] = field(default_factory=dict)
    seed: int = 0
    delay: float = 0.0
    hang: float = 30.0
    retry_after: str = ""
    limit: int = 0
    """Tokens (of four characters) beyond which a prompt is too long; 0 is no limit."""
    words: dict[str, str] = field(default_factory=dict)
    """Texts that every answer gets: field → text."""


class Service(ThreadingHTTPServer):
    """The service; `requests` is its log."""

    daemon_threads = True
    request_queue_size = 128

    def __init__(self, script: Script, log: Path | None = None) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.script = script
        self.requests: list[dict[str, Any]] = []
        self.under_way = self.most_under_way = 0
        self._random = random.Random(script.seed)
        self._log = log
        self._lock = threading.Lock()

    @property
    def endpoint(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}/v1"

    def next_move(self) -> str:
        with self._lock:
            if self.script.chances:
                roll = self._random.random()
                for move, chance in self.script.chances.items():
                    roll -= chance
                    if roll < 0:
                        return move
                return "ok"
            return self.script.moves[len(self.requests) % len(self.script.moves)]

    def note(self, **entry: Any) -> None:
        with self._lock:
            self.requests.append(entry)
            if self._log:
                with self._log.open("a") as file:
                    file.write(json.dumps(entry) + "\n")

    def count(self, by: int) -> None:
        with self._lock:
            self.under_way += by
            self.most_under_way = max(self.most_under_way, self.under_way)

    @property
    def answered(self) -> list[dict[str, Any]]:
        return [r for r in self.requests if r["move"] == "ok"]


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: Service

    def log_message(self, *_args: Any) -> None:
        pass

    def do_GET(self) -> None:
        self._send(200, {"object": "list", "data": [{"id": "test-model", "object": "model"}]})

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        self.server.count(1)
        try:
            self._answer(body)
        except (BrokenPipeError, ConnectionResetError):
            pass
        finally:
            self.server.count(-1)

    def _answer(self, body: dict[str, Any]) -> None:
        script = self.server.script
        prompt = "\n".join(str(m["content"]) for m in body["messages"])
        move = self.server.next_move()
        if script.limit and len(prompt) // 4 > script.limit:
            move = "too_long"
        self.server.note(move=move, body=body, key=self.headers.get("Authorization"), at=time.time())
        time.sleep(script.delay)
        if move in ERRORS:
            status, message, code = ERRORS[move]
            self._send(status, {"error": {"message": message, "code": code, "type": "x"}}, script.retry_after)
        elif move == "hang":
            time.sleep(script.hang)
            self.close_connection = True
        elif move == "cut":
            self.close_connection = True
        elif move == "html":
            self._raw(200, b"<html>it works</html>", "text/html")
        elif move == "error_200":
            self._send(200, {"error": {"message": "upstream is overloaded", "code": 502}})
        elif move == "no_choices":
            self._send(200, {**completion("", prompt), "choices": []})
        else:
            finish = "length" if move == "unfinished" else "stop"
            answer = completion(content(move, body, script), prompt, finish)
            self._send(200, as_tool_call(answer, body) if body.get("tools") else answer)

    def _send(self, status: int, body: Any, retry_after: str = "") -> None:
        self._raw(status, json.dumps(body).encode(), "application/json", retry_after)

    def _raw(self, status: int, data: bytes, kind: str, retry_after: str = "") -> None:
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(data)))
        if retry_after and status >= 400:
            self.send_header("Retry-After", retry_after)
        self.end_headers()
        self.wfile.write(data)


def completion(text: str, prompt: str, finish: str = "stop") -> dict[str, Any]:
    """A chat completion."""
    used = {"prompt_tokens": len(prompt) // 4, "completion_tokens": max(1, len(text) // 4)}
    return {
        "id": "x", "object": "chat.completion", "created": 1, "model": "test-model",
        "choices": [{"index": 0, "finish_reason": finish, "message": {"role": "assistant", "content": text}}],
        "usage": {**used, "total_tokens": sum(used.values()), "prompt_tokens_details": {"cached_tokens": 0}},
    }  # fmt: skip


def as_tool_call(answer: dict[str, Any], body: dict[str, Any]) -> dict[str, Any]:
    """The same answer, given as the arguments of a call."""
    message = answer["choices"][0]["message"]
    called = {"name": body["tools"][0]["function"]["name"], "arguments": message["content"]}
    message |= {"content": None, "tool_calls": [{"id": "c1", "type": "function", "function": called}]}
    return answer


def content(move: str, body: dict[str, Any], script: Script) -> str:
    """What a model writes."""
    reply = honest_reply(body, script)
    match move:
        case "half":
            text = json.dumps(reply)
            return text[: len(text) // 2]
        case "prose":
            return "Sure! The person asked for something and it was done."
        case "chatty":
            return f"<think>hm {{</think>Here it is:\n```json\n{json.dumps(reply)}\n```\nAnything else?"
        case "wrong_types":
            return json.dumps({key: {"a": 1} for key in reply})
        case "empty":
            return ""
        case "shell":
            return json.dumps({key: "N/A" if isinstance(value, str) else [] for key, value in reply.items()})
        case "invented":
            return json.dumps(invented(reply))
        case _:
            return json.dumps(reply, ensure_ascii=False)


def honest_reply(body: dict[str, Any], script: Script) -> dict[str, Any]:
    """An answer in the shape that the request asks for, in words of the request itself."""
    name = shape_of(body)
    asked = next(m["content"] for m in body["messages"] if m["role"] == "user")
    request = " ".join(re.findall(r"<request>\n(.*?)\n</request>", asked, re.DOTALL)[:1]).strip()
    words = " ".join(request.split()[:20]) or "a request"
    if name == "OperationsReply":
        numbers = re.findall(r'<operation n="(\d+)">', asked)
        entry = {"type": "Change", "title": f"Worked on {words}"[:80], "facts": [], "narrative": f"Did: {words}"}
        return {"entries": [{"n": int(number), **entry, **script.words} for number in numbers]}
    if name == "TalkReply":
        return {"user_request": words, "summary": f"The person asked: {words}", "completed": "", **script.words}
    talks = re.findall(r"^request: (.*)$", asked, re.MULTILINE)
    return {"summary": f"About {talks[0] if talks else 'work'}", "key_points": talks[:3] or ["work"], **script.words}


def shape_of(body: dict[str, Any]) -> str:
    """The name of the shape that a request asks for: by schema, by tool, or in words."""
    if body.get("tools"):
        return body["tools"][0]["function"]["name"]
    if "json_schema" in body.get("response_format", {}):
        return body["response_format"]["json_schema"]["name"]
    return re.findall(r'"title": "(\w+Reply)"', str(body["messages"][0]["content"]))[-1]


def invented(reply: dict[str, Any]) -> dict[str, Any]:
    """Plant claims that no source makes."""
    planted = {}
    for key, value in reply.items():
        if isinstance(value, str) and key not in ("type",):
            planted[key] = f"{value}. {INVENTED}"
        elif isinstance(value, list):
            planted[key] = [invented(v) if isinstance(v, dict) else v for v in value]
            if key in ("facts", "key_points"):
                planted[key].append(INVENTED)
        else:
            planted[key] = value
    return planted


@contextmanager
def serving(script: Script | None = None, log: Path | None = None):
    """Run the service in a thread."""
    service = Service(script or Script(), log)
    thread = threading.Thread(target=service.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True)
    thread.start()
    try:
        yield service
    finally:
        service.shutdown()
        service.server_close()


def main() -> None:
    service = Service(Script(**json.loads(sys.argv[1])), Path(sys.argv[2]))
    print(service.endpoint, flush=True)
    service.serve_forever()


if __name__ == "__main__":
    main()
