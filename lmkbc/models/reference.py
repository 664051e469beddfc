"""Reference of a recipe to a language model: its name, its place, and its settings."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar

from lmkbc.models.base import Quantise
from lmkbc.models.budget import checked_prices
from lmkbc.models.server.limits import Limits
from lmkbc.registry import BACK_ENDS

LOCAL = "local"
"""Back end of this machine; all others ask a server, or a library in this process."""

AUTO = "auto"
"""Name for the back end that the other settings imply."""


ASKED_AS = ("chat", "causal")
"""Components of a model that a step asks."""


@dataclass(frozen=True, kw_only=True)
class ModelReference:
    """A reference to a language model; all tables of a recipe that ask one share these settings.

    component: "causal" prefers this machine, and downloads the model if needed; "chat" uses this machine only if the
    model is already there.
    backend: name in `lmkbc.models.reference`; "auto" decides by the other settings.
    base_url, key_env, any_model, limits, prices: of a server, see `lmkbc.models.server`.
    key_env: environment variable with the key for base_url; the key is sent only after the user has named it for that
    host.
    dtype, device, quantise: of this machine, see `lmkbc.local.checkpoint.load`.
    """

    component: str = "chat"
    model: str | None = None
    backend: str = AUTO
    revision: str = ""
    base_url: str | None = None
    key_env: str = ""
    any_model: bool = False
    limits: Limits = field(default_factory=Limits)
    prices: tuple[float, float] | None = None
    dtype: str = "auto"
    device: str | None = None
    quantise: Quantise = "none"

    REMOVED: ClassVar[Mapping[str, str]] = {
        "trust_remote_code": "no model's own code is run here; serve such a model, and name the server in base_url"
    }

    def __post_init__(self) -> None:
        """Raise InputError for an unknown back end, and for wrong prices."""
        BACK_ENDS.check(self.backend)
        if self.prices is not None:
            checked_prices(self.prices, f"prices is {list(self.prices)}")


OF_SERVERS = ("any_model", "key_env", "limits", "prices")
"""Settings that a local model ignores."""


def flat(table: Mapping[str, Any]) -> dict[str, Any]:
    """Return a table with the settings of its table `model` merged into it; `model.name` becomes `model`."""
    model = table.get("model")
    if not isinstance(model, Mapping):
        return dict(table)
    named = {"model" if name == "name" else name: value for name, value in model.items()}
    return {name: value for name, value in table.items() if name != "model"} | named
