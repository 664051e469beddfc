"""Chat templates, rendered within bounds of time, memory and length (see `rendering`)."""

from __future__ import annotations

import atexit
import json
import os
import subprocess
import sys
import threading
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import IO, Any, cast

from lmkbc.errors import InputError
from lmkbc.models.local import rendering

TAG = "CONTINUE_FINAL_MESSAGE_TAG "
"""Mark of the end of a turn that is to go on; the text is cut there."""
ANOTHER = "use form = 'completion', or name another model"


class Renderer:
    """Renders templates in one process after another: a new one where the last was ended by a bound.

    seconds: that a render may take.
    """

    def __init__(self, seconds: float = rendering.SECONDS) -> None:
        self._seconds = seconds
        self._process: subprocess.Popen[str] | None = None
        self._owner, self._lock = 0, threading.Lock()

    def render(self, template: str, values: Mapping[str, Any]) -> str:
        """Return the text that a template makes. ValueError says why it makes none, InputError beyond a bound."""
        with self._lock:
            answer = self._asked(json.dumps({"template": template, "values": values}, default=str))
        if "error" in answer:
            raise ValueError(answer["error"])
        if "limit" in answer:
            raise InputError(f"the model's chat template {answer['limit']} for a prompt: {ANOTHER}")
        return str(answer["text"])

    def _asked(self, request: str) -> dict[str, Any]:
        process, start = self._running(), time.monotonic()
        stdin, stdout = cast(IO[str], process.stdin), cast(IO[str], process.stdout)
        try:
            stdin.write(request + "\n")
            stdin.flush()
            line = stdout.readline()
        except BrokenPipeError:
            line = ""
        except BaseException:  # whatever it would still answer is no answer to the next request
            self.close()
            raise
        if not line:
            self.close()
            slow = time.monotonic() - start >= self._seconds
            return {"limit": f"takes more than {self._seconds:g} s" if slow else "ends what renders it"}
        answer: dict[str, Any] = json.loads(line)
        if "ends" in answer:
            self.close()
        return answer

    def _running(self) -> subprocess.Popen[str]:
        """Return the process of this one: a fork does not share its parent's."""
        if self._process is None or self._owner != os.getpid():
            self._owner = os.getpid()
            self._process = subprocess.Popen(  # noqa: S603 -- our own script
                [sys.executable, "-P", str(Path(rendering.__file__)), str(self._seconds)],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                text=True,
                encoding="utf-8",
            )
        return self._process

    def close(self) -> None:
        """End the process."""
        if self._process is not None and self._owner == os.getpid():
            self._process.kill()
            self._process.communicate()
        self._process = None


_renderer = Renderer()
atexit.register(_renderer.close)


def rendered(template: str, turns: Sequence[Mapping[str, str]], values: Mapping[str, Any]) -> str:
    """Return the text that a template makes of turns, up to the place where the answer begins.

    A last turn of the assistant is the beginning of the answer. values: what else the template may use. ValueError with
    the reason where the template refuses the turns, InputError where it exceeds a bound.
    """
    begun = turns[-1]["role"] == "assistant"
    last = turns[-1]["content"]
    messages = [dict(turn) for turn in turns]
    if begun:
        messages[-1]["content"] += TAG
    given = {"tools": None, "documents": None, **values, "messages": messages, "add_generation_prompt": not begun}
    text = _renderer.render(template, given)
    if not begun:
        return text
    end = text.rfind(TAG.strip())
    if end < 0 or last.strip() not in text:
        raise ValueError("it leaves out the turn that is to go on")
    return text[:end] if text.startswith(TAG, end) else text[:end].rstrip()
