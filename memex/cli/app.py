"""The Typer application that every command registers with."""

import typer

app = typer.Typer(
    name="memex",
    help="The long-term memory of your AI coding CLIs.",
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
