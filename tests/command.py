"""`lmkbc` as a shell calls it, in this process: what the fixture `command` gives."""

from __future__ import annotations

import sys
from collections.abc import Callable

import pytest

from lmkbc.cli import main

Command = Callable[..., tuple[int, str, str]]
"""The words after `lmkbc` -> exit status, standard output and standard error."""


def command(patch: pytest.MonkeyPatch, captured: pytest.CaptureFixture[str]) -> Command:
    """Calls that leave the arguments of this process as they were, and show no traceback."""

    def call(*words: object) -> tuple[int, str, str]:
        captured.readouterr()
        patch.setattr(sys, "argv", ["lmkbc", *map(str, words)])
        with pytest.raises(SystemExit) as ended:
            main()
        shown = captured.readouterr()
        assert "Traceback" not in shown.err, shown.err
        return int(ended.value.code or 0), shown.out, shown.err

    return call
