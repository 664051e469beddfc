"""What Li X. et al. alone do (LM-KBC 2023): the prompt is the assistant's turn."""

from __future__ import annotations

from dataclasses import dataclass

from lmkbc.ask.style import PromptStyle
from lmkbc.models.base import Role


@dataclass(frozen=True, kw_only=True)
class AssistantStyle(PromptStyle):
    """A prompt whose only message is the assistant's."""

    @property
    def speaker(self) -> Role:
        """Return the role of the message for form "single"."""
        return "assistant"


COMPONENTS = {"lix23/prompt": AssistantStyle}
