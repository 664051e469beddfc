"""The command: one small file per sub-command, no logic. Errors become one sentence and an exit status here."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module
from typing import Any

import typer
from typer.core import TyperGroup

COMMANDS = ("predict", "tune", "evaluate", "link", "submit", "data", "relations", "systems", "train", "store", "probe")
_UsageError: Any = typer.BadParameter.__base__
"""What typer raises for a wrong command line; it has no public name there."""
INTERRUPTED = "interrupted; nothing half-written is left behind"


class _Tree(TyperGroup):
    """The command tree, less typer's own ways of ending a run that was interrupted or has no reader."""

    def invoke(self, ctx: Any) -> Any:
        """Run a command. A reader that goes away, as `head` does, has read enough: that is no failure."""
        from lmkbc.errors import LmkbcError

        try:
            with _plain_complaints():
                return super().invoke(ctx)
        except KeyboardInterrupt:
            raise LmkbcError(INTERRUPTED) from None
        except BrokenPipeError:
            _forget_output()

    def make_context(self, *arguments: Any, **settings: Any) -> Any:
        """Read the command line, as typer does; a complaint quotes it without what steers a terminal."""
        with _plain_complaints():
            return super().make_context(*arguments, **settings)


@contextmanager
def _plain_complaints() -> Iterator[None]:
    """What typer says of a wrong command line, less what steers a terminal."""
    try:
        yield
    except _UsageError as error:
        from lmkbc.cli.screen import plain

        error.message = "\n".join(map(plain, error.message.split("\n")))
        raise


def build() -> typer.Typer:
    """The whole command tree."""
    app = typer.Typer(
        name="lmkbc",
        help="Build knowledge bases from language models, for every LM-KBC edition.",
        cls=_Tree,
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
    try:
        from lmkbc.cli.screen import show_error, show_logs
        from lmkbc.errors import LmkbcError

        show_logs()
        try:
            build()()
        except LmkbcError as error:
            show_error(str(error))
            sys.exit(error.exit_code)
        except OSError as error:  # a full disk, a directory that vanished
            where = f" {error.filename}" if error.filename else " the output"
            show_error(f"the machine refused{where}: {error.strerror or error}; mend that, and run the command again")
            _forget_output()
            sys.exit(1)
    except KeyboardInterrupt:  # while the program itself is read
        sys.stderr.write(f"error: {INTERRUPTED}\n")
        sys.exit(1)


def _forget_output() -> None:
    """What is still to be written to standard output goes nowhere, so that Python does not fail at its exit."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
