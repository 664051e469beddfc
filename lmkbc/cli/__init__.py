"""The command: one module per sub-command, loaded on demand. Errors become an exit status here."""

from __future__ import annotations

import os
import re
import signal
import sys
import threading
import traceback
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import cache
from pathlib import Path
from types import FrameType
from typing import Annotated, Any, NoReturn

import typer
from typer.core import TyperCommand, TyperGroup

from lmkbc.commands.terminal import confirmed, error_status, note, shown_logs
from lmkbc.errors import InputError, LmkbcError, OptionError, lacking
from lmkbc.files.trusted import UntrustedError, remember
from lmkbc.registry import COMMANDS

PURPOSES = {
    "init": "Make a workspace for relations of your own.",
    "predict": "Make a checked submission for a split.",
    "ask": "Ask one question: the answer, its confidence, its links and the evidence.",
    "build": "Build a knowledge base: facts of many subjects, as Parquet.",
    "audit": "Measure the precision of a knowledge base, by a labelled sample or by known facts.",
    "review": "Make what persons decided part of a knowledge base.",
    "export": "Write a knowledge base as a table, a database, a graph, RDF, Wikidata's JSON, or QuickStatements.",
    "query": "Answer a SPARQL query over a knowledge base.",
    "tune": "Learn what to keep, per relation, from a labelled split.",
    "evaluate": "Score predictions exactly as the organisers do.",
    "compare": "Compare runs: is one significantly better than another?",
    "report": "Show a run or a knowledge base in a browser.",
    "runs": "List the runs in a folder with their scores.",
    "link": "Link names to Wikidata, or build an index to link with.",
    "submit": "Zip a predictions file for CodaLab or Codabench, once it passes all checks.",
    "data": "List, check, fetch and make labelled splits.",
    "relations": "List, show, check and make relation modules.",
    "systems": "List, show and check the recipes.",
    "trust": "Trust the modules of a workspace, which commands run.",
    "rules": "List the rules that say what is kept.",
    "train": "Train masked and causal models on facts.",
    "store": "Count, export and drop the kept answers of models.",
    "probe": "Test what a model knows: KAMEL, LAMA, BEAR, KMIR, OptiPrompt, controls, invented names.",
}
"""Sub-command -> its purpose, so that the list needs no modules."""
_UsageError: Any = typer.BadParameter.__base__
"""Error that typer raises for a wrong command line. It has no public name."""
_PLAIN = {
    r"Value error, ": "",
    r"Input should be greater than or equal to (\S+)": r"give \1 or more",
    r"Input should be less than or equal to (\S+)": r"give \1 or less",
    r"Input should be a valid integer.*": "give a whole number",
    r"\. Did you mean (.*)\?": r" (did you mean \1?)",
    r"Got unexpected extra argument(?:\(s\))? \((.*)\)": r"no option stands before \1: write one, as in --split val",
    r"Input should be a valid (number|float).*": "give a number",
}
"""Pattern in a message of the command line's parser -> plainer words."""
INTERRUPTED = "interrupted; nothing half-written is left behind"
ANSWERS = "answers that models gave are kept in the store, from which the same command goes on"
FRESH = (
    "the same command asks all again, because of --fresh; without it, it goes on from the store, which has earlier "
    "answers where there are no new ones yet"
)
KEPT = {
    "predict": ANSWERS,
    "ask": ANSWERS,
    "build": "finished shards are kept, and the same command goes on with the rest",
    "tune": ANSWERS,
    "link": "Wikidata's answers, and the finished part of an index, are kept: the same command goes on",
    "data": "whole splits and answers that arrived are kept, and the same command gets the rest",
    "train": "the last checkpoint is kept, from which the same command goes on",
    "probe": ANSWERS,
}
"""Sub-command -> what an interruption does not lose."""


