"""Frames: one template for examples and query, read back by the same words; what is wrong in one is a sentence."""

import json
import logging
from pathlib import Path
from typing import Any

import pytest
from command import Command
from hypothesis import given
from hypothesis import strategies as st
from loopback import Loopback
from opened import asks, part, recipe_file, recipe_of
from prompt_parts import suffix
from space import SPACE

from lmkbc import InputError
from lmkbc.ask.builder import PromptBuilder
from lmkbc.ask.prompts import Composer, target
from lmkbc.generate.reply import candidates, captured
from lmkbc.recipe import read_recipe
from lmkbc.testing import Example, GoldObject, Query, Reply, Run, State

EDITION = SPACE.edition("2026")
RELATIONS = {name: SPACE.relation(name) for name in EDITION.relations}
AREA, DEATH = "hasArea", "personHasCityOfDeath"
RECALL = {
    "form": "completion",
    "block": "### {{ subject }}",
    "answer": "\n{{ subject }} is a geographic feature. Its area is {{ answer }} square kilometres",
    "listing": "comma",
    "separator": "\n\n",
    "stop": ["\n\n"],
}
SENTINEL = {
    "form": "completion",
    "block": "{{ subject }} died in",
    "null": "the future, since alive",
    "listing": "comma",
}
SHOT = Example(Query("Crete", AREA), (GoldObject(("8336",)),))
ALIVE = Example(Query("Ada", DEATH), ())


def style(**settings: Any) -> Any:
    return part("prompt", **settings)


def test_one_template_words_examples_and_query() -> None:
    found = Composer(style(**RECALL), RELATIONS, AREA).prompt(Query("Utopia", AREA), [SHOT])
    answer = "\nCrete is a geographic feature. Its area is 8336 square kilometres"
    assert found.text == f"### Crete{answer}\n\n### Utopia"
    assert style(**RECALL).stops == ("\n\n",)
    none = Composer(style(**SENTINEL), RELATIONS, DEATH).prompt(Query("Bob", DEATH), [ALIVE])
    assert none.text == "Ada died in the future, since alive\nBob died in"


def test_turns_of_a_chat_are_frames_too() -> None:
    table = {"block": "Area of {{ subject }}, in {{ unit }}?", "answer": "It is {{ answer }} {{ unit }}."}
    turns = Composer(style(**table), RELATIONS, AREA).prompt(Query("Utopia", AREA), [SHOT]).messages()
    assert [turn["content"] for turn in turns] == [
        "Area of Crete, in km2?",
        'It is ["8336"] km2.',
        ("Area of Utopia, in km2?"),
    ]


@pytest.mark.parametrize(
    ("table", "said", "names"),
    [
        (RECALL, "\nUtopia is a geographic feature. Its area is 12,5 square kilometres\n\n### Next", {"12.5"}),
        (RECALL, "\nUtopia is an island of 99 people. Its area is 40 km2", {"40"}),
        (RECALL, "roughly 7 square kilometres", {"7"}),
        (RECALL, "<think>Its area is 3?</think>Its area is 12 hectares.", {"0.12"}),
    ],
)
def test_a_reply_is_read_by_the_words_of_its_frame(table: dict[str, Any], said: str, names: set[str]) -> None:
    query = Query("Utopia", AREA)
    found = candidates(query, RELATIONS[AREA], style(**table), [Reply(said)], "m")
    assert {one.text for one in found.candidates} == names


def test_a_sentinel_is_no_object() -> None:
    query = Query("Bob", DEATH)
    for said, state in ((" the future, since alive", State.ABSTAINED), (" Future City", State.ANSWERED)):
        found = candidates(query, RELATIONS[DEATH], style(**SENTINEL), [Reply(said)], "m")
        assert found.draws == (state,)


@given(st.text(st.characters(exclude_categories=["Cs"]), min_size=1).filter(lambda text: "." not in text))
def test_what_a_template_holds_is_captured(name: str) -> None:
    assert captured(f"So. The city is: {name}. ", "The city is: {{ answer }}.").strip() == name.strip()
    assert captured(name, "{{ answer }}").strip() == name.strip()
    cut = captured(f"It is {name} km2, in", "It is {{ answer }} km2, in {{ subject }}.")  # by a stop before the subject
    assert cut.strip() == name.strip()


