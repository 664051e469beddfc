"""Errors for the user: one sentence that says what is wrong, where, and what to do."""

from __future__ import annotations

import difflib
from collections.abc import Collection, Iterable

import msgspec

UNDECODABLE = msgspec.MsgspecError, UnicodeDecodeError, RecursionError
"""Errors of msgspec for what is not JSON, not of the expected form, not UTF-8, or nested too deeply."""


class LmkbcError(Exception):
    """The run failed, and the input is not the cause (exit status 1)."""

    exit_code = 1


class InputError(LmkbcError):
    """The user's input is wrong (exit status 2)."""

    exit_code = 2


class OptionError(InputError):
    """The value of an option is wrong.

    option: name of the parameter, such as `max_cost`; a command shows it as `--max-cost`.
    """

    def __init__(self, option: str, problem: str) -> None:
        super().__init__(f"{option} {problem}")
        self.option, self.problem = option, problem

    @property
    def typed(self) -> str:
        """Return the sentence with the option as the user types it, such as `--max-cost`."""
        flag = "from" if self.option == "files" else self.option.replace("_", "-")
        return f"--{flag} {self.problem}"


LOCAL = frozenset("gguf huggingface_hub safetensors scipy sklearn tokenizers torch transformers".split())
"""Modules that the extra `local` installs, besides those of `pictures`."""


def lacking(error: ModuleNotFoundError) -> InputError | None:
    """Return the error that names the extra to install for a missing module; None for any other module.

    A part of lmkbc itself may be missing, too, since the core does without its wings.
    """
    name = (error.name or "").partition(".")[0]
    if name == "lmkbc":
        return InputError(f"this needs {error.name}, which this installation lacks: install lmkbc whole")
    if name == "matplotlib":
        return InputError("figures are drawn by matplotlib, which is not installed: install lmkbc[pictures]")
    if name == "pyoxigraph":
        return InputError("this reads or writes RDF by pyoxigraph, which is not installed: install lmkbc[rdf]")
    if name not in LOCAL:
        return None
    return InputError(
        f"this runs a model of this machine, which needs {name}: install lmkbc[local], or name a system that does "
        "without, such as naive-bayes, recorded (--from FILE), or one of a server (--base-url URL)"
    )


def counted(number: int, one: str, many: str = "") -> str:
    """Return a number with its noun, as in "1 query" and "2 queries". many: the plural, if irregular."""
    regular = f"{one[:-1]}ies" if one.endswith("y") else f"{one}s"
    return f"{number} {one if number == 1 else many or regular}"


def did_you_mean(name: str, known: Iterable[str], command: str = "") -> str:
    """Return the end of an "unknown name" message: the nearest known name, or all known names.

    command: one that lists the known names and says what they are, in place of their bare list.
    """
    names = sorted(known)
    folded = {known_name.casefold(): known_name for known_name in names}
    close = difflib.get_close_matches(name.casefold(), folded, n=1, cutoff=0.6)
    if close:
        return f"did you mean {folded[close[0]]!r}?"
    if command:
        return f"'{command}' says which there are"
    return f"known are: {', '.join(names) or 'none'}"


def check_known(name: str, known: Collection[str], sentence: str, command: str = "") -> None:
    """Raise InputError if a name is not known.

    sentence: what is wrong; the nearest known name is appended. command: as of `did_you_mean`.
    """
    if name not in known:
        raise InputError(f"{sentence}: {did_you_mean(name, known, command)}")


def refuse(*checks: tuple[object, str]) -> None:
    """Raise ValueError with the sentence of the first check that is true. checks: pairs (condition, sentence)."""
    for wrong, sentence in checks:
        if wrong:
            raise ValueError(sentence)