class _Tree(TyperGroup):
    """The command tree. It loads a command on demand, and replaces typer's own ends of a run."""

    _listing = False

    def shell_complete(self, ctx: Any, incomplete: str) -> Any:
        """Return the completions after `lmkbc` in a shell, without loading a command."""
        self._listing = True
        return super().shell_complete(ctx, incomplete)

    def list_commands(self, ctx: Any) -> list[str]:  # noqa: ARG002 -- typer's signature
        """Return the sub-commands, in order."""
        return [*COMMANDS, *COMMANDS.plugged()]

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        """Return a sub-command from its module."""
        if cmd_name in COMMANDS and cmd_name not in self.commands:
            if self._listing:
                return TyperCommand(cmd_name, help=_purpose(cmd_name), rich_markup_mode=None)
            self.add_command(_loaded(cmd_name), cmd_name)
        return super().get_command(ctx, cmd_name)

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        """Return a sub-command and its arguments. InputError for an unknown one."""
        if not ctx.resilient_parsing:
            COMMANDS.check(args[0])
        return super().resolve_command(ctx, args)

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        """List the sub-commands without loading them."""
        with formatter.section("Commands"):
            formatter.write_dl([(name, _purpose(name)) for name in self.list_commands(ctx)])

    def invoke(self, ctx: Any) -> Any:
        """Run a command. If the reader of its output closes the pipe, as `head` does, that is no failure."""
        try:
            with _plain_complaints():
                return super().invoke(ctx)
        except KeyboardInterrupt:
            kept = FRESH if _is_fresh() else KEPT.get(ctx.invoked_subcommand)
            raise _InterruptedError(f"{INTERRUPTED}; {kept}" if kept else INTERRUPTED) from None
        except OptionError as error:
            raise InputError(error.typed) from None
        except LmkbcError as error:
            if error.exit_code != LmkbcError.exit_code or not _is_fresh():
                raise
            raise LmkbcError(f"{error}; {FRESH}") from None
        except SystemExit as error:  # of a module or a plug-in, whose status is not the command's
            at = traceback.extract_tb(error.__traceback__)[-1]
            raise LmkbcError(
                f"{at.filename}, line {at.lineno}, ended the program ({error!r}): mend or remove it"
            ) from None
        except ModuleNotFoundError as error:
            raise lacking(error) or error from None
        except BrokenPipeError:
            _forget_output()

    def make_context(self, *arguments: Any, **settings: Any) -> Any:
        """Parse the command line, as typer does."""
        with _plain_complaints():
            return super().make_context(*arguments, **settings)


def _is_fresh() -> bool:
    return "--fresh" in sys.argv


@contextmanager
def _plain_complaints() -> Iterator[None]:
    """Turn typer's error for a wrong command line into one sentence. A request for help is passed on."""
    try:
        yield
    except _UsageError as error:
        if type(error).__name__ == "NoArgsIsHelpError":
            raise
        from lmkbc.session.options import RunOptions

        near = getattr(error, "possibilities", None)  # of an option that is misspelt, the nearest first
        message = " ".join((error.message if near else error.format_message()).split()).rstrip(".")
        message += (
            ", which is of commands that ask or read answers, such as predict; what they wrote keeps it"
            if getattr(error, "option_name", "").removeprefix("--").replace("-", "_") in RunOptions.__annotations__
            else f" (did you mean {near[0]}?)"
            if near
            else ""
        )
        for found, plain in _PLAIN.items():
            message = re.sub(found, plain, message)
        where = error.ctx.command_path if error.ctx else "lmkbc"
        raise InputError(f"{message[:1].lower()}{message[1:]}; see '{where} --help'") from None


@cache
def _purpose(name: str) -> str:
    return PURPOSES.get(name, "A command of a plug-in.")


def _loaded(name: str) -> Any:
    """Return a sub-command from its module: the group `app`, else the function of its name."""
    return _made(name, COMMANDS.get(name))


@cache
def _made(name: str, module: Any) -> Any:
    """Return a module's command, made once per process."""
    from lmkbc.commands.typed import spread_all

    if group := getattr(module, "app", None):
        command = typer.main.get_group(spread_all(group))
        command.name = name
        return _worded(command)
    alone = typer.Typer(add_completion=False, rich_markup_mode=None)
    alone.command(name, epilog=module.EXAMPLE)(getattr(module, name))
    return _worded(typer.main.get_command(spread_all(alone)))


def _worded(command: Any) -> Any:
    """Return a command whose parameters have readable placeholders, as in --limit N."""
    for inner in getattr(command, "commands", {}).values():
        _worded(inner)
    for parameter in command.params:
        if parameter.metavar is None and not getattr(parameter, "is_flag", False):
            parameter.metavar = _word(parameter)
        if parameter.param_type_name == "argument":  # typer would show its type beside its name
            parameter.display_type_rich = lambda ctx: None  # noqa: ARG005 -- typer's signature
    return command


