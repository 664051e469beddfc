"""Options, each declared once, for the command line, the Python functions and the run itself.

A field of a group is an option, and so is a parameter of a function of `lmkbc.api` that has a `Meta` with its help text
and its bounds. `Meta.extra` has what only the command line needs: special flags, and settings of typer. "settle" is the
function that checks and converts a value. "group" is the option's heading in the help of commands with many options;
those without a heading come first.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from contextlib import suppress
from functools import cache
from pathlib import Path
from types import MappingProxyType, SimpleNamespace
from typing import Annotated, Any, TypedDict, TypeVar, Unpack, get_args, get_origin, get_type_hints

from msgspec import Meta

from lmkbc.errors import LmkbcError, OptionError
from lmkbc.files.places import all_placed
from lmkbc.models.budget import checked_prices
from lmkbc.models.store_place import Place, place_of
from lmkbc.registry import BACK_ENDS
from lmkbc.workspace import Workspace

Group = TypeVar("Group")


BEST = "best:"
EMPTY_TEXTS = ("unread", "none")
"""Meanings of an empty text in recorded answers; the first is the default."""
HEADINGS = ("Input", "Model", "Selection", "Output")
"""Headings of a command's help, in order; others come after them."""
INPUT, MODEL, SELECTION, OUTPUT = ({"group": name} for name in HEADINGS)


def _editions() -> list[str]:
    """Return the completions of --edition in a shell; none below a workspace that is not trusted."""
    with suppress(LmkbcError):
        return list(Workspace().editions)
    return []


def _systems() -> list[str]:
    """Return the completions of --system in a shell."""
    return Workspace().system_names()


def _back_ends() -> list[str]:
    """Return the completions of --backend in a shell."""
    return [*BACK_ENDS]


def _prices(given: Any) -> tuple[float, float]:
    """Return two prices, which may be the text of --prices. InputError for anything else."""
    is_text = isinstance(given, str)
    try:
        prices = [float(price) for price in given.split(",")] if is_text else given
    except ValueError:
        prices = None
    return checked_prices(prices, f"{'--' if is_text else ''}prices is {given!r}")


def _precision(given: Any) -> float | str:
    """Return a precision, or a share of the surest facts as in "best:0.3". OptionError for anything else."""
    try:
        share = float(given.removeprefix(BEST) if isinstance(given, str) else given)
    except ValueError:
        share = math.nan
    if not 0 < share < 1:
        raise OptionError("precision", f"is {given}: give a share between 0 and 1, as in 0.9, or best:0.1")
    return given if isinstance(given, str) and BEST in given else share


def _place(store: Place | str) -> Place:
    return place_of(store) if isinstance(store, str) else store


