"""One generator's table for many sources; generators for some relations only; slots, and second turns."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from loopback import Loopback, prompt_of
from opened import generators, recipe_of
from space import MINI, SPACE

from lmkbc.generate.reply import united
from lmkbc.plan import Plan
from lmkbc.run.pipeline import propose
from lmkbc.select.pool import Pool
from lmkbc.testing import Candidate, Nil, Query, Run, State
from tests.candidates import candidate_set, sources

BORDERS, DEATH = Query("Utopia", "CountryBordersCountry"), Query("Ada", "PersonHasPlaceOfDeath")
SELECT = {"rule": "cutoff", "threshold": 0.5}
A, N, M, U, T = State.ANSWERED, State.ABSTAINED, State.MISSING, State.UNPARSED, State.TRUNCATED


def system(**table: Any) -> Any:
    chat = {"component": "chat", "model": "m", "shots": {"k": 0}} | table
    return recipe_of(chat, select=SELECT)


@pytest.fixture
def run(tmp_path: Path) -> Callable[..., Run]:
    def make(url: str = "http://127.0.0.1:9/v1", **given: Any) -> Run:
        options = {"base_url": url, "store": tmp_path / "store.sqlite"}
        return Run(workspace=SPACE, edition=MINI, servers=options, **given)

    return make


Opens = Callable[..., Run]


def test_one_table_makes_a_source_per_entry(run: Opens) -> None:
    wordings = [{}, {"prompt": {"ask": "Name them: {{ question }}"}}, {"name": "short", "sampling": {"max_tokens": 3}}]
    recipe = system(name="w", each=wordings, prompt={"null": "none"}, sampling={"max_tokens": 9, "temperature": 0.0})
    with Loopback(lambda _: '["Spain"]') as server:
        built = dict(generators(run(server.url), recipe))
        sets = [list(one.generate([BORDERS])) for one in built.values()]
    assert [*built] == ["w 1", "w 2", "short"]
    assert [body["max_tokens"] for body in server.requests] == [9, 9, 3]
    assert [prompt_of(body).startswith("Name them") for body in server.requests] == [False, True, False]
    (pooled,) = Pool(edition=MINI).merge(sets)
    assert {source.model for source in pooled.candidates[0].sources} == set(built)


def test_what_each_source_costs_is_told_apart(run: Opens, tmp_path: Path) -> None:
    (tmp_path / "t.json").write_text("{}")
    with Loopback(lambda _: '["Spain"]') as server:
        made = propose(
            Plan.of(run(server.url, search_table=tmp_path / "t.json"), system(each=[{}, {"name": "b"}])), [BORDERS]
        )
    assert {name: spent["prompt_tokens"] for name, spent in made.usage.items()} == {"source 1": 100, "b": 100}


def test_a_query_is_asked_for_each_slot_and_answered_once(run: Opens) -> None:
    def answer(body: dict[str, Any]) -> str:
        last = prompt_of(body)
        return '["Spain", "Peru"]' if "north" in last else '["peru", "Chad"]' if "south" in last else "[]"

    prompt = {
        "ask": "{{ question }} Only in the {{ slot }}.",
        "steps": [{"name": "slot", "items": ["north", "south", "sea"]}],
    }
    with Loopback(answer) as server:
        recipe = system(prompt=prompt, sampling={"samples": 2, "temperature": 1.0})
        ((_, asked),) = generators(run(server.url), recipe)
        (found,) = asked.generate([BORDERS])
    assert len(server.requests) == 3
    assert found.draws == (A, A)
    assert [(c.text, c.sources) for c in found.candidates] == [
        (name, sources(f"m#{draw}")) for names in (("Spain", "Peru"), ("Chad",)) for draw in (0, 1) for name in names
    ]


@pytest.mark.parametrize(
    ("parts", "state"),
    [((A, N), A), ((A, M), M), ((N, M), M), ((N, N), N), ((N, U), N), ((U, T), T), ((U, U), U), ((A, T), A)],
)
def test_what_becomes_of_a_draw_in_parts(parts: tuple[State, ...], state: State) -> None:
    said = {A: (Candidate("a", 0.5, sources("m#0")),), N: (Nil(1.0, sources("m#0")),)}
    whole = united([candidate_set(BORDERS, said.get(part, ()), (part,)) for part in parts])
    assert whole == candidate_set(BORDERS, said.get(state, ()), (state,))


AGAIN = "An encyclopedia says:\n{{ context }}\nCompare, and answer again: {{ question }}"


@pytest.mark.parametrize("form", ["chat", "single"])
def test_a_second_turn_tells_what_was_found_and_its_answer_counts(run: Opens, tmp_path: Path, form: str) -> None:
    def answer(body: dict[str, Any]) -> str:
        turns = body["messages"]
        if "Nowhere" in prompt_of(body):
            return '["Chad"]'
        return f'["Peru", "{turns[-3]["content"][-9:-2]}"]' if len(turns) > 2 else '["Bolivia"]'

    (tmp_path / "texts.jsonl").write_text(json.dumps({"title": "Utopia", "text": "It borders {question} Peru."}))
    recipe = system(
        prompt={"component": "llmke23/prompt", "form": form, "follow_up": AGAIN, "task": ""},
        sampling={"samples": 2},
        context={"provider": "titles", "path": "from", "words": 0, "overlap": 0},
    )
    nowhere = Query("Nowhere", BORDERS.relation)
    with Loopback(answer) as server:
        ((_, asked),) = generators(run(server.url, files=(tmp_path / "texts.jsonl",)), recipe)
        found = {one.query: one for one in asked.generate([BORDERS, nowhere])}
        served = server.served
        ((_, again),) = generators(run(server.url, files=(tmp_path / "texts.jsonl",)), recipe)
        assert {one.query: one for one in again.generate([BORDERS, nowhere])} == found
        assert server.served == served == 4
    second = [body["messages"] for body in server.requests if len(body["messages"]) > 2]
    assert [[turn["role"] for turn in turns] for turns in second] == [["user", "assistant", "user"]] * 2
    assert second[0][1]["content"] == '["Bolivia"]'
    assert second[0][2]["content"].startswith("An encyclopedia says:\nUtopia: It borders {question} Peru.\nCompare")
    assert "encyclopedia" not in second[0][0]["content"]
    assert {c.text for c in found[BORDERS].candidates} >= {"Peru"}
    assert {c.text for c in found[nowhere].candidates} == {"Chad"}  # nothing was found, so the first answer stands
