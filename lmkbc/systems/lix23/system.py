"""Put the prompt as the assistant's turn (Li X. et al., LM-KBC 2023)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from lmkbc.ask.style import PromptStyle
from lmkbc.models.base import Role


@dataclass(frozen=True, kw_only=True)
class AssistantStyle(PromptStyle):
    """A prompt whose only message is the assistant's."""

    REPLACES: ClassVar[tuple[str, ...]] = ("speaker",)

    @property
    def speaker(self) -> Role:
        """Return the role of the message for form "single"."""
        return "assistant"


COMPONENTS = {"lix23/prompt": AssistantStyle}
