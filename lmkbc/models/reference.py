"""Reference of a recipe to a language model: its name, its place, and its settings."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from lmkbc.models.budget import checked_prices
from lmkbc.models.server.limits import Limits

Backend = Literal["auto", "server", "local", "vllm"]
Quantise = Literal["none", "4bit"]


@dataclass(frozen=True, kw_only=True)
class ModelReference:
    """A reference to a language model, the same in every table of a recipe that asks one.

    component: "causal" prefers this machine, and fetches the model where it is not there; any other name asks a model
    of this machine only where it is there already. backend: "server", "local" or "vllm" (this process, by vLLM) where
    that is not left to what is named. base_url, key_env, any_model, limits, prices: of a server, see
    `lmkbc.models.server`. key_env: the variable that holds the key for base_url, which is sent once the user has named
    it for that host. dtype, device, trust_remote_code, quantise: of this machine, see
    `lmkbc.models.local.checkpoint.load`.
    """

    component: Literal["chat", "causal"] = "chat"
    model: str | None = None
    backend: Backend = "auto"
    revision: str = ""
    base_url: str | None = None
    key_env: str = ""
    any_model: bool = False
    limits: Limits = field(default_factory=Limits)
    prices: tuple[float, float] | None = None
    dtype: str = "auto"
    device: str | None = None
    trust_remote_code: bool = False
    quantise: Quantise = "none"

    def __post_init__(self) -> None:
        """InputError for prices that nothing can be held against."""
        if self.prices is not None:
            checked_prices(self.prices, f"prices is {list(self.prices)}")


OF_SERVERS = ("any_model", "key_env", "limits", "prices")
"""Settings that a model of this machine has no use for."""


def flat(table: Mapping[str, Any]) -> dict[str, Any]:
    """Return a table whose model is a table of its own, `name` and all, with these settings beside its others."""
    model = table.get("model")
    if not isinstance(model, Mapping):
        return dict(table)
    named = {"model" if name == "name" else name: value for name, value in model.items()}
    return {name: value for name, value in table.items() if name != "model"} | named
