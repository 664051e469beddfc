"""The generators that a recipe can name, and what they are given. Heavy modules are imported only when named."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypeVar

from lmkbc.edition import Edition
from lmkbc.errors import InputError, did_you_mean
from lmkbc.generate.wrappers import Only
from lmkbc.progress import Report, silent
from lmkbc.recipe import System
from lmkbc.relation import Relation
from lmkbc.types import (
    Candidate,
    CandidateSet,
    Example,
    Generator,
    Query,
)
from lmkbc.workspace import Workspace

if TYPE_CHECKING:
    from lmkbc.link.ask_model import Completer
    from lmkbc.models.masked.forward import Precision

Made = TypeVar("Made")
Settings = Mapping[str, Any]
NONE: Settings = {}


@dataclass(frozen=True, kw_only=True)
class Context:
    """What a run works with: the edition, its data, and what the user gave on the command line."""

    workspace: Workspace
    edition: Edition
    model: str | None = None
    files: tuple[Path, ...] = ()
    search_table: Path | None = None
    index: Path | None = None
    offline: bool = False
    cache: Path | None = None
    options: Settings = field(default_factory=dict)
    """What the command line says of servers: base_url, any_model, concurrency, max_cost, max_tokens, prices, store."""
    loaded: dict[Any, Any] = field(default_factory=dict, repr=False, compare=False)
    """Models that generators of this run have loaded, so that a second one of the same model does not."""
    report: Report = field(default=silent, repr=False, compare=False)
    """Told by generators that work long before their first answer."""

    @cached_property
    def relations(self) -> dict[str, Relation]:
        """The edition's relations, by the names it gives them."""
        return {name: self.workspace.relation(name) for name in self.edition.relations}

    @cached_property
    def train(self) -> list[Example]:
        """The train split."""
        return self.workspace.examples(self.edition, "train")


class Nothing:
    """Proposes no object for any query: the all-empty file, which every system must beat."""

    def generate(self, queries: Sequence[Query]) -> Iterator[CandidateSet]:
        """Yield one set per query that only proposes to answer nothing."""
        for query in queries:
            yield CandidateSet(query, (Candidate("", 1.0, ("nothing",)),))


def _chat(
    run: Context, /, name: str = "", model: str | None = None, base_url: str | None = None, revision: str = "",
    any_model: bool = False, schema: bool = False, executor: Literal["calls", "batch"] = "calls",
    closed_book: bool = True, prompt: Settings = NONE, shots: Settings = NONE, sampling: Settings = NONE,
    limits: Settings = NONE, context: Settings = NONE, prices: Sequence[float] = (),
    relations: Mapping[str, Settings] = NONE, verify: Settings = NONE,
) -> Generator:  # fmt: skip
    from lmkbc.generate.chat_recipe import build

    return build(
        run, name=name, model=model, base_url=base_url, revision=revision, any_model=any_model, schema=schema,
        executor=executor, closed_book=closed_book, prompt=prompt, shots=shots, sampling=sampling, limits=limits,
        context=context, prices=prices, relations=relations, verify=verify,
    )  # fmt: skip


def _embedded(context: Context, encoder: bool = True) -> Generator:
    from lmkbc.generate.embedded.generator import EmbeddedGenerator
    from lmkbc.models.encoder import find_encoder

    found = find_encoder() if encoder else None
    return EmbeddedGenerator(
        context.edition, context.relations, context.train, found, context.cache, report=context.report
    )


def _entity_masked(
    context: Context, model: str = "", top_k: int = 40, precision: Precision = "fp32", device: str | None = None
) -> Generator:
    from lmkbc.generate.entity_masked import EntityMasked

    directory = context.model or model
    if not directory:
        raise InputError("this system reads a model that 'lmkbc train mlm' made: name its directory with --model")
    return EntityMasked.read(Path(directory), context.relations, top_k, precision, device)


def _prior(context: Context) -> Generator:
    from lmkbc.generate.prior import ClassPrior

    return ClassPrior(context.edition, context.relations, context.train)


def _naive_bayes(context: Context) -> Generator:
    from lmkbc.generate.naive_bayes import NaiveBayes

    return NaiveBayes(context.edition, context.relations, context.train)


def _recorded(context: Context) -> Generator:
    from lmkbc.generate.recorded import Recorded

    if not context.files:
        raise InputError("this system reads recorded answers: name at least one file with --from")
    return Recorded(context.files, context.edition, context.relations)


def _causal(
    run: Context, /, name: str = "", model: str | None = None, revision: str | None = None, dtype: str = "auto",
    device: str | None = None, remote_code: bool = False, quantise: Literal["none", "4bit"] = "none",
    closed_book: bool = True, prompt: Settings = NONE, shots: Settings = NONE, sampling: Settings = NONE,
    context: Settings = NONE, verify: Settings = NONE, relations: Mapping[str, Settings] = NONE,
) -> Generator:  # fmt: skip
    from lmkbc.generate.causal_recipe import build

    return build(
        run, name=name, model=model, revision=revision, dtype=dtype, device=device, remote_code=remote_code,
        quantise=quantise, closed_book=closed_book, prompt=prompt, shots=shots, sampling=sampling, context=context,
        verify=verify, relations=relations,
    )  # fmt: skip


