"""Registries: every kind of component that has a name, with the names that the engine knows, and its plug-ins.

A registry maps a name to a place, "module:object", which is imported when the name is used. Other distributions add
names by entry points of the registry's group. The engine's own names come first, so only an unknown name is searched
there, and only the entry point of that name is loaded. A broken plug-in therefore affects only users who ask for it.
A system's own code adds names that begin with the system's, as in "mave26/names"; it is loaded when one is used.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass, field
from functools import lru_cache
from importlib import import_module
from importlib.metadata import EntryPoint, entry_points
from pkgutil import resolve_name
from typing import Any

from lmkbc.components import components_of, systems_with_code
from lmkbc.errors import InputError, did_you_mean


@dataclass(frozen=True, eq=False, kw_only=True)
class Registry:
    """Names of one kind of component.

    what: the kind, for messages.
    group: the group of entry points by which other distributions add names.
    base: place of the class that components have: they are subclasses of it, or objects of it if `objects`.
    own: name -> place, of the engine's own components.
    others: further names, which need no component.
    gone: name of an earlier version -> what to do in its place.
    command: command that lists the names.
    names_of: function that returns the names that a component gives itself; a plug-in's name has to be one of them.
    """

    what: str
    group: str
    base: str
    own: dict[str, str] = field(default_factory=dict)
    objects: bool = False
    others: tuple[str, ...] = ()
    gone: dict[str, str] = field(default_factory=dict)
    command: str = ""
    names_of: Callable[[Any], Collection[str]] = lambda _: ()

    def __iter__(self) -> Iterator[str]:
        """Yield the engine's own names."""
        yield from self.own

    def __contains__(self, name: object) -> bool:
        """Return whether the engine, a system or a plug-in has the name."""
        return isinstance(name, str) and (name in self.own or name in self._of_system(name) or name in self.plugged())

    def bundled(self) -> list[str]:
        """Return the engine's own names and those in the code of bundled systems, which is loaded for it."""
        return [*self.own, *(name for system in systems_with_code() for name in self._of_system(f"{system}/"))]

    def plugged(self) -> list[str]:
        """Return the names that plug-ins add."""
        return sorted({point.name for point in _points(self.group, tuple(sys.path))})

    def _of_system(self, name: str) -> dict[str, Any]:
        """Return the components of this kind that the system has whose name stands before a slash."""
        system, slash, _ = name.partition("/")
        return {name: one for name, one in components_of(system).items() if self._is_right(one)} if slash else {}

    def check(self, name: object, where: str = "") -> None:
        """Raise InputError with the nearest name if there is no such component. where: beginning of the message."""
        if name not in self.others and name not in self:
            known = [*self.others, *self.own, *self._of_system(str(name)), *self.plugged()]
            near = did_you_mean(str(name), known, self.command)
            if moved := [one for one in self.bundled() if one.rpartition("/")[2] == name]:
                near = f"it is {moved[0]!r} now, in the code of a system"
            raise InputError(f"{where}unknown {self.what} {name!r}: {self.gone.get(str(name), near)}")

    def get(self, name: object) -> Any:
        """Return the component of a name, imported now. Raise InputError for an unknown name and a wrong plug-in."""
        self.check(name)
        if name not in self.own:
            of_system = self._of_system(str(name))
            return of_system[str(name)] if name in of_system else self._plug_in(str(name))
        module, _, component = self.own[str(name)].partition(":")
        loaded = import_module(module)
        return getattr(loaded, component) if component else loaded

    def called(self, name: str) -> str:
        """Return the name of a plug-in for a message, with its distribution."""
        whose = ", ".join(sorted({_distribution(point) for point in entry_points(group=self.group, name=name)}))
        return f"the plug-in {name!r} of {whose} ({self.group})"

    def _plug_in(self, name: str) -> object:
        """Return what the entry point of a name has. Raise InputError if it fails, is of another kind, or is double."""
        points = {(point.value, _distribution(point)): point for point in entry_points(group=self.group, name=name)}
        if len(points) > 1:
            both = " and ".join(sorted(map(_distribution, points.values())))
            raise InputError(f"{self.group} has the plug-in {name!r} twice, of {both}: uninstall one")
        try:
            component: Any = next(iter(points.values())).load()
        except (Exception, SystemExit) as error:  # foreign code may fail in any way; the user needs its name and reason
            reason = f"{type(error).__name__}: {error}"
            raise InputError(f"{self.called(name)} cannot be loaded: {reason}; mend or uninstall it") from error
        if not self._is_right(component):
            base = resolve_name(self.base).__name__
            raise InputError(f"{self.called(name)} is {component!r}: it has to be of the class {base}")
        names = self.names_of(component)
        if names and name not in names:
            first = next(iter(names))
            raise InputError(f"{self.called(name)} is the {self.what} {first!r}: give the entry point its name")
        return component

    def _is_right(self, component: object) -> bool:
        """Return whether a component is of the registry's class."""
        base = resolve_name(self.base)
        if self.objects:
            return isinstance(component, base)
        return isinstance(component, type) and issubclass(component, base)


