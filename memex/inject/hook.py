"""`memex-inject`: what a prompt hook of an AI CLI runs. Standard library only, and never in the way.

It reads the hook's JSON on stdin, asks the Memex service on this machine, and prints its answer: one JSON
object. On any trouble, and when the time is up, it prints nothing and exits with 0.

The request is written by hand, since `http.client` takes longer to import than everything else here together.
"""

import json
import os
import socket
import sys
import threading
from collections.abc import Mapping, Sequence

MODES = ("full", "smart", "file", "off")
"""What can be told."""
NOTICES = ("stop", "end")
"""What the service is told: a reply is finished, a session is over. Nothing is printed."""
DEFAULTS: Mapping[str, object] = {"mode": "off", "timeout_seconds": 1.0, "port": 10013}
PROTOCOL = "1"
"""Changes with the meaning of the request; a service that names another one is not understood."""
TOKEN_FILE = "serve.token"
"""In MEMEX_HOME; holds the bearer token of the service."""
MAX_BYTES = 8 * 1024 * 1024
MARGIN = 0.1
"""Seconds of the deadline that are left for the start and the end of the process."""
_OFF = ("off", "0", "no", "false")


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the hook. A thread does the work: whatever it waits for, the deadline ends the process."""
    try:
        if os.environ.get("MEMEX_INJECT", "").strip().lower() in _OFF:
            return
        config = configured(os.environ)
        mode = asked_mode(sys.argv[1:] if arguments is None else arguments) or str(config["mode"])
        if mode not in MODES + NOTICES or mode == "off":
            return
        answers: list[str] = []
        worker = threading.Thread(target=lambda: answers.append(_answer(mode, config)), daemon=True)
        worker.start()
        worker.join(max(MARGIN, float(str(config["timeout_seconds"])) - MARGIN))
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


def configured(environ: Mapping[str, str]) -> dict[str, object]:
    """Read mode, deadline, port and home as `memex.settings` does: environment, then config.toml, then defaults."""
    table = _table(environ)
    found = {"home": environ.get("MEMEX_HOME") or _expanded(table.get("home"), environ) or _data_home(environ)}
    for section, key in (("inject", "mode"), ("inject", "timeout_seconds"), ("serve", "port")):
        part = table.get(section, {})
        assert isinstance(part, dict)
        value = environ.get(f"MEMEX_{section}_{key}".upper()) or _expanded(part.get(key), environ)
        found[key] = DEFAULTS[key] if value is None else value
    return found


def _table(environ: Mapping[str, str]) -> dict[str, object]:
    base = environ.get("XDG_CONFIG_HOME") or os.path.join(os.path.expanduser("~"), ".config")  # noqa: PTH111, PTH118
    path = os.path.expanduser(environ.get("MEMEX_CONFIG") or f"{base}/memex/config.toml")  # noqa: PTH111
    if not os.path.isfile(path):  # noqa: PTH113
        return {}
    import tomllib

    with open(path, encoding="utf-8-sig") as file:  # noqa: PTH123 - pathlib takes as long to import as all of this
        return tomllib.loads(file.read())


def _expanded(value: object, environ: Mapping[str, str]) -> object:
    """Put variables in for `${NAME}`."""
    if not isinstance(value, str) or "${" not in value:
        return value
    import re

    return re.sub(r"\$\{(\w+)\}", lambda match: environ.get(match[1], ""), value)


def _data_home(environ: Mapping[str, str]) -> str:
    """Name the default home, as `platformdirs` does."""
    if sys.platform == "darwin":
        return os.path.expanduser("~/Library/Application Support/memex")  # noqa: PTH111
    if sys.platform == "win32":
        return f"{environ.get('LOCALAPPDATA', '')}\\memex"
    return f"{environ.get('XDG_DATA_HOME', '').strip() or os.path.expanduser('~/.local/share')}/memex"  # noqa: PTH111


def _answer(mode: str, config: Mapping[str, object]) -> str:
    """Send the hook's JSON to the service; return its answer when that is one JSON object with something in it."""
    try:
        event = json.loads(sys.stdin.buffer.read(MAX_BYTES))
        if not isinstance(event, dict):
            return ""
        text = _asked(int(str(config["port"])), _token(str(config["home"])), json.dumps({"mode": mode, "event": event}))
        answer = json.loads(text)
        return text if isinstance(answer, dict) and answer and mode in MODES else ""
    except Exception:
        return ""


def _token(home: str) -> str:
    """Read the token of the service; "" without one."""
    try:
        with open(os.path.join(os.path.expanduser(home), TOKEN_FILE), encoding="ascii") as file:  # noqa: PTH111, PTH118, PTH123
            return file.read(1000).strip()
    except OSError:
        return ""


def _asked(port: int, token: str, body: str) -> str:
    """Post JSON to the service and return the body of a good answer; HTTP/1.0, so that it ends with the connection.

    Raises:
        ValueError: the answer is none, or of a service with another protocol.
    """
    data = body.encode()
    head = [
        "POST /api/inject HTTP/1.0",
        f"Host: 127.0.0.1:{port}",
        "Content-Type: application/json",
        f"Content-Length: {len(data)}",
        f"X-Memex-Protocol: {PROTOCOL}",
    ]
    if token and token.isprintable():
        head.append(f"Authorization: Bearer {token}")
    with socket.create_connection(("127.0.0.1", port)) as connection:
        connection.sendall("\r\n".join([*head, "", ""]).encode() + data)
        answer = b""
        while len(answer) <= MAX_BYTES and (piece := connection.recv(1 << 16)):
            answer += piece
    lines, _empty, text = answer.partition(b"\r\n\r\n")
    first, *rest = lines.decode("latin-1").split("\r\n")
    fields = {name.strip().lower(): value.strip() for name, _colon, value in (line.partition(":") for line in rest)}
    if first.split(" ")[1:2] != ["200"] or fields.get("x-memex-protocol", PROTOCOL) != PROTOCOL:
        raise ValueError(first)
    return text.decode()


if __name__ == "__main__":
    main()