Split = Annotated[str, Meta(description="Split: train, val (or dev) or test.", extra={"flags": ("--split", "-s")})]
OneSplit = Annotated[
    str | None,
    Meta(
        description="Labelled split: train or val (or dev). Default: the run's own, else val.",
        extra={"flags": ("--split", "-s")},
    ),
]
HeldOutSplit = Annotated[
    str | None,
    Meta(description="A labelled split; default: the edition's held-out one.", extra={"flags": ("--split", "-s")}),
]
OneRelation = Annotated[
    str | Sequence[str] | None,
    Meta(description="Only this relation, by any of its names. Repeatable.", extra={"flags": ("--relation", "-r")}),
]
Limit = Annotated[int | None, Meta(ge=1, description="Only the first N queries, of all relations together.")]
Gold = Annotated[
    Path | str | None, Meta(description="Gold file in place of the split.", extra={**INPUT, "metavar": "FILE"})
]
Folds = Annotated[
    int, Meta(ge=2, description="Number of folds; all rows of a subject are in one fold.", extra=SELECTION)
]
Trials = Annotated[
    int, Meta(ge=0, description="Most Optuna trials per relation and fold. 0: exact sweeps only.", extra=SELECTION)
]
EditionName = Annotated[
    str | None,
    Meta(
        description="Edition: 2022 to 2026, mini or your own. Default: your workspace's, else the newest with data.",
        extra={"flags": ("--edition", "-e"), "autocompletion": _editions},
    ),
]
Recorded = Annotated[
    Sequence[Path | str] | None,
    Meta(
        description="Recorded answers: completions or candidates as JSONL, or a script's own table (docs/files.md). "
        "Repeatable.",
        extra={**INPUT, "flags": ("--from",), "metavar": "FILE[:subject=COLUMN,...]"},
    ),
]
Empty = Annotated[
    str | None,
    Meta(
        description="What an empty text among recorded answers means: unread (no answer), or none (there is no "
        "object). Default: unread.",
        extra={**INPUT, "metavar": "unread|none"},
    ),
]
DataDir = Annotated[
    Path | str | None,
    Meta(
        description="Directory that holds lmkbc2022/, lmkbc2023/ and so on. Default: $LMKBC_DATA, else the cache.",
        extra={**INPUT, "metavar": "DIR"},
    ),
]
SearchTable = Annotated[
    Path | str | None,
    Meta(
        description="Recorded searches of Wikidata: a JSON object from text to QID, '' for no hit.",
        extra={**INPUT, "metavar": "FILE"},
    ),
]
DocumentsDir = Annotated[
    Path | str | None,
    Meta(
        description="Directory of texts (.txt, .md, .html): what names a subject is shown to the model, and facts are "
        "quoted from it.",
        extra={**INPUT, "metavar": "DIR"},
    ),
]
Index = Annotated[
    Path | str | None, Meta(description="Alias index, made by 'lmkbc link build'.", extra={**INPUT, "metavar": "FILE"})
]
WorkspaceDir = Annotated[
    Path | str | None,
    Meta(
        description="Directory with relations/, systems/ and thresholds/ of your own. Default: the nearest one with "
        "lmkbc.toml, from here upwards.",
        extra={**INPUT, "metavar": "DIR"},
    ),
]
Trust = Annotated[
    bool,
    Meta(
        description="Trust the workspace's modules as they are now, which are run; 'lmkbc trust DIR' does so too.",
        extra=INPUT,
    ),
]
KnowledgeDir = Annotated[
    Path | str,
    Meta(
        description="Directory of a knowledge base, as 'lmkbc build' writes it.",
        extra={"argument": True, "metavar": "DIR"},
    ),
]
Offline = Annotated[bool, Meta(description="Open no network connection.", extra=INPUT)]
Contact = Annotated[
    str | None, Meta(description="Your name and e-mail address, for Wikidata. Default: $LMKBC_CONTACT.", extra=INPUT)
]
ApiUrl = Annotated[str | None, Meta(description="MediaWiki API, such as a mirror's. Default: Wikidata's.", extra=INPUT)]


class Selection(TypedDict, total=False):
    """Options for what is kept of the candidates."""

    any_thresholds: Annotated[
        bool,
        Meta(description="Use thresholds even if they were tuned on other data, models or prompts.", extra=SELECTION),
    ]
    untuned: Annotated[bool, Meta(description="Use no tuned thresholds, but the recipe's own rule.", extra=SELECTION)]
    precision: Annotated[
        float | str | None,
        Meta(
            description="Least precision that tuning expects of what is kept, per relation, as in 0.9; the rest is "
            "withheld. best:0.1 takes the highest precision that keeps a tenth of the recall. Precision is learned on "
            "known facts and is often lower on new ones: check a sample.",
            extra={**SELECTION, "parser": _precision, "settle": _precision, "metavar": "P|best:R"},
        ),
    ]
    promise: Annotated[
        str | None,
        Meta(
            description="How --precision is promised. sure (default): with 95 % confidence. average: on average over "
            "draws of labelled rows, for which fewer rows suffice: 10 right facts of 10 for 0.9, where sure needs 52. "
            "overall: on average, for the facts of all relations together.",
            extra={**SELECTION, "metavar": "sure|average|overall"},
        ),
    ]


class Servers(TypedDict, total=False):
    """Options for model servers and the store of answers; they override recipes."""

    base_url: Annotated[
        str | None,
        Meta(
            description="URL of an OpenAI-compatible server. Default: $OPENAI_BASE_URL, else the recipe's.", extra=MODEL
        ),
    ]
    any_model: Annotated[
        bool, Meta(description="Use the model that the server serves, and record answers under its name.", extra=MODEL)
    ]
    fresh: Annotated[
        bool, Meta(description="Ask again for answers that are kept already, and replace them.", extra=MODEL)
    ]
    concurrency: Annotated[
        int | None,
        Meta(ge=1, description="Most requests at the same time. Default: the recipe's, else 8.", extra=MODEL),
    ]
    timeout: Annotated[
        float | None,
        Meta(
            ge=0.1,
            description="Most seconds for one attempt of a request. Default: the recipe's, else 120.",
            extra={**MODEL, "metavar": "SECONDS"},
        ),
    ]
    max_cost: Annotated[
        float | None, Meta(ge=0, description="Stop before the run costs more than X USD; needs --prices.", extra=MODEL)
    ]
    max_tokens: Annotated[
        int | None,
        Meta(ge=0, description="Stop before the run uses more than N tokens (prompts and answers).", extra=MODEL),
    ]
    prices: Annotated[
        tuple[float, float] | None,
        Meta(
            description="USD per million prompt tokens and answer tokens, as in 2.50,10.",
            extra={**MODEL, "parser": _prices, "settle": _prices, "metavar": "PRICES"},
        ),
    ]
    store: Annotated[
        Place | str | None,
        Meta(
            description="Store of kept answers: a file, or postgresql://USER@HOST/DATABASE (password in "
            "PGPASSWORD). Default: $LMKBC_STORE, else a file in the user's cache.",
            extra={**MODEL, "parser": place_of, "settle": _place, "metavar": "FILE|URL"},
        ),
    ]


