"""The process that renders chat templates: a script that reads a JSON request per line and answers each in a line.

A template is a foreign program, since it comes with a model's files. The sandbox prevents access to anything outside.
Only a separate process prevents endless loops and excessive memory. Its memory is limited, and it ends itself if a
render takes too long. Templates have the same features as in transformers.
"""

from __future__ import annotations

import contextlib
import datetime
import faulthandler
import json
import os
import sys
from functools import lru_cache
from typing import Any

SECONDS = 10.0
"""Maximum number of seconds for rendering a prompt; usually a millisecond suffices."""
MEMORY = 400 << 20
"""Maximum number of bytes of memory of the process."""
OUTPUT = 4 << 20
"""Maximum number of characters of a rendered prompt; no model's window holds more."""


@lru_cache(maxsize=8)
def _compiled(text: str) -> Any:
    """Return a template in an environment like that of transformers."""
    from jinja2 import TemplateError, nodes
    from jinja2.ext import Extension, loopcontrols
    from jinja2.sandbox import ImmutableSandboxedEnvironment

    class Generation(Extension):
        """Tag that marks the assistant's text; it does not change the text."""

        tags = {"generation"}  # noqa: RUF012 -- as in jinja2

        def parse(self, parser: Any) -> Any:
            line = next(parser.stream).lineno
            body = parser.parse_statements(("name:endgeneration",), drop_needle=True)
            return nodes.CallBlock(self.call_method("_same"), [], [], body).set_lineno(line)

        @staticmethod
        def _same(caller: Any) -> Any:
            return caller()

    def refuse(message: str) -> None:
        raise TemplateError(message)

    def as_json(
        value: Any, ensure_ascii: bool = False, indent: Any = None, separators: Any = None, sort_keys: bool = False
    ) -> str:
        return json.dumps(value, ensure_ascii=ensure_ascii, indent=indent, separators=separators, sort_keys=sort_keys)

    environment = ImmutableSandboxedEnvironment(
        trim_blocks=True, lstrip_blocks=True, extensions=[Generation, loopcontrols]
    )
    environment.filters["tojson"] = as_json
    environment.globals["raise_exception"] = refuse
    environment.globals["strftime_now"] = lambda form: datetime.datetime.now().strftime(form)
    return environment.from_string(text)


def _answer(request: dict[str, Any]) -> dict[str, Any]:
    """Return the rendered text, or why there is none; `ends` means that the process cannot continue."""
    try:
        text = _compiled(request["template"]).render(**request["values"])
        if len(text) > OUTPUT:
            return {"limit": f"writes more than {OUTPUT >> 20} MiB"}
        return {"text": text}
    except MemoryError:
        return {"limit": f"takes more than {MEMORY >> 20} MiB of memory", "ends": True}
    except Exception as error:  # a template may raise any error
        return {"error": " ".join(str(error).split())[:200] or type(error).__name__}


def main(seconds: float) -> None:
    """Answer requests until the input ends. seconds: maximum time of one render."""
    with contextlib.suppress(ImportError, ValueError, OSError):  # a system without memory limits
        import resource

        resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    with open(os.devnull, "w") as nowhere:
        for line in sys.stdin:
            faulthandler.dump_traceback_later(seconds, exit=True, file=nowhere)
            answer = _answer(json.loads(line))
            written = json.dumps(answer) + "\n"
            faulthandler.cancel_dump_traceback_later()
            sys.stdout.write(written)
            sys.stdout.flush()
            if "ends" in answer:
                return


if __name__ == "__main__":
    main(float(sys.argv[1]))
