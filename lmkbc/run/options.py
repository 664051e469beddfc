"""Options of a run, each declared once, for the command line, the Python functions and the run itself.

A field is an option. Its `Meta` has its help text and its bounds. `Meta.extra` has what only the command line needs:
special flags, and settings of typer.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Annotated, Any, TypedDict, get_type_hints

from msgspec import Meta

from lmkbc.errors import OptionError
from lmkbc.models.budget import checked_prices
from lmkbc.models.registry import CLIENTS, ENGINES
from lmkbc.models.store_place import Place, place_of
from lmkbc.workspace import Workspace


def _editions() -> list[str]:
    """Return the completions of --edition in a shell."""
    return list(Workspace().editions)


def _systems() -> list[str]:
    """Return the completions of --system in a shell."""
    return Workspace().system_names()


def _back_ends() -> list[str]:
    """Return the completions of --backend in a shell."""
    return [*CLIENTS, *ENGINES]


def _prices(text: str) -> tuple[float, float]:
    """Return the two prices of --prices. InputError for anything else."""
    what = f"--prices is {text!r}"
    try:
        return checked_prices([float(price) for price in text.split(",")], what)
    except ValueError:
        return checked_prices(None, what)


class Servers(TypedDict, total=False):
    """Options for model servers and the store of answers; they override recipes."""

    base_url: Annotated[
        str | None,
        Meta(description="URL of an OpenAI-compatible server. Default: $OPENAI_BASE_URL, else the recipe's."),
    ]
    any_model: Annotated[
        bool, Meta(description="Use the model that the server serves, and record answers under its name.")
    ]
    fresh: Annotated[bool, Meta(description="Ask again for answers that are kept already, and replace them.")]
    concurrency: Annotated[
        int | None, Meta(ge=1, description="Most requests at the same time. Default: the recipe's, else 8.")
    ]
    max_cost: Annotated[
        float | None, Meta(ge=0, description="Stop before the run costs more than X USD; needs --prices.")
    ]
    max_tokens: Annotated[
        int | None, Meta(ge=0, description="Stop before the run uses more than N tokens (prompts and answers).")
    ]
    prices: Annotated[
        tuple[float, float] | None,
        Meta(
            description="USD per million prompt tokens and answer tokens, as in 2.50,10.",
            extra={"parser": _prices, "metavar": "PRICES"},
        ),
    ]
    store: Annotated[
        Place | str | None,
        Meta(
            description="Store of kept answers: a file, or postgresql://USER@HOST/DATABASE (password in "
            "PGPASSWORD). Default: $LMKBC_STORE, else a file in the user's cache.",
            extra={"parser": place_of, "metavar": "FILE|URL"},
        ),
    ]


class Inputs(TypedDict, total=False):
    """Options for the input of a run, and for its models."""

    edition: Annotated[
        str | None,
        Meta(
            description="Edition of the challenge: 2022 to 2026, or mini. Default: the newest whose data is here.",
            extra={"flags": ("--edition", "-e"), "autocompletion": _editions},
        ),
    ]
    system: Annotated[
        str | None,
        Meta(
            description="Recipe: a name from 'lmkbc systems list', or a TOML file. Default: smollm2-embedded.",
            extra={"metavar": "NAME", "autocompletion": _systems},
        ),
    ]
    model: Annotated[
        str | None,
        Meta(description="Model in place of the recipe's: hub id, directory, GGUF file, or a server's name for it."),
    ]
    backend: Annotated[
        str | None,
        Meta(
            description="Where models run: server, local (transformers), vllm (this process, by vLLM), or auto. "
            "Default: the recipe's, else auto: a server if one is named.",
            extra={"metavar": "NAME", "autocompletion": _back_ends},
        ),
    ]
    files: Annotated[
        Sequence[Path | str] | None,
        Meta(
            description="Recorded answers of a model: completions or candidates, as JSONL (.gz too). Repeatable.",
            extra={"flags": ("--from",), "metavar": "FILE"},
        ),
    ]
    data: Annotated[
        Path | str | None,
        Meta(
            description="Directory that holds lmkbc2022/, lmkbc2023/ and so on. Default: $LMKBC_DATA, else the cache.",
            extra={"metavar": "DIR"},
        ),
    ]
    learn_from: Annotated[
        str | None,
        Meta(
            description="Labelled splits to learn from: train, or train,val (or train,dev). none: learn from train, "
            "but keep nothing that its rows state. Default: train,val for the test split, else train.",
            extra={"metavar": "SPLITS"},
        ),
    ]
    offline: Annotated[bool, Meta(description="Open no network connection.")]
    search_table: Annotated[
        Path | str | None,
        Meta(
            description="Recorded searches of Wikidata: a JSON object from text to QID, '' for no hit.",
            extra={"metavar": "FILE"},
        ),
    ]
    index: Annotated[
        Path | str | None, Meta(description="Alias index, made by 'lmkbc link build'.", extra={"metavar": "FILE"})
    ]
    workspace: Annotated[
        Path | str | None,
        Meta(description="Directory with your own relations/, eval/ and thresholds/.", extra={"metavar": "DIR"}),
    ]


class RunOptions(Inputs, Servers, total=False):
    """Options that `lmkbc.predict`, `lmkbc.tune` and `lmkbc.build` share."""


@cache
def described(options: type) -> dict[str, tuple[Any, Meta]]:
    """Return the options of a TypedDict: name -> (type, help and bounds)."""
    hints = get_type_hints(options, include_extras=True)
    return {name: (hint.__origin__, hint.__metadata__[0]) for name, hint in hints.items()}


def check_servers(given: Servers) -> None:
    """Raise InputError for a number out of bounds, invalid prices, and an invalid store."""
    for name, (_, about) in described(Servers).items():
        value: Any = given.get(name)
        if about.ge is not None and value is not None and not about.ge <= value < math.inf:
            kind = "finite number" if isinstance(value, float) else "number"
            raise OptionError(name, f"is {value}: give a {kind}, not below {about.ge}")
    if (prices := given.get("prices")) is not None:
        checked_prices(prices, f"prices is {prices!r}")
    if isinstance(store := given.get("store"), str):
        place_of(store)
