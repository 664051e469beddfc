"""Ask for QIDs in place of names (GPT-3 baseline of the organisers, LM-KBC 2023)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from lmkbc.ask.style import PromptStyle


@dataclass(frozen=True, kw_only=True)
class IdStyle(PromptStyle):
    """A prompt whose examples and answers are QIDs."""

    REPLACES: ClassVar[tuple[str, ...]] = ("objects",)
    writes_ids: ClassVar[bool] = True


COMPONENTS = {"bl23-gpt-ids/prompt": IdStyle}
