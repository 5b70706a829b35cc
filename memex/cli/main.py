"""The entry point: load the commands, run one, turn errors into a message and an exit code."""

import os
import sys

from memex.cli import (
    archive,
    backup,
    compact,
    config,
    doctor,
    find,
    forget,
    ingest,
    maintain,
    memories,
    projects,
    providers,
    run,
    serve,
    show,
    sql,
    status,
    watch,
)
from memex.cli.app import app
from memex.errors import MemexError

COMMANDS = (
    run, watch, ingest, compact, maintain, find, show, memories, projects, status, providers, sql, archive, doctor,
    backup, forget, config, serve,
)  # fmt: skip
"""The modules whose import registers commands."""
INTERRUPTED = 130


def main() -> None:
    """Run `memex`. Exit codes are those of `memex.errors`; 130 after Ctrl-C."""
    try:
        app()
    except MemexError as error:
        print(f"memex: {error}" + (f"\n  {error.hint}" if error.hint else ""), file=sys.stderr)
        sys.exit(error.exit_code)
    except SystemExit as end:
        if end.code == INTERRUPTED:  # Typer's answer to Ctrl-C
            print("memex: stopped; what was finished is kept, the same command goes on from there", file=sys.stderr)
        raise
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(1)


if __name__ == "__main__":
    main()
