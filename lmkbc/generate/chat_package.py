"""Asking any OpenAI-compatible server: bounded, resumable, and honest about what failed."""

from lmkbc.generate.chat import ChatGenerator
from lmkbc.models.budget import Budget
from lmkbc.models.server.address import Server
from lmkbc.models.server.client import ServerError
from lmkbc.models.server.limits import Limits

__all__ = ["Budget", "ChatGenerator", "Limits", "Server", "ServerError"]
