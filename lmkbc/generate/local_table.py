"""A table of a server that names none, but a model of this machine: the same is asked of that model.

What both back ends know is kept as it stands; what only a server knows is left out, and named in one remark.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import MISSING, Field, fields, replace
from typing import Any, TypeVar

from lmkbc.ask.plan import Differs
from lmkbc.generate.access import ServerSettings
from lmkbc.generate.causal import Causal, CausalCompleter
from lmkbc.generate.conversation import Opened
from lmkbc.models.base import LanguageModel, Sampling
from lmkbc.models.causal.decode import Decoding
from lmkbc.models.files import model_name
from lmkbc.models.server.limits import GUESSED_ANSWER
from lmkbc.run.base import Run
from lmkbc.types import Notes

Table = TypeVar("Table", Causal, CausalCompleter)

LOCAL_EXTRAS = {item.name for item in fields(Decoding)} - {item.name for item in fields(Sampling)} - {"first", "stops"}
"""Further fields of a request that a local model knows too."""


def generator(table: ServerSettings, run: Run, notes: Notes) -> Opened:
    """The generator of a server's table over the model here, and what opens that model to verify facts."""
    return _local(table, Causal, run, notes).back_end(run, notes)


def completer(table: ServerSettings, run: Run, notes: Notes) -> LanguageModel:
    """The model here, as another step asks it."""
    return _local(table, CausalCompleter, run, notes).open(run, notes)


def _local(table: ServerSettings, kind: type[Table], run: Run, notes: Notes) -> Table:
    """A server's table as a local model's. An answer that nothing limits has as many tokens as one is taken to have."""
    known = {item.name for item in fields(kind)}
    settings = {item.name: getattr(table, item.name) for item in fields(table) if item.name in known}
    ignored = {item.name for item in fields(table) if item.name not in known and _given(table, item)}
    if "sampling" in settings:
        sampling: Sampling = settings["sampling"]
        relations: Mapping[str, Differs] = settings["relations"]
        extras = sampling.extra, *(item.sampling.get("extra", {}) for item in relations.values())
        ignored |= {f"sampling.extra.{name}" for extra in extras for name in extra if name not in LOCAL_EXTRAS}
        longest = sampling.max_tokens or GUESSED_ANSWER
        settings["sampling"] = replace(sampling, max_tokens=longest, extra=_local_extras(sampling.extra))
        settings["relations"] = {
            name: replace(item, sampling={**item.sampling, "extra": _local_extras(item.sampling["extra"])})
            if "extra" in item.sampling
            else item
            for name, item in relations.items()
        }
    if ignored:
        model, names = model_name(run.model or table.model or ""), ", ".join(sorted(ignored))
        notes.remark(f"{model} is asked on this machine: what its table says to a server alone is ignored ({names})")
    return kind(**settings | {"revision": table.revision or None})


def _given(table: ServerSettings, item: Field[Any]) -> bool:
    """Whether a table says something else than the default."""
    default = item.default if item.default_factory is MISSING else item.default_factory()
    return bool(getattr(table, item.name) != default)


def _local_extras(extra: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in extra.items() if name in LOCAL_EXTRAS}
