"""A table of a server that names none, but a model of this machine: the same is asked of that model.

What both back ends know is kept as it stands; what only a server heeds is left out, and named in one remark.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import MISSING, Field, fields, replace
from typing import Any, TypeVar

from lmkbc.ask.plan import Differs
from lmkbc.generate.access import ServerSettings
from lmkbc.generate.causal import Causal, CausalCompleter
from lmkbc.models.base import LanguageModel, Sampling
from lmkbc.models.causal.decode import Decoding
from lmkbc.models.files import model_name
from lmkbc.models.server.limits import GUESSED_ANSWER
from lmkbc.run import Run
from lmkbc.types import Generator, Notes

Table = TypeVar("Table", Causal, CausalCompleter)

HEEDED = {one.name for one in fields(Decoding)} - {one.name for one in fields(Sampling)} - {"first", "stops"}
"""Further fields of a request that a local model heeds too."""


def generator(table: ServerSettings, run: Run, notes: Notes) -> Generator:
    """The generator of a server's table over the model here, and around it the verifier that the table asks for."""
    return _local(table, Causal, run, notes).open(run, notes)


def completer(table: ServerSettings, run: Run, notes: Notes) -> LanguageModel:
    """The model here, as another step asks it."""
    return _local(table, CausalCompleter, run, notes).open(run, notes)


def _local(table: ServerSettings, kind: type[Table], run: Run, notes: Notes) -> Table:
    """A server's table as a local model's. An answer that nothing limits has as many tokens as one is taken to have."""
    known = {one.name for one in fields(kind)}
    settings = {one.name: getattr(table, one.name) for one in fields(table) if one.name in known}
    ignored = {one.name for one in fields(table) if one.name not in known and _given(table, one)}
    if "sampling" in settings:
        sampling: Sampling = settings["sampling"]
        relations: Mapping[str, Differs] = settings["relations"]
        extras = sampling.extra, *(one.sampling.get("extra", {}) for one in relations.values())
        ignored |= {f"sampling.extra.{name}" for extra in extras for name in extra if name not in HEEDED}
        longest = sampling.max_tokens or GUESSED_ANSWER
        settings["sampling"] = replace(sampling, max_tokens=longest, extra=_heeded(sampling.extra))
        settings["relations"] = {
            name: replace(one, sampling={**one.sampling, "extra": _heeded(one.sampling["extra"])})
            if "extra" in one.sampling
            else one
            for name, one in relations.items()
        }
    if ignored:
        model, names = model_name(run.model or table.model or ""), ", ".join(sorted(ignored))
        notes.remark(f"{model} is asked on this machine: what its table says to a server alone is ignored ({names})")
    return kind(**settings | {"revision": table.revision or None})


def _given(table: ServerSettings, one: Field[Any]) -> bool:
    """Whether a table says something else than the default."""
    default = one.default if one.default_factory is MISSING else one.default_factory()
    return bool(getattr(table, one.name) != default)


def _heeded(extra: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in extra.items() if name in HEEDED}
