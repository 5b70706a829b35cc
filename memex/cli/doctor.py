"""`memex doctor`."""

from typing import Annotated

import typer

from memex.cli.app import app
from memex.cli.output import Json, note, print_json, print_table


@app.command()
def doctor(
    mend: Annotated[bool, typer.Option("--mend", help="Make anew what is wrong and can be made anew.")] = False,
    as_json: Json = False,
) -> None:
    """Check archive, tables and indexes against each other. `memex verify` proves the archive itself."""
    from dataclasses import asdict

    from memex.setup import open_memex

    findings = list(open_memex().examine.run(mend))
    if as_json:
        print_json([asdict(finding) for finding in findings])
    else:
        print_table(["part", "state", "what is wrong"], [(one.what, one.state, one.wrong) for one in findings])
        for one in findings:
            if one.remedy:
                note(f"{one.what}: {one.remedy}")
    if any(finding.state == "ill" for finding in findings):
        raise typer.Exit(1)
