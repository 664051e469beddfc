"""`lmkbc` as a shell calls it, in this process: what the fixture `command` gives."""

import sys
from dataclasses import dataclass, replace
from typing import Self

import pytest

from lmkbc.cli import main


@dataclass(frozen=True)
class Command:
    """Calls that leave the arguments of this process as they were, and show no traceback."""

    patch: pytest.MonkeyPatch
    captured: pytest.CaptureFixture[str]
    words: tuple[object, ...] = ("lmkbc",)

    def __call__(self, *words: object) -> tuple[int, str, str]:
        """Return exit status, standard output and standard error."""
        self.captured.readouterr()
        self.patch.setattr(sys, "argv", [*map(str, (*self.words, *words))])
        with pytest.raises(SystemExit) as ended:
            main()
        shown = self.captured.readouterr()
        assert "Traceback" not in shown.err, shown.err
        return int(ended.value.code or 0), shown.out, shown.err

    def under(self, *words: object) -> Self:
        """Return the command whose words begin with these."""
        return replace(self, words=(*self.words, *words))

    def done(self, *words: object) -> tuple[str, str]:
        """Return standard output and standard error of a call that ends well."""
        status, shown, told = self(*words)
        assert status == 0, told
        return shown, told

    def fails(self, *words: object, status: int = 2) -> str:
        """Return the standard error of a call that ends with this status, and with nothing else where it is 2."""
        ended, shown, told = self(*words)
        assert ended == status, told
        assert status != 2 or not shown, shown
        return told
