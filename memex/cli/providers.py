"""`memex providers` and `memex usage`: whether models can be asked, and what they took."""

from typing import Annotated

import typer

from memex.cli.app import app
from memex.cli.output import Json, note, print_json, print_table


@app.command()
def providers(
    provider: Annotated[list[str] | None, typer.Argument(help="Check these instead of those in use.")] = None,
    as_json: Json = False,
) -> None:
    """Check each provider with one small question, and say what to do where it does not work."""
    from memex.errors import ConfigError
    from memex.llm.check import check
    from memex.llm.providers import configured, open_client
    from memex.settings import CompactSettings
    from memex.setup import open_memex

    memex = open_memex()
    names = provider or configured(memex.settings)
    for name in names:
        if name == "extractive" or name not in CompactSettings.model_fields or name in ("l1", "budget"):
            raise ConfigError(f"{name!r} is no provider that can be checked", "memex config --keys lists them")
    found = [check(open_client(memex.settings, name, memex.book)) for name in names]
    if as_json:
        print_json(found)
    elif not found:
        note("summaries are written without a model (compact.provider = extractive): there is nothing to check")
    else:
        columns = ["provider", "model", "reachable", "has the model", "answers", "right shape", "US dollars"]
        print_table(
            columns,
            [
                (
                    *(one.provider, one.model, one.reachable, "not told" if one.has_model is None else one.has_model),
                    *(one.answers, one.has_shape, f"{one.cost_usd:.6f}"),
                )
                for one in found
            ],
        )
        for one in found:
            if one.trouble:
                note(f"{one.provider}: {one.trouble}" + (f"\n  {one.hint}" if one.hint else ""))
    if any(one.trouble for one in found):
        raise typer.Exit(1)


@app.command()
def usage(
    days: Annotated[int, typer.Option(min=1, help="Show so many days.")] = 30,
    as_json: Json = False,
) -> None:
    """Show what models took, what is left of the caps, and what summaries save."""
    from memex.setup import open_memex

    found = open_memex().usage(days)
    if as_json:
        print_json(found)
        return
    by_day, today, saved = found["days"], found["today"], found["savings"]
    if by_day:
        columns = list(by_day[0])
        print_table(columns, [list(row.values()) for row in by_day], right=columns[3:])
    else:
        note("no model was asked")
    print_table(["today (UTC)", "spent", "cap"], [list(row.values()) for row in today], right=["spent", "cap"])
    print_table(list(saved[0]), [list(row.values()) for row in saved], right=list(saved[0])[1:])