def _word(parameter: Any) -> str:
    """Return the placeholder of a value: by its type, or for text the last word of the parameter's name."""
    if parameter.param_type_name == "argument":
        return str(parameter.name).upper()
    described = getattr(parameter, "type_descriptor", None)
    kind = str(described.annotation if described else parameter.type).lower()
    words = {"int": "N", "float": "X", "path": "PATH"}
    return next((word for name, word in words.items() if name in kind), parameter.name.rpartition("_")[2].upper())


def build() -> typer.Typer:
    """Return the whole command tree."""
    app = typer.Typer(
        name="lmkbc",
        help="Build knowledge bases from language models, for every LM-KBC edition.",
        epilog="Example: lmkbc predict --split test. 'lmkbc COMMAND --help' describes a command and gives an example.",
        cls=_Tree,
        no_args_is_help=True,
        context_settings={"help_option_names": ["-h", "--help"]},
        pretty_exceptions_enable=False,
        rich_markup_mode=None,
    )
    app.callback()(_first)
    return app


def _show_version(wanted: bool) -> None:
    if wanted:
        from importlib.metadata import version

        typer.echo(f"lmkbc {version('lmkbc')}")
        raise typer.Exit


def _first(
    version: Annotated[
        bool, typer.Option("--version", callback=_show_version, is_eager=True, help="Show the version and exit.")
    ] = False,
) -> None:
    """Do nothing: the sub-command follows."""


class _InterruptedError(LmkbcError):
    """The user, or a scheduler, ended the run."""

    exit_code = 130


def main() -> None:
    """Run the command line. Exit 0 for success, 1 for a failed run, 2 for wrong input, 130 for an interrupted run."""
    try:
        _run()
    except KeyboardInterrupt:  # during the imports of the program, or a second one
        sys.stderr.write(f"error: {INTERRUPTED}\n")
        _end_interrupted()
    except SystemExit as ended:
        if isinstance(ended.__context__, _InterruptedError):
            _end_interrupted()
        raise


def _run() -> None:
    _open_streams()
    try:
        with error_status(), _terminations():
            try:
                _command()
            except UntrustedError as error:
                if not confirmed(str(error), "Trust it as it is now, from now on?"):
                    raise
                remember(error.files)
                _command()
    except OSError as error:  # a full disk, a directory that vanished
        where = f" {error.filename}" if error.filename else " the output"
        reason = error.strerror or error
        note(f"error: the machine refused{where}: {reason}; mend that, and run the command again")
        _forget_output()
        sys.exit(1)


def _command() -> None:
    with shown_logs():
        build()(prog_name="lmkbc")


def _end_interrupted() -> NoReturn:
    """Exit, at once if a thread still computes: while Python ends its modules, that would abort the process."""
    if any(not thread.daemon for thread in threading.enumerate() if thread is not threading.main_thread()):
        with suppress(OSError):
            sys.stdout.flush()
            sys.stderr.flush()
        os._exit(_InterruptedError.exit_code)
    sys.exit(_InterruptedError.exit_code)


def _open_streams() -> None:
    """Replace closed standard streams, so that no other file gets their numbers. The new stdout refuses writes."""
    for name, mode in (("stdin", "r"), ("stdout", "r"), ("stderr", "w")):
        if getattr(sys, name) is None:
            setattr(sys, name, Path(os.devnull).open(mode))  # noqa: SIM115 -- it stays open


@contextmanager
def _terminations() -> Iterator[None]:
    """Let SIGTERM, which schedulers and containers send, end a run in the same way as SIGINT."""
    before = signal.signal(signal.SIGTERM, _interrupt)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


def _interrupt(_: int, frame: FrameType | None) -> None:
    """Call the handler of SIGINT, which an event loop may have replaced. Works also if a shell ignores SIGINT.

    A running event loop then ends between two of its steps: within one, libraries would fail at what they undo.
    """
    handle = signal.getsignal(signal.SIGINT)
    if callable(handle):
        handle(signal.SIGINT, frame)
        return
    import asyncio

    try:
        asyncio.get_running_loop().call_soon_threadsafe(_stop)
    except RuntimeError:  # no loop runs
        raise KeyboardInterrupt from None


def _stop() -> None:
    raise KeyboardInterrupt


def _forget_output() -> None:
    """Send unwritten output to the null device, so that Python does not fail at its exit."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
