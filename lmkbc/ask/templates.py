"""Templates of prompts: Jinja2 in an immutable sandbox, where an unknown name is an error.

Values are text: braces in them are never read. A template may use the statements if and for, the filters
`FILTERS`, and the methods `METHODS` of text, so that no template can fill the memory.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from functools import lru_cache
from typing import Any, NoReturn

from jinja2 import StrictUndefined, TemplateError, nodes
from jinja2.exceptions import SecurityError
from jinja2.runtime import Context
from jinja2.sandbox import ImmutableSandboxedEnvironment

from lmkbc.errors import InputError, did_you_mean

LONGEST = 1_000_000
"""Maximum number of characters that a template may make beyond those of its values."""
FILTERS = "capitalize first join last length lower replace sort title trim unique upper".split()
METHODS = frozenset(
    "casefold endswith lower partition removeprefix removesuffix rpartition split splitlines startswith strip lstrip "
    "rstrip title upper".split()
)
ANSWER, HELD = "\0", "\1"
"""Marks for the answer and for any other value in the outline of a template."""

_OLD = re.compile(r"(?<!\{)\{\s*(\w+)\b(?:\s*\})?")


class _Sandbox(ImmutableSandboxedEnvironment):
    """Environment of all templates."""

    intercepted_binops = frozenset(("*", "**", "%"))

    def call_binop(self, context: Context, operator: str, left: Any, right: Any) -> NoReturn:  # noqa: ARG002 -- of Jinja2
        """Raise SecurityError: such an operator can make a text of any length."""
        raise SecurityError(f"{operator!r} is not allowed")

    def is_safe_attribute(self, obj: Any, attr: str, value: Any) -> bool:
        """Return whether a template may read an attribute."""
        return attr in METHODS and super().is_safe_attribute(obj, attr, value)


_SANDBOX = _Sandbox(undefined=StrictUndefined, keep_trailing_newline=True, autoescape=False, cache_size=0)
_SANDBOX.globals.clear()
_SANDBOX.filters = {name: _SANDBOX.filters[name] for name in FILTERS}
_compiled = lru_cache(maxsize=1 << 14)(_SANDBOX.from_string)


@lru_cache(maxsize=1 << 14)
def reads(template: str) -> frozenset[str]:
    """Return the names that a template reads. Raise ValueError for a text that is no template."""
    try:
        tree = _SANDBOX.parse(template)
    except TemplateError as error:
        wrong = f"{template[:80]!r} is no Jinja2 template ({error})"
        raise ValueError(f"{wrong}: write a value as {{{{ subject }}}}, and other braces as {{{{ '{{{{' }}}}") from None
    if any(not isinstance(one, nodes.Output | nodes.If | nodes.For) for one in tree.find_all(nodes.Stmt)):
        raise ValueError(f"{template[:80]!r} holds another statement than if and for: write the text itself")
    found = [*tree.find_all(nodes.Name)]
    return frozenset(one.name for one in found).difference(one.name for one in found if one.ctx == "store")


def render(template: str, values: Mapping[str, str | list[str]]) -> str:
    """Return a template filled with values.

    Raise InputError for a template that cannot be filled, or that makes `LONGEST` more characters than its values have.
    """
    try:
        text = _compiled(template).render(values)
    except (TemplateError, TypeError, ValueError, LookupError, ArithmeticError, RecursionError) as error:
        raise InputError(f"the template {template[:80]!r} cannot be filled: {error}") from None
    if len(text) > LONGEST + sum(map(len, values.values())):
        raise InputError(
            f"the template {template[:80]!r} makes {len(text):,} characters, far more than its values have"
        )
    return text


@lru_cache(maxsize=1 << 14)
def outline(template: str) -> str:
    """Return a template with the mark `ANSWER` for its answer, and `HELD` for each other value."""
    return render(template, {**dict.fromkeys(reads(template), HELD), "answer": ANSWER, "objects": [ANSWER]})


def check_template(what: str, template: str, known: Iterable[str]) -> None:
    """Raise ValueError for an unknown name, for a text that is no template, and for a slot in single braces.

    what: name of the template.
    """
    known = tuple(known)
    for slot in _OLD.finditer(template):
        if slot[1] in known or slot[0].endswith("}"):
            write = f"write {{{{ {slot[1]} }}}}, or {{{{ '{{' }}}} for a brace"
            raise ValueError(f"{what} has {slot[0]!r}: it is a Jinja2 template, so {write}")
    try:
        found = reads(template)
        outline(template)
    except (ValueError, InputError) as error:
        raise ValueError(f"{what}: {error}") from None
    for name in sorted(found.difference(known)):
        raise ValueError(f"{what} reads {{{{ {name} }}}}: {did_you_mean(name, known)}")
