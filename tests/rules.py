"""Selection rules, as a recipe's tables name them."""

from typing import Any

from lmkbc import Rule
from lmkbc.testing import build


def rule_of(name: str, **options: Any) -> Any:
    """Return the rule of a name; inner rules are given as such."""
    tables = {key: value.to_table() if isinstance(value, Rule) else value for key, value in options.items()}
    return build({"rule": name, **tables})
