"""Plug-ins of other distributions: found by their entry points; broken ones stop nobody who does not ask for them."""

import json
import logging
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from bases import fact, written
from opened import generators, part, recipe_of

import lmkbc
from lmkbc import InputError, Workspace, registry
from lmkbc.generate.access import step_model
from lmkbc.link.disambiguation import choose
from lmkbc.models.plain_questions import paragraphs
from lmkbc.recipe import read_recipe
from lmkbc.testing import Candidate, CandidateSet, Hit, Notes, ObjectType, Query, Run, build, exports
from lmkbc.tune.families import grid
from tests.command import Command
from tests.small import small_relation

MODULE = """
from dataclasses import dataclass
from typing import Annotated, ClassVar

import numpy as np
from msgspec import Meta

from lmkbc import EntityType, GeneratorSpec, Relation
from lmkbc.answer.formats import AnswerFormat
from lmkbc.kb.export.exporter import Exporter
from lmkbc.kinds.kind import Kind
from lmkbc.testing import Reply
from lmkbc.models.server.client import LibraryClient, ModelClient
from lmkbc.probe.benchmark import Findings
from lmkbc.select.rule import Choice, PrefixRule, Real, Whole
from lmkbc.types import Candidate, CandidateSet

@dataclass(frozen=True, kw_only=True)
class Echo(GeneratorSpec):
    score: float = 1.0

    def open(self, run, notes):
        return self

    def generate(self, queries):
        for query in dict.fromkeys(queries):
            yield CandidateSet(query, (Candidate(query.subject, self.score),))

@dataclass(frozen=True, kw_only=True)
class Share(PrefixRule):
    name: ClassVar = "share"
    search: ClassVar = {"share": Real(0.1, 0.9), "min": Whole(0, 1)}
    share: float = 0.5

    def wanted(self, ranking):
        return np.ceil(ranking.sizes * self.share).astype(np.int64)

class Silent(ModelClient):
    async def answer(self, body):
        return [Reply("[]")]

class Loud(LibraryClient):
    def complete(self, prompt, sampling, draws):
        text = prompt if isinstance(prompt, str) else prompt[-1]["content"]
        return [f"{text.upper()} {sampling['max_tokens']}"] * draws

BAR = AnswerFormat(joint=" | ")

def last(hits, kind):
    return hits[-1:]

class Colour(Kind):
    name = "colour"

COLOUR = Colour()

def names(base, tally, settings):
    for fact in base.facts():
        tally.facts += 1
        yield f"{fact.object}\\n"

NAMES = Exporter(pieces=names, counted="name")

@dataclass(frozen=True, kw_only=True)
class Counting:
    "Count to a number."

    most: Annotated[int, Meta(description="The number.")] = 3

    def run(self, run):
        return Findings({"most": self.most})

OPERA = Relation(
    name="composer-operas", names=("composerHasOpera",), property="P800", subject_type=EntityType("composer", "Q1"),
    object_type=EntityType("opera", "Q2"), kind="entity", may_be_empty=True, definition="d",
    clozes=("{subject} wrote {mask}.",), question="Which operas of {subject}?", triple="wrote",
    statement="{subject} wrote {object}.",
)
"""
ENTRIES = """
[lmkbc.generators]
echo = plugged_in:Echo
lost = plugged_in:Nowhere
odd = plugged_in:OPERA

[lmkbc.clients]
silent = plugged_in:Silent
loud = plugged_in:Loud
odd = plugged_in:OPERA

[lmkbc.rules]
share = plugged_in:Share
otherwise-named = plugged_in:Share
odd = plugged_in:OPERA

[lmkbc.listings]
bar = plugged_in:BAR
odd = plugged_in:OPERA

[lmkbc.linkers]
last = plugged_in:last

[lmkbc.kinds]
colour = plugged_in:COLOUR
odd = plugged_in:OPERA

[lmkbc.exports]
names = plugged_in:NAMES

[lmkbc.commands]
greet = plugged_command

[lmkbc.benchmarks]
counting = plugged_in:Counting
odd = plugged_in:OPERA

[lmkbc.relations]
composerHasOpera = plugged_in:OPERA
broken = nowhere_to_be_found:X
odd = plugged_in:Share
"""
COMMAND = """
EXAMPLE = "Example: lmkbc greet"

def greet(*, name: str = "you"):
    "Greet somebody."
    print(f"hello {name}")
"""
OPERA = "composerHasOpera"