@lru_cache(32)
def _points(group: str, _: tuple[str, ...]) -> tuple[EntryPoint, ...]:
    """Return the entry points of a group on a search path: to find them, every distribution's file is read."""
    return tuple(entry_points(group=group))


def _distribution(point: EntryPoint) -> str:
    return f"{point.dist.name} {point.dist.version}" if point.dist else point.module


KINDS = Registry(
    what="kind of objects",
    group="lmkbc.kinds",
    base="lmkbc.kinds.kind:Kind",
    own={
        "entity": "lmkbc.kinds.entity:ENTITY",
        "string": "lmkbc.kinds.string:STRING",
        "url": "lmkbc.kinds.url:URL",
        "identifier": "lmkbc.kinds.identifier:IDENTIFIER",
        "number": "lmkbc.kinds.number:NUMBER",
        "date": "lmkbc.kinds.date:DATE",
        "text": "lmkbc.kinds.text:TEXT",
        "strings": "lmkbc.kinds.strings:STRINGS",
        "coordinates": "lmkbc.kinds.coordinates:COORDINATES",
    },
    objects=True,
    names_of=lambda kind: (kind.name,),
)
"""`kind` of a relation -> what is known of such objects."""

RELATIONS = Registry(
    what="relation",
    group="lmkbc.relations",
    base="lmkbc.relation:Relation",
    objects=True,
    names_of=lambda relation: relation.spellings(),
)
"""Relations of plug-ins; those of a workspace are modules in its folder `relations`."""

GENERATORS = Registry(
    what="generator",
    group="lmkbc.generators",
    base="lmkbc.generate.spec:GeneratorSpec",
    own={
        "causal": "lmkbc.generate.language_model:LanguageModelSpec",
        "chat": "lmkbc.generate.language_model:LanguageModelSpec",
        "embedded": "lmkbc.generate.embedded.embedded:Embedded",
        "entity-masked": "lmkbc.masked.entity_masked:EntityMaskedSpec",
        "masked": "lmkbc.masked.masked:Masked",
        "naive-bayes": "lmkbc.generate.baselines:NaiveBayesSpec",
        "nothing": "lmkbc.generate.baselines:Nothing",
        "prior": "lmkbc.generate.baselines:Prior",
        "recorded": "lmkbc.generate.recorded:RecordedSpec",
    },
)
"""`component` of a table `[[generate]]` -> the dataclass of its settings."""

BACK_ENDS = Registry(
    what="back end",
    group="lmkbc.clients",
    base="lmkbc.models.server.client:CompletionClient",
    own={
        "server": "lmkbc.models.server.openai_client:ChatClient",
        "local": "lmkbc.local.back_end:opened",
    },
    others=("auto",),
    gone={"vllm": "serve the model with 'vllm serve MODEL', and name its server with --base-url"},
)
"""`backend` of a model, and value of --backend -> the class that calls it; "local" has a function that opens one.

"auto" decides by the other settings.
"""

LISTINGS = Registry(
    what="listing",
    group="lmkbc.listings",
    base="lmkbc.answer.formats:AnswerFormat",
    own={
        "json": "lmkbc.answer.formats:JSON",
        "schema": "lmkbc.answer.formats:SCHEMA",
        "python": "lmkbc.answer.formats:PYTHON",
        "comma": "lmkbc.answer.formats:COMMA",
        "semicolon": "lmkbc.answer.formats:SEMICOLON",
        "line": "lmkbc.answer.formats:LINE",
    },
    objects=True,
)
"""`listing` of a prompt -> the form of the objects of an answer."""

