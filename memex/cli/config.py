"""`memex config`."""

from typing import Annotated

import typer

from memex.cli.app import app
from memex.cli.output import Json, print_json, print_table


@app.command()
def config(
    keys: Annotated[bool, typer.Option("--keys", help="Explain each key as well.")] = False,
    as_json: Json = False,
) -> None:
    """Show every setting, and where its value comes from."""
    from memex.settings import config_path, explain_settings

    listed = explain_settings()
    if as_json:
        print_json([{**vars(s), "value": str(s.value)} for s in listed])
        return
    origin = {"environment": "environment", "file": str(config_path()), "default": "default"}
    head = ["key", "value", "from", *(["variable", "meaning"] if keys else [])]
    print_table(
        head,
        [[s.key, str(s.value), origin[s.origin], *([s.variable, s.help] if keys else [])] for s in listed],
    )
