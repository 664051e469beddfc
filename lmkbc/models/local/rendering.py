"""The process that renders chat templates: a script which reads a request a line and answers each in a line, as JSON.

A template comes with a model's files, so it is a program of somebody else. The sandbox keeps it from all that is
outside; nothing but a process of its own keeps it from endless loops and from filling the memory. So this one has a
bound on its memory, and ends itself when a render takes too long. What a template may use is as in transformers.
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
"""In which a template has rendered a prompt; most take a thousandth of one."""
MEMORY = 400 << 20
"""Bytes of memory that the process may take."""
OUTPUT = 4 << 20
"""Characters of a rendered prompt: more than any model's window holds."""


@lru_cache(maxsize=8)
def _compiled(text: str) -> Any:
    """Return a template in the environment that transformers gives it."""
    from jinja2 import TemplateError, nodes
    from jinja2.ext import Extension, loopcontrols
    from jinja2.sandbox import ImmutableSandboxedEnvironment

    class Generation(Extension):
        """Marks what the assistant says, which changes nothing of the text."""

        tags = {"generation"}  # noqa: RUF012 -- as jinja2 has it

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
    """Return the rendered text, or why there is none; `ends` says that the process cannot go on."""
    try:
        text = _compiled(request["template"]).render(**request["values"])
        if len(text) > OUTPUT:
            return {"limit": f"writes more than {OUTPUT >> 20} MiB"}
        return {"text": text}
    except MemoryError:
        return {"limit": f"takes more than {MEMORY >> 20} MiB of memory", "ends": True}
    except Exception as error:  # a template fails in any way
        return {"error": " ".join(str(error).split())[:200] or type(error).__name__}


def main(seconds: float) -> None:
    """Answer until there are no more requests."""
    with contextlib.suppress(ImportError, ValueError, OSError):  # a system that bounds no memory
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