def installed(folder: Path, name: str, entries: str, module: str = "") -> None:
    """A distribution, as an installer leaves it."""
    info = folder / f"{name}-1.0.dist-info"
    info.mkdir(parents=True)
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text(entries)
    if module:
        (folder / "plugged_in.py").write_text(module)
        (folder / "plugged_command.py").write_text(COMMAND)


@pytest.fixture(autouse=True)
def _distribution(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    installed(tmp_path / "site", "operas", ENTRIES, MODULE)
    monkeypatch.syspath_prepend(tmp_path / "site")
    grid.cache_clear()
    yield
    for name in ("plugged_in", "plugged_command", "lmkbc.probe.probe_command"):
        sys.modules.pop(name, None)
    grid.cache_clear()


def test_a_generator_and_a_rule_of_a_plugin_work_in_a_recipe() -> None:
    space = Workspace()
    run = Run(workspace=space, edition=space.edition("mini"), offline=True)
    query = Query("Ada", "CountryBordersCountry")
    [(_, echo)] = generators(run, recipe_of({"component": "echo", "score": 0.5, "name": "loud"}))
    assert [one.candidates[0].score for one in echo.generate([query])] == [0.5]
    rule = build({"rule": "share", "share": 0.4})
    found = CandidateSet(query, tuple(Candidate(name, 1 / (ord(name) - 90)) for name in "abcde"))
    assert [one.text for one in rule.select(found).objects] == ["a", "b"]
    assert build(rule.to_table()) == rule


def test_a_client_of_a_plugin_is_a_back_end(tmp_path: Path) -> None:
    table = {"backend": "silent", "model": "m", "base_url": "http://localhost:9"}
    run = Run(workspace=Workspace(), edition=Workspace().edition("mini"), servers={"store": tmp_path / "s.sqlite"})
    assert paragraphs(step_model(table, "ask").open(run, Notes()), ["Is it?"]) == ["[]"]
    with pytest.raises(InputError, match="it has to be of the class CompletionClient"):
        step_model(table | {"backend": "odd"}, "ask").open(run, Notes())
    with pytest.raises(InputError, match="did you mean 'silent'"):
        step_model(table | {"backend": "silence"}, "ask")


def test_a_library_in_this_process_is_a_back_end_without_an_address(tmp_path: Path) -> None:
    run = Run(workspace=Workspace(), edition=Workspace().edition("mini"), servers={"store": tmp_path / "s.sqlite"})
    for _ in range(2):
        model = step_model({"backend": "loud", "model": "m"}, "ask").open(run, Notes(), replayed=False, lacking="")
        assert model is not None
        assert paragraphs(model, ["Is it?"], 7) == ["IS IT? 7"]
        assert model.name == "m"
    assert sum(budget.requests for budget in run.budgets) == 1  # the second answer is from the store


def test_a_listing_and_a_linking_strategy_of_a_plugin_are_used() -> None:
    style = part("prompt", listing="bar")
    assert style.format.write(["Chad", "Mali"]) == "Chad | Mali"
    with pytest.raises(InputError, match="unknown listing 'bat': did you mean 'bar'"):
        part("prompt", listing="bat")
    with pytest.raises(InputError, match="it has to be of the class AnswerFormat"):
        registry.LISTINGS.get("odd")
    hits = [Hit("Q2"), Hit("Q3")]
    assert choose(hits, ObjectType(qid="Q1", strategies=("last",))) == ([Hit("Q3")], "last")
    assert "last" in registry.STRATEGIES


def test_a_kind_of_a_plugin_is_the_kind_of_a_relation() -> None:
    assert registry.KINDS.get(small_relation(kind="colour").kind).name == "colour"
    with pytest.raises(ValueError, match=r"kind is 'color': use .*'colour'"):
        small_relation(kind="color")
    with pytest.raises(InputError, match="it has to be of the class Kind"):
        registry.KINDS.get("odd")


def test_an_export_of_a_plugin_is_written(command: Command) -> None:
    written(Path("kb"), [fact(at, "children", number, 0.9, literal=number) for at, number in enumerate("45")])
    _, told = command.done("export", "kb", "--format", "names", "--out", "names.txt")
    assert told.startswith("names.txt: 2 facts in 2 names")
    assert Path("names.txt").read_text() == "4\n5\n"
    exports.check_exporter("names")
    assert exports.exported("names", [exports.fact("Libya")]).text == "Libya\n"
    assert "did you mean 'names'" in command.fails("export", "kb", "--format", "name", "--out", "x")


def test_a_command_and_a_benchmark_of_a_plugin_run(command: Command) -> None:
    assert command.done("greet", "--name", "Ada")[0] == "hello Ada\n"
    assert "greet" in command.done("--help")[0]
    shown, told = command.done("probe", "counting", "--most", "2", "--json")
    assert json.loads(shown) == {"most": 2}
    assert "it has to be of the class Benchmark" in told


def test_a_rule_of_a_plugin_can_be_tuned_over_its_search_ranges() -> None:
    how: Any = {"edition": "mini", "system": "prior", "relation": "children", "trials": 0, "write": False}
    tuned = lmkbc.tune("val", rules=["share", "cutoff"], **how)
    assert len(tuned.relations) == 1
    shares = {(rule.share, rule.min) for rule in grid("share")}  # type: ignore[attr-defined]
    assert {least for _, least in shares} == {0, 1}
    assert {share for share, _ in shares} > {0.1, 0.9}


def test_a_relation_of_a_plugin_stands_behind_those_of_the_workspace(caplog: pytest.LogCaptureFixture) -> None:
    space = Workspace()
    assert space.relation(OPERA).name == "composer-operas"
    assert OPERA in space.relations
    assert caplog.records == []  # nobody asked for the broken one
    assert space.relation("composer-operas") is space.relations[OPERA]
    with caplog.at_level(logging.WARNING):
        assert {"composer-operas", OPERA, "CountryBordersCountry"} <= set(space.relations)
    assert any("the plug-in 'broken' of operas 1.0 (lmkbc.relations) cannot be loaded" in it for it in caplog.messages)
    assert len(space.relations) == len(list(space.relations))


@pytest.mark.parametrize(
    ("ask", "told"),
    [
        (lambda: recipe_of({"component": "lost"}), "the plug-in 'lost' of operas 1.0 (lmkbc.generators) cannot be lo"),
        (lambda: recipe_of({"component": "odd"}), "it has to be of the class GeneratorSpec"),
        (lambda: recipe_of({"component": "eco"}), "unknown generator 'eco'"),
        (lambda: recipe_of({"component": "echo", "scor": 1}), "generator 'echo' has no setting 'scor'"),
        (lambda: build({"rule": "odd"}), "it has to be of the class Rule"),
        (lambda: build({"rule": "shar"}), "did you mean 'share'?"),
        (lambda: build({"rule": "otherwise-named"}), "is the selection rule 'share': give the entry point its name"),
        (lambda: lmkbc.tune("val", edition="mini", system="prior", rules=["foo"]), "rule 'foo' cannot be tuned"),
        (lambda: Workspace().relation("broken"), "No module named 'nowhere_to_be_found'"),
        (lambda: Workspace().relation("odd"), "it has to be of the class Relation"),
        (lambda: Workspace().relation("nothing"), "unknown relation 'nothing'"),
    ],
)
def test_a_broken_plugin_is_one_sentence_that_names_it(ask: object, told: str) -> None:
    with pytest.raises(InputError) as error:
        ask()  # type: ignore[operator]
    assert told in str(error.value)
    assert "\n" not in str(error.value)


def test_broken_plugins_stop_no_other_recipe() -> None:
    space = Workspace()
    assert read_recipe(space, "embedded").generate
    assert space.edition("mini").relations


def test_one_name_of_two_distributions_is_refused(tmp_path: Path) -> None:
    installed(tmp_path / "site", "again", "[lmkbc.rules]\nshare = plugged_in:Echo\n")
    with pytest.raises(InputError, match=r"'share' twice, of again 1.0 and operas 1.0: uninstall one"):
        registry.RULES.get("share")