def test_capturing_is_linear() -> None:
    """A template that backtracks over eleven million characters does not end within the suite's own limit."""
    said = "Its area is" * 1_000_000
    assert captured(said, "{{ subject }}: Its area is {{ answer }} km2. Its area is") == said
    assert captured(f": {said}", "{{ subject }}: Its area is {{ answer }} km2. Its area is") == said.removeprefix(
        "Its area is"
    )


def recipe(folder: Path, frames: str, **table: Any) -> Path:
    (folder / "frames.toml").write_text(frames)
    frames_of = {"frames": f"{folder}/frames.toml{table.pop('part', '')}"}
    return recipe_file(
        folder / "mine.toml", {"component": "chat", "model": "m", "shots": {"k": 0}, **frames_of, **table}
    )


def asking(path: Path) -> PromptBuilder:
    (spec,) = read_recipe(SPACE, str(path)).generate
    return spec.asking(Run(workspace=SPACE, edition=EDITION), [])  # type: ignore[attr-defined,no-any-return]


def test_a_file_words_each_relation(tmp_path: Path) -> None:
    path = recipe(tmp_path, '[area]\nblock = "How large is {{ subject }}?"\n["*"]\ntask = "Answer."\n')
    found = asking(path)
    assert found.prompt(Query("Crete", AREA)).messages() == [{"role": "user", "content": "How large is Crete?"}]
    assert found.prompt(Query("Ada", DEATH)).messages()[0] == {"role": "system", "content": "Answer."}
    parts = recipe(tmp_path, '[parts.b.area]\nblock = "And {{ subject }}?"\n[parts.b."*"]\n', part="#b")
    assert suffix(asking(parts).prompt(Query("Crete", AREA))) == "And Crete?"


@pytest.mark.parametrize(
    ("text", "part", "said"),
    [
        ('[area]\nblock = "{{ subject }}"\n', "", "no frame for relation "),
        ('[aera]\nblock = "{{ subject }}"\n', "", "names 'aera', which is no relation: did you mean 'area'"),
        ('[area]\nblok = "{{ subject }}"\n', "", ", area has no setting 'blok': did you mean 'block'"),
        ('[area]\nblock = "{{ subjct }}"\n', "", ", area: block reads {{ subjct }}: did you mean 'subject'"),
        ('area = "{{ subject }}"\n', "", "'area' is no table: give one per relation"),
        ('[parts.a.area]\nblock = "{{ subject }}"\n', "#b", "has no part 'b': known are: a"),
        ("parts = 5\n", "", "'parts' is no table"),
        ("parts = { a = 5 }\n", "#a", "'a' is no table"),
        ('[area]\nblock = "{subject}"\n', "", "block has '{subject}': it is a Jinja2 template, so write {{ subject }}"),
        ('[area]\nstyle = "triple"\n', "", "has no setting 'style' any more: word the question in block"),
        ("[area\n", "", "not valid TOML"),
    ],
)
def test_a_wrong_file_is_told_by_its_place(tmp_path: Path, text: str, part: str, said: str) -> None:
    path = recipe(tmp_path, text, part=part)
    with pytest.raises(InputError) as error:
        asking(path)
    assert said in str(error.value)
    assert "frames.toml" in str(error.value)


def test_only_relations_that_are_asked_need_a_frame(tmp_path: Path) -> None:
    path = recipe(tmp_path, '[area]\nblock = "How large is {{ subject }}?"\n', only=["area"])
    assert suffix(asking(path).prompt(Query("Crete", AREA))) == "How large is Crete?"


def test_an_unknown_file_is_told() -> None:
    with pytest.raises(InputError, match=r"frames 'nowhere\.toml' is no file: give the path of one"):
        recipe_of({"component": "chat", "frames": "nowhere.toml"})


