"""The command: one small file per sub-command, no logic. Errors become one sentence and an exit status here."""

from __future__ import annotations

import sys
from importlib import import_module

import typer

from lmkbc.cli.screen import show_error, show_logs
from lmkbc.errors import LmkbcError

COMMANDS = ("predict", "tune", "evaluate", "link", "submit", "data", "relations", "systems", "train", "store", "probe")


def build() -> typer.Typer:
    """The whole command tree."""
    app = typer.Typer(
        name="lmkbc",
        help="Build knowledge bases from language models, for every LM-KBC edition.",
        no_args_is_help=True,
        add_completion=False,
        pretty_exceptions_enable=False,
        rich_markup_mode=None,
    )
    for name in COMMANDS:
        import_module(f"lmkbc.cli.{name}").register(app)
    return app


def main() -> None:
    """Run the command line: exit 0 when all went well, 1 when the run failed, 2 when the input is wrong."""
    show_logs()
    try:
        build()()
    except LmkbcError as error:
        show_error(str(error))
        sys.exit(error.exit_code)
    except BrokenPipeError:  # the reader of our output went away, which is its right
        sys.stderr.close()
    except KeyboardInterrupt:
        show_error("interrupted; nothing half-written is left behind")
        sys.exit(1)
