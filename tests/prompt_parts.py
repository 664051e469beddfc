"""The parts of a prompt as texts."""

from lmkbc.models.base import Prompt


def prefix(prompt: Prompt) -> str:
    """Return the part that queries with the same examples share."""
    return Prompt(prompt.static, (), prompt.form).text


def suffix(prompt: Prompt) -> str:
    """Return the query's own part."""
    return Prompt((), prompt.own, prompt.form).text
