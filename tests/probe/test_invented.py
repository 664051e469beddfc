"""Invented names: what counts as a triple, names that nobody has, and who says nothing about them."""

import json
from collections.abc import Callable
from typing import Any

import pytest
from command import Command
from loopback import Body, Loopback

import lmkbc.probe.invented as probe
from lmkbc.probe.invented import invented_subjects

RIVERS = "Danube Garonne Dordogne Marne Saone Rhone Amazon Orinoco Parana Madeira Volga Vistula Oder Elbe Neva Dvina"
ONE = {"subject": "Gulf of Varennes", "predicate": "instanceOf", "object": "gulf"}


def about_names(command: Command, answer: Callable[[Body], str], count: int) -> tuple[Any, list[Body]]:
    """Return what is found in a server's answers about so many names of each kind, and what it was asked."""
    with Loopback(answer) as server:
        words = ("probe", "invented", "--model", "m", "--base-url", server.url, "--subjects", count, "--json")
        return json.loads(command.done(*words, "--store", "s.sqlite")[0]), server.requests


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
def test_whole_triples_count_once(command: Command, text: str, count: int | None) -> None:
    found = about_names(command, lambda _: text, 1)[0]["real"]
    assert (found["triples"] / found["names"], found["no JSON"] == found["names"]) == (count or 0, count is None)


def test_invented_subjects_are_new_and_of_their_kind() -> None:
    names = [f"River {word}" for word in RIVERS.split()]
    made = invented_subjects(names, 5)
    assert len(set(made)) == 5
    assert made == invented_subjects(names, 5)
    assert {name.split()[0] for name in made} == {"River"}
    assert not {name.split()[1] for name in made} & {word for name in names for word in name.split()}
    assert invented_subjects(["", "x"], 5) == []


def test_triples_about_invented_names_stand_beside_those_about_real_ones(command: Command) -> None:
    made, real = [*probe.NAMES], [*probe.NAMES.values()]
    said = {made[3]: "A phone.", real[0]: json.dumps([ONE]), real[1]: json.dumps([ONE, ONE | {"object": "x"}])}
    found, asked = about_names(command, lambda body: said.get(body["messages"][-1]["content"], '{"triples": []}'), 20)
    assert found == {
        "invented": {"names": 10, "answered": 0, "triples": 0, "no JSON": 1},
        "real": {"names": 10, "answered": 2, "triples": 3, "no JSON": 0},
    }
    assert {body["messages"][-1]["content"] for body in asked} == {*made, *real}
    assert asked[0]["response_format"]["json_schema"]["schema"] == probe.SCHEMA


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