class Inputs(TypedDict, total=False):
    """Options for the input of a run, and for its models."""

    edition: EditionName
    system: Annotated[
        str | Mapping[str, Any] | None,
        Meta(
            description="Recipe: a name from 'lmkbc systems list', or a TOML file. Default: your workspace's, else "
            "smollm2-embedded.",
            extra={"parser": str, "metavar": "NAME", "autocompletion": _systems},
        ),
    ]
    model: Annotated[
        str | None,
        Meta(
            description="Model in place of the recipe's: hub id, directory, GGUF file, or a server's name for it. With "
            "recorded answers alone: the model whose answers are read."
        ),
    ]
    backend: Annotated[
        str | None,
        Meta(
            description="Where models run: server, local (transformers), or auto. "
            "Default: the recipe's, else auto: a server if one is named.",
            extra={**MODEL, "metavar": "NAME", "autocompletion": _back_ends},
        ),
    ]
    files: Recorded
    empty: Empty
    data: DataDir
    learn_from: Annotated[
        str | None,
        Meta(
            description="Labelled splits to learn from: train, or train,val (or train,dev). none: learn from train, "
            "but keep nothing that its rows state. Default: train,val for the test split, else train.",
            extra={**INPUT, "metavar": "SPLITS"},
        ),
    ]
    offline: Offline
    api_url: ApiUrl
    search_table: SearchTable
    index: Index
    documents: DocumentsDir
    workspace: WorkspaceDir
    trust: Trust


class RunOptions(Inputs, Servers, total=False):
    """Options that `lmkbc.predict`, `lmkbc.tune` and `lmkbc.build` share."""


class SelectedRunOptions(Selection, RunOptions, total=False):
    """Options of a run, and of what it keeps."""


@cache
def described(declared: Any) -> dict[str, tuple[Any, Meta]]:
    """Return the options that a group, or a function with its groups, declares: name -> (type, help and bounds)."""
    source = declared
    if not isinstance(declared, type):
        space, texts = declared.__globals__, declared.__annotations__
        marked = {name: text for name, text in texts.items() if text.startswith(("Annotated[", "Unpack["))}
        marked |= {name: text for name, text in texts.items() if get_origin(space.get(text)) is Annotated}
        source = SimpleNamespace(
            __globals__=space, __annotations__={name: texts[name] for name in texts if name in marked}
        )
    options: dict[str, tuple[Any, Meta]] = {}
    for name, hint in get_type_hints(source, include_extras=True).items():
        if get_origin(hint) is Unpack:
            options |= described(get_args(hint)[0])
        elif isinstance(about := getattr(hint, "__metadata__", ("",))[0], Meta):
            options[name] = hint.__origin__, about
    return options


def settled(group: type[Group], given: Mapping[str, Any]) -> Group:
    """Return all options of a group, checked and of one type each, as a mapping that cannot be changed.

    InputError for a number out of bounds, and for invalid prices or an invalid store.
    """
    declared: Any = group
    values = {name: _checked(name, *option, given.get(name)) for name, option in described(declared).items()}
    return MappingProxyType(values)  # type: ignore[return-value]


def _checked(name: str, hint: Any, about: Meta, value: Any) -> Any:
    """Return the value of an option: a path for text that names one, and False for a flag that is not given."""
    if value is None:
        return False if hint is bool else None
    if about.ge is not None and not about.ge <= value < math.inf:
        kind = "finite number" if isinstance(value, float) else "number"
        raise OptionError(name, f"is {value}: give a {kind}, not below {about.ge}")
    if settle := (about.extra or {}).get("settle"):
        return settle(value)
    if Path in get_args(hint):
        return Path(value)
    return all_placed(value) if Sequence[Path | str] in get_args(hint) else value