def _masked(
    context: Context, model: str = "", revision: str | None = None, trust_remote_code: bool = False,
    device: str | None = None, probe: Settings | None = None,
) -> Generator:  # fmt: skip
    from lmkbc.generate.masked.generator import MaskedGenerator
    from lmkbc.generate.masked.probe import Probe
    from lmkbc.models.masked.backbone import load

    name = context.model or model
    if not name:
        raise InputError("this system asks a masked language model: name one with --model (an id or a directory)")
    if (probe or {}).get("vectors") == "from":
        if len(context.files) != 1:
            raise InputError("this system reads entity vectors: name one file in Wikipedia2Vec's format with --from")
        probe = {**(probe or {}), "vectors": str(context.files[0])}
    chosen = Probe.of(probe or {}, context.workspace.relations)
    backbone = load(
        name, revision=revision, offline=context.offline, trust_remote_code=trust_remote_code, device=device
    )
    return MaskedGenerator(backbone, context.edition, context.relations, context.train, chosen)


def _nothing(_: Context) -> Generator:
    return Nothing()


def _chat_completer(
    run: Context, /, model: str | None = None, base_url: str | None = None, revision: str = "",
    any_model: bool = False, limits: Settings = NONE, prices: Sequence[float] = (), extra: Settings = NONE,
) -> Completer:  # fmt: skip
    from lmkbc.generate.chat_recipe import Access
    from lmkbc.models.server.scorer import ChatScorer

    access = Access.of(
        run, model=model, base_url=base_url, revision=revision, any_model=any_model, limits=limits, prices=prices
    )
    return ChatScorer(access.server, access.session, completion=False, extra=extra)


def _causal_completer(
    run: Context, /, model: str | None = None, revision: str | None = None, dtype: str = "auto",
    device: str | None = None, remote_code: bool = False, quantise: Literal["none", "4bit"] = "none",
) -> Completer:  # fmt: skip
    from lmkbc.generate.causal_recipe import Asked

    asked = Asked.of(
        run, model, revision=revision, dtype=dtype, device=device, remote_code=remote_code, quantise=quantise
    )
    return asked.scorer()


COMPLETERS: dict[str, Callable[..., Completer]] = {"chat": _chat_completer, "causal": _causal_completer}

GENERATORS: dict[str, Callable[..., Generator]] = {
    "chat": _chat,
    "causal": _causal,
    "embedded": _embedded,
    "entity-masked": _entity_masked,
    "masked": _masked,
    "naive-bayes": _naive_bayes,
    "nothing": _nothing,
    "prior": _prior,
    "recorded": _recorded,
}


def generators(context: Context, system: System) -> Iterator[tuple[str, Generator]]:
    """The generators of a recipe with a name for each; recorded answers are one generator per file."""
    for settings in (voice for table in system.generate for voice in voices(table)):
        name = str(settings.get("component"))
        if name == "recorded" and len(context.files) > 1:
            for path in context.files:
                yield path.name, _build(replace(context, files=(path,)), settings)
        else:
            yield str(settings.get("name", name)), _build(context, settings)


def voices(table: Settings) -> Iterator[Settings]:
    """A generator's table; or, where it holds a list `each`, one table per entry, with what the entry says instead.

    Entries without a name are numbered, since each is a voice of its own.
    """
    if "each" not in table:
        yield table
        return
    shared, entries = {name: value for name, value in table.items() if name != "each"}, table["each"]
    if not (isinstance(entries, list) and entries and all(isinstance(own, Mapping) for own in entries)):
        raise InputError(
            f"generator {table.get('component')!r}: each is a list of tables, with what each voice differs in"
        )
    for number, own in enumerate(entries, start=1):
        yield _merged(shared, {"name": f"{shared.get('name', 'voice')} {number}"} | own)


def _merged(table: Settings, other: Settings) -> dict[str, Any]:
    """A table with another laid over it, tables within them likewise."""
    both = {
        name: _merged(table[name], value)
        if isinstance(value, Mapping) and isinstance(table.get(name), Mapping)
        else value
        for name, value in other.items()
    }
    return {**table, **both}


def completer(context: Context, settings: Settings) -> Completer:
    """The model that a table names by component and settings, to be asked for short texts."""
    own = dict(settings)
    return _made("completer", COMPLETERS, own.pop("component", None), own)(context, **own)


def _made(what: str, known_as: Mapping[str, Callable[..., Made]], name: Any, own: Settings) -> Callable[..., Made]:
    """What makes a component. InputError for a name or a setting that does not exist."""
    if name not in known_as:
        raise InputError(f"unknown {what} {name!r}: {did_you_mean(str(name), known_as)}")
    known = dict([*inspect.signature(known_as[name]).parameters.items()][1:])  # the first is the run
    for setting, value in own.items():
        if setting not in known:
            raise InputError(f"{what} {name!r} has no setting {setting!r}: {did_you_mean(setting, known)}")
        if known[setting].default is NONE and not isinstance(value, Mapping):
            raise InputError(f"{what} {name!r}: {setting} is {value!r}: give a table")
    return known_as[name]


def _build(context: Context, settings: Settings) -> Generator:
    own = dict(settings)
    name, only = own.pop("component", None), own.pop("only", None)
    make = _made("generator", GENERATORS, name, own)
    if only is None:
        return make(context, **own)
    if not isinstance(only, list):
        raise InputError(f"generator {name!r}: only is {only!r}: give a list of relations")
    chosen = {relation: context.workspace.relation(relation) for relation in only}
    spellings = {spelling for relation in chosen.values() for spelling in (relation.name, *relation.names)}
    return Only(make(context, **own), spellings)
