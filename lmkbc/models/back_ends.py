"""The back ends of language models by name. One is imported when a model is opened, since some load large libraries."""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module
from typing import Any

from lmkbc import plugins
from lmkbc.errors import InputError, did_you_mean

ENGINES: Mapping[str, str] = {
    "local": "lmkbc.models.local.model:CausalModel",
    "vllm": "lmkbc.models.local.vllm_model:VllmModel",
}
"""Back end of this machine -> module:class, a CausalModel."""

CLIENTS: Mapping[str, str] = {
    "server": "lmkbc.models.server.openai_client:ChatClient",
}
"""Back end over HTTP -> module:class, a ModelClient. Plug-ins add others (`lmkbc.plugins`)."""

AUTO = "auto"
"""Name for the back end that the other settings imply."""


def check_back_end(name: str) -> None:
    """Raise InputError for an unknown back end."""
    if name in (AUTO, *CLIENTS, *ENGINES):
        return
    if name not in (plugged := plugins.names(plugins.CLIENTS)):
        raise InputError(f"unknown back end {name!r}: {did_you_mean(name, (AUTO, *CLIENTS, *ENGINES, *plugged))}")


def back_end(name: str) -> type[Any]:
    """Return the class of a back end."""
    check_back_end(name)
    if path := {**ENGINES, **CLIENTS}.get(name):
        module, _, kind = path.partition(":")
        found: type[Any] = getattr(import_module(module), kind)
        return found
    from lmkbc.models.server.client import ModelClient

    plugged = plugins.load(plugins.CLIENTS, name)
    if not (isinstance(plugged, type) and issubclass(plugged, ModelClient)):
        raise InputError(f"{plugins.called(plugins.CLIENTS, name)} is {plugged!r}: it has to be a ModelClient")
    return plugged
