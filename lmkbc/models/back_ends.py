"""The back ends of language models by name. One is imported when a model is opened, since some load large libraries."""

from __future__ import annotations

from collections.abc import Mapping
from pkgutil import resolve_name
from typing import Any

from lmkbc import plugins
from lmkbc.errors import InputError, did_you_mean

BACK_ENDS: Mapping[str, str] = {
    "server": "lmkbc.models.server.openai_client:ChatClient",
    "local": "lmkbc.models.local.model:CausalModel",
    "vllm": "lmkbc.models.local.vllm_model:VllmModel",
}
"""Back end -> module:class, a CausalModel if it is in LOCAL, else a ModelClient. Plug-ins add clients."""

LOCAL = ("local", "vllm")
"""Back ends of this machine; all others ask a server."""

AUTO = "auto"
"""Name for the back end that the other settings imply."""


def check_back_end(name: str) -> None:
    """Raise InputError for an unknown back end."""
    known = AUTO, *BACK_ENDS
    if name not in known and name not in (plugged := plugins.names(plugins.CLIENTS)):
        raise InputError(f"unknown back end {name!r}: {did_you_mean(name, (*known, *plugged))}")


def back_end(name: str) -> type[Any]:
    """Return the class of a back end that `check_back_end` accepts. Raise InputError for a plug-in of another type."""
    if name in BACK_ENDS:
        kind: type[Any] = resolve_name(BACK_ENDS[name])
        return kind
    from lmkbc.models.server.client import ModelClient

    plugged = plugins.load(plugins.CLIENTS, name)
    if not (isinstance(plugged, type) and issubclass(plugged, ModelClient)):
        raise InputError(f"{plugins.called(plugins.CLIENTS, name)} is {plugged!r}: it has to be a ModelClient")
    return plugged
