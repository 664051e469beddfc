"""Invented names: what counts as a triple, names that nobody has, and who says nothing about them."""

import json

import pytest
from command import Command
from writing import Writing

import lmkbc.probe.invented as probe
from lmkbc.probe.benchmark import BenchmarkRun
from lmkbc.probe.invented import invented_subjects

RIVERS = "Danube Garonne Dordogne Marne Saone Rhone Amazon Orinoco Parana Madeira Volga Vistula Oder Elbe Neva Dvina"
ONE = {"subject": "Gulf of Varennes", "predicate": "instanceOf", "object": "gulf"}


@pytest.mark.parametrize(
    ("text", "count"),
    [
        (json.dumps({"triples": [ONE, ONE | {"object": "bay"}, ONE]}), 2),
        (f"Here they are:\n```json\n{json.dumps([ONE])}\n```", 1),
        (json.dumps([ONE])[:-1] + ', {"subject": "Gulf", "predicate": "in", "obj', 1),
        (json.dumps({"triples": [ONE | {"object": ""}, {"subject": "x"}]}), 0),
        ('{"triples": []}', 0),
        ("I know no such gulf.", None),
        ("", None),
    ],
)
def test_whole_triples_count_once(text: str, count: int | None) -> None:
    found = probe.free_triples(Writing(text), 1, BenchmarkRun()).values["real"]  # type: ignore[arg-type]
    assert (found["triples"] / found["names"], found["no JSON"] == found["names"]) == (count or 0, count is None)


def test_invented_subjects_are_new_and_of_their_kind() -> None:
    names = [f"River {word}" for word in RIVERS.split()]
    made = invented_subjects(names, 5)
    assert len(set(made)) == 5
    assert made == invented_subjects(names, 5)
    assert {name.split()[0] for name in made} == {"River"}
    assert not {name.split()[1] for name in made} & {word for name in names for word in name.split()}
    assert invented_subjects(["", "x"], 5) == []


def test_triples_about_invented_names_stand_beside_those_about_real_ones() -> None:
    invented, real = ['{"triples": []}'] * 10, ['{"triples": []}'] * 10
    invented[3], real[0], real[1] = "A phone.", json.dumps([ONE]), json.dumps([ONE, ONE | {"object": "x"}])
    model = Writing(*invented, *real)
    found = probe.free_triples(model, 20, BenchmarkRun())  # type: ignore[arg-type]
    assert found.values == {
        "invented": {"names": 10, "answered": 0, "triples": 0, "no JSON": 1},
        "real": {"names": 10, "answered": 2, "triples": 3, "no JSON": 0},
    }
    assert len({*model.asked}) == 20
    assert model.samplings[0].extra["response_format"]["json_schema"]["schema"] == probe.SCHEMA


PLACE = ("--subjects", "3", "--relation", "PersonHasPlaceOfDeath", "--edition", "mini", "--offline", "--json")


def test_a_system_is_asked_with_and_without_its_rule(command: Command) -> None:
    asked = command.under("probe", "invented")
    found = json.loads(asked.done("--system", "prior", *PLACE)[0])
    assert [list(kinds) for kinds in found.values()] == [["invented", "real"]] * 3
    died = found["PersonHasPlaceOfDeath"]["invented"]
    assert (died["queries"], died["failed"], died["empty in gold"]) == (3, 0, None)
    assert died["best candidate"] == {"empty": 0.0, "triples": 3, "answered": 3}
    assert died["recipe's rule"] == found["PersonHasPlaceOfDeath"]["real"]["recipe's rule"]  # it reads no subject
    nothing = json.loads(asked.done("--system", "bl22-empty", *PLACE)[0])
    ways = [way["empty"] for way in nothing["*** All ***"]["invented"].values() if isinstance(way, dict)]
    assert ways == [1.0] * len(ways) != []


@pytest.mark.parametrize("asked", ["--system prior --edition mini", "--model m --base-url http://h/v1"])
def test_weights_are_those_of_a_bare_model_here(command: Command, asked: str) -> None:
    told = command.fails("probe", "invented", "--quantise", "8bit", *asked.split())
    assert "--quantise is for a model of this machine" in told


@pytest.mark.parametrize("option", ["--relation x", "--untuned", "--data x", "--split val"])
def test_options_of_a_system_are_refused_without_one(command: Command, option: str) -> None:
    assert f"{option.split(maxsplit=1)[0]} " in command.fails("probe", "invented", "--model", "m", *option.split())
