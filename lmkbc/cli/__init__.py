"""The command: one small file per sub-command, loaded when it is called. Errors become an exit status here."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module
from typing import Any

import typer
from typer.core import TyperGroup

from lmkbc.cli.screen import plain, show_error, show_logs
from lmkbc.errors import LmkbcError

COMMANDS = {
    "predict": "Make a checked submission for a split.",
    "build": "Build a knowledge base: facts of many subjects, as Parquet.",
    "export": "Write a knowledge base as triples, statements, Wikidata's JSON, or QuickStatements for review.",
    "tune": "Learn what to keep, per relation.",
    "evaluate": "Score predictions exactly as the organisers do.",
    "compare": "Say whether one run is better than another, or the difference noise.",
    "report": "Show a run in a browser: one HTML file with every row.",
    "link": "Link names to Wikidata, build an index to link with.",
    "submit": "Zip a predictions file for CodaLab or Codabench, once it passes all checks.",
    "data": "Official splits: list, check, fetch.",
    "relations": "List, show and check the relation modules.",
    "systems": "List, show and check the recipes.",
    "train": "Teach masked and causal models facts.",
    "store": "The answers that models gave: count, export, drop.",
    "probe": "Probe what a model knows.",
}
"""Sub-command -> what it is for, so that listing them loads none; each lies in the module of its name."""
MODULES = {"build": "build_base"}
"""Sub-command -> its module, where that has another name: `build` makes the whole tree."""
_UsageError: Any = typer.BadParameter.__base__
"""What typer raises for a wrong command line; it has no public name there."""
INTERRUPTED = "interrupted; nothing half-written is left behind"


class _Tree(TyperGroup):
    """The command tree, which loads a command when it is called, less typer's own ways of ending a run."""

    def list_commands(self, ctx: Any) -> list[str]:  # noqa: ARG002 -- typer's signature
        """The sub-commands, in order."""
        return list(COMMANDS)

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        """A sub-command, from the module of its name."""
        if cmd_name in COMMANDS and cmd_name not in self.commands:
            loaded = typer.Typer(rich_markup_mode=None)
            import_module(f"lmkbc.cli.{MODULES.get(cmd_name, cmd_name)}").register(loaded)
            self.add_command(typer.main.get_group(loaded).commands[cmd_name], cmd_name)
        return super().get_command(ctx, cmd_name)

    def format_commands(self, ctx: Any, formatter: Any) -> None:  # noqa: ARG002 -- typer's signature
        """List the sub-commands without loading them."""
        with formatter.section("Commands"):
            formatter.write_dl(list(COMMANDS.items()))

    def invoke(self, ctx: Any) -> Any:
        """Run a command. A reader that goes away, as `head` does, has read enough: that is no failure."""
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
    app.callback()(_nothing)
    return app


def _nothing() -> None:
    """Before a sub-command there is nothing to do."""


def main() -> None:
    """Run the command line: exit 0 when all went well, 1 when the run failed, 2 when the input is wrong."""
    try:
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
