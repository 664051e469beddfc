"""Asking any OpenAI-compatible server: bounded, resumable, and honest about what failed."""

from lmkbc.budget import Budget
from lmkbc.generate.chat.client import Server, ServerError
from lmkbc.generate.chat.generator import ChatGenerator
from lmkbc.generate.chat.limits import Limits

__all__ = ["Budget", "ChatGenerator", "Limits", "Server", "ServerError"]