RULES = Registry(
    what="selection rule",
    group="lmkbc.rules",
    base="lmkbc.select.rule:Rule",
    own={
        "cutoff": "lmkbc.select.cutoffs:Cutoff",
        "relative": "lmkbc.select.cutoffs:Relative",
        "sticky": "lmkbc.select.cutoffs:Sticky",
        "top-k": "lmkbc.select.cutoffs:TopK",
        "quorum": "lmkbc.select.cutoffs:Quorum",
        "abstention-threshold": "lmkbc.select.composed:AbstentionThreshold",
        "verified": "lmkbc.select.composed:Verified",
        "source-filter": "lmkbc.select.composed:SourceFilter",
        "agreement": "lmkbc.select.composed:Agreement",
        "fallback": "lmkbc.select.composed:Fallback",
        "expected-f1": "lmkbc.select.expected_f1:ExpectedF1",
        "expected-counts": "lmkbc.select.expected_f1:ExpectedCounts",
        "calibrated": "lmkbc.select.expected_f1:Calibrated",
        "stab-mid": "lmkbc.select.numeric:StabMid",
        "expected-score": "lmkbc.select.numeric:ExpectedScore",
        "ball": "lmkbc.select.numeric:Ball",
        "log-cluster": "lmkbc.select.numeric:LogCluster",
        "weighted-median": "lmkbc.select.numeric:WeightedMedian",
    },
    gone=dict.fromkeys(
        ("vote", "votes", "voting", "majority", "majority-vote", "self-consistency"),
        "did you mean 'cutoff'? Its threshold is a share of the samples, so that 0.5 is a majority of them",
    )
    | {"corroborated": "'cs2-26/winners' and 'instax26/rescue', in the code of two systems, do what it did"},
    command="lmkbc rules list",
    names_of=lambda rule: (rule.name,),
)
"""`rule` of a table `[select]` or of a thresholds file -> the dataclass of its parameters."""

EXPORTS = Registry(
    what="format",
    group="lmkbc.exports",
    base="lmkbc.kb.export.exporter:Exporter",
    own={
        "ntriples": "lmkbc.kb.export.ntriples:TRIPLES",
        "statements": "lmkbc.kb.export.ntriples:STATEMENTS",
        "turtle": "lmkbc.kb.export.rdf:TURTLE",
        "jsonld": "lmkbc.kb.export.rdf:JSON_LD",
        "sqlite": "lmkbc.kb.export.sqlite:SQLITE",
        "wikidata-json": "lmkbc.kb.export.wikidata_json:JSON_DUMP",
        "worklist": "lmkbc.kb.export.worklist:WORKLIST",
        "quickstatements": "lmkbc.kb.export.review:COMMANDS",
        "quickstatements-csv": "lmkbc.kb.export.review:TABLE",
        "csv": "lmkbc.kb.export.typed_facts:CSV",
        "parquet": "lmkbc.kb.export.typed_facts:PARQUET",
        "graphml": "lmkbc.kb.export.typed_facts:GRAPHML",
    },
    objects=True,
)
"""`--format` of an exported knowledge base -> how it is written."""

COMMANDS = Registry(
    what="command",
    group="lmkbc.commands",
    base="types:ModuleType",
    own={
        "init": "lmkbc.cli.init",
        "predict": "lmkbc.cli.predict",
        "ask": "lmkbc.cli.ask",
        "build": "lmkbc.kb.cli.build_base",
        "audit": "lmkbc.kb.cli.audit",
        "review": "lmkbc.kb.cli.review_base",
        "export": "lmkbc.kb.cli.export",
        "query": "lmkbc.kb.cli.query",
        "tune": "lmkbc.cli.tune",
        "evaluate": "lmkbc.cli.evaluate",
        "compare": "lmkbc.cli.compare",
        "report": "lmkbc.cli.report",
        "runs": "lmkbc.cli.runs",
        "link": "lmkbc.cli.link",
        "submit": "lmkbc.cli.submit",
        "data": "lmkbc.cli.data",
        "relations": "lmkbc.cli.relations",
        "systems": "lmkbc.cli.systems",
        "trust": "lmkbc.cli.trust",
        "rules": "lmkbc.cli.rules",
        "train": "lmkbc.train.train_command",
        "store": "lmkbc.cli.store",
        "probe": "lmkbc.probe.probe_command",
    },
    objects=True,
    command="lmkbc --help",
)
"""Sub-command of `lmkbc` -> module with its typer group `app`, or with a function of its name and an EXAMPLE."""

BENCHMARKS = Registry(
    what="benchmark",
    group="lmkbc.benchmarks",
    base="lmkbc.probe.benchmark:Benchmark",
    own={
        "kamel": "lmkbc.probe.kamel.kamel:KamelBenchmark",
        "kamel-build": "lmkbc.probe.kamel.kamel:KamelBuild",
        "lama": "lmkbc.probe.lama.lama:LamaBenchmark",
        "bear": "lmkbc.probe.bear:BearBenchmark",
        "optiprompt": "lmkbc.probe.optiprompt.optiprompt:OptiPromptBenchmark",
    },
)
"""Benchmark of `lmkbc probe` -> the dataclass of its options."""

STRATEGIES = Registry(
    what="linking strategy",
    group="lmkbc.linkers",
    base="collections.abc:Callable",
    own={
        "class": "lmkbc.link.disambiguation:by_class",
        "keyword": "lmkbc.link.disambiguation:by_keyword",
        "popularity": "lmkbc.link.disambiguation:by_popularity",
        "first": "lmkbc.link.disambiguation:first",
    },
    objects=True,
    others=("known", "model"),
)
"""Linking strategy -> function of the hits and the wanted type of object, which returns the remaining hits in order."""
