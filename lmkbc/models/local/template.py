"""Chat templates, rendered with limits on time, memory and length (see `rendering`)."""

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
"""Mark at the end of a turn that the model continues; the text is cut there."""
ANOTHER = "use form = 'completion', or name another model"


class Renderer:
    """Renders templates in a separate process; after a limit has ended it, a new one starts.

    seconds: maximum time of one render.
    """

    def __init__(self, seconds: float = rendering.SECONDS) -> None:
        self._seconds = seconds
        self._process: subprocess.Popen[str] | None = None
        self._owner, self._lock = 0, threading.Lock()

    def render(self, template: str, values: Mapping[str, Any]) -> str:
        """Return the rendered text.

        Raise ValueError with the template's own error, InputError if a limit is exceeded.
        """
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
        except BaseException:  # its late answer must not be read as the answer to the next request
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
        """Return the process of this Python process; a fork does not share its parent's."""
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
    """Return the text of rendered turns, up to the place where the answer begins.

    A last assistant turn is the beginning of the answer. values: further variables of the template. Raise ValueError
    with the reason if the template refuses the turns, InputError if it exceeds a limit.
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