def test_a_subject_that_holds_the_stop_is_told() -> None:
    table = {
        "form": "completion",
        "block": "Q: {{ subject }}",
        "answer": "{{ answer }} %",
        "listing": "comma",
        "stop": ["%"],
    }
    asked = PromptBuilder(EDITION, RELATIONS, [], asks({"prompt": table}))
    with pytest.raises(InputError, match="subject '100% Island' of hasArea holds '%', at which"):
        asked.prompt(Query("100% Island", AREA))
    assert asked.prompt(Query("Island", AREA)).text == "Q: Island"


def test_what_is_learned_ends_where_the_answer_does() -> None:
    assert target(style(**RECALL), RELATIONS, SHOT).endswith(" 8336 square kilometres\n\n")
    closed = style(form="completion", answer="{{ answer }}%", listing="comma", stop=["%"])
    assert target(closed, RELATIONS, SHOT) == " 8336%"


def test_a_run_s_records_name_files_without_the_way_to_them(command: Command, tmp_path: Path) -> None:
    (tmp_path / "far").mkdir()
    (tmp_path / "far" / "bank.jsonl").write_text(BANK)
    (tmp_path / "my.toml").write_text('["*"]\nblock = "{{ subject }}, {{ phrase }}:"\n[parts.a."*"]\ntask = "Say."\n')
    each = [{"name": "a", "shots": {"path": "far/bank.jsonl"}}]
    with Loopback() as server:
        table = {"component": "chat", "model": "m", "base_url": server.url, "frames": f"{tmp_path}/my.toml"}
        recipe_file(tmp_path / "own.toml", {**table, "each": each})
        asked = ("--edition", "mini", "--split", "val", "--limit", "1", "--failed-as-empty")
        command.done("predict", "--system", "own.toml", *asked, "--out", "run")
    manifest = (tmp_path / "run" / "manifest.json").read_text()
    assert str(tmp_path) not in manifest
    known = json.loads(manifest)
    (told,) = known["recipe"]["generate"]
    assert (told["frames"], told["each"][0]["shots"]["path"]) == ("my.toml", "bank.jsonl")
    assert {"my.toml", "bank.jsonl"} <= known["inputs"].keys()


BANK = '{"subject": "Crete", "relation": "area", "objects": ["8336"]}\n'


def bank(folder: Path, text: str) -> dict[str, Any]:
    path = folder / "bank.jsonl"
    path.write_text(text)
    return {"path": str(path), "k": 3}


def shown(table: dict[str, Any], subject: str, relation: str = AREA) -> list[str]:
    given = asks({"prompt": {"form": "completion"}, "shots": table})
    found = PromptBuilder(EDITION, RELATIONS, [], given, SPACE.relations)
    return [shot.query.subject for shot in found.plan(Query("", relation)).selector.select(Query(subject, relation))]


def test_examples_come_from_a_file(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    official = '{"SubjectEntity": "Rhodes", "Relation": "hasArea", "ObjectEntities": ["1401"]}\n'
    assert shown(bank(tmp_path, BANK), "Utopia") == ["Crete"]
    assert shown(bank(tmp_path, official * 2), "Utopia") == ["Rhodes", "Rhodes"]
    assert not caplog.messages
    with caplog.at_level(logging.WARNING):
        assert shown(bank(tmp_path, BANK), "Crete") == []
    assert "has no example for 'Crete' (hasArea): none is shown" in caplog.messages[0]
    assert shown(bank(tmp_path, BANK) | {"relations": "all"}, "Ada", DEATH) == ["Crete"]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (BANK + "\n" + BANK.replace("area", "aera"), "line 3: 'aera' is no relation: did you mean 'area'"),
        (BANK.replace("Crete", " "), "line 1: the subject is empty"),
        (BANK.replace('"objects"', '"object"'), "line 1"),
        ("", "is empty"),
    ],
)
def test_a_wrong_file_of_examples_is_told_by_its_line(tmp_path: Path, text: str, said: str) -> None:
    with pytest.raises(InputError) as error:
        shown(bank(tmp_path, text), "Utopia")
    assert said in str(error.value)
    assert "bank.jsonl" in str(error.value)
