"""`memex-inject`: what a prompt hook of an AI CLI runs. Standard library only, and never in the way.

It reads the hook's JSON on stdin, asks the Memex service on this machine, and prints its answer: one JSON
object. On any trouble, and when the time is up, it prints nothing and exits with 0.
"""

import http.client
import json
import os
import sys
import threading
import tomllib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

MODES = ("full", "smart", "file", "off")
DEFAULTS: dict[str, Any] = {"mode": "off", "timeout_seconds": 1.0, "port": 10013}
MAX_BYTES = 8 * 1024 * 1024


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the hook. A thread does the work: whatever it waits for, the deadline ends the process."""
    try:
        config = configured(os.environ)
        mode = asked_mode(sys.argv[1:] if arguments is None else arguments) or config["mode"]
        if mode not in MODES or mode == "off":
            return
        answers: list[str] = []
        worker = threading.Thread(target=lambda: answers.append(_ask(mode, config["port"])), daemon=True)
        worker.start()
        worker.join(float(config["timeout_seconds"]))
        if answers and answers[0]:
            sys.stdout.buffer.write(answers[0].encode())
            sys.stdout.flush()
    except BaseException:
        pass
    finally:
        os._exit(0)  # not even a thread that still reads stdin holds the CLI up


def asked_mode(arguments: Sequence[str]) -> str:
    """Read `--mode=X` or `--mode X`; "" when it is not given."""
    for place, argument in enumerate(arguments):
        if argument.startswith("--mode="):
            return argument.removeprefix("--mode=")
        if argument == "--mode":
            return arguments[place + 1] if place + 1 < len(arguments) else ""
    return ""


def configured(environ: Mapping[str, str]) -> dict[str, Any]:
    """Read mode, deadline and port as `memex.settings` does: environment, then config.toml, then defaults."""
    base = environ.get("XDG_CONFIG_HOME") or Path.home() / ".config"
    path = Path(environ.get("MEMEX_CONFIG") or Path(base, "memex", "config.toml")).expanduser()
    table = tomllib.loads(path.read_text("utf-8-sig")) if path.is_file() else {}
    inject, serve = table.get("inject", {}), table.get("serve", {})
    found = {
        "mode": environ.get("MEMEX_INJECT_MODE") or inject.get("mode"),
        "timeout_seconds": environ.get("MEMEX_INJECT_TIMEOUT_SECONDS") or inject.get("timeout_seconds"),
        "port": environ.get("MEMEX_SERVE_PORT") or serve.get("port"),
    }
    return DEFAULTS | {key: value for key, value in found.items() if value is not None}


def _ask(mode: str, port: Any) -> str:
    """Send the hook's JSON to the service; return its answer when that is one JSON object, else ""."""
    try:
        event = json.loads(sys.stdin.buffer.read(MAX_BYTES))
        if not isinstance(event, dict):
            return ""
        connection = http.client.HTTPConnection("127.0.0.1", int(port))
        body = json.dumps({"mode": mode, "event": event})
        connection.request("POST", "/api/inject", body, {"Content-Type": "application/json"})
        answer = connection.getresponse()
        text = answer.read(MAX_BYTES).decode()
        return text if answer.status == 200 and isinstance(json.loads(text), dict) else ""
    except Exception:
        return ""


if __name__ == "__main__":
    main()
