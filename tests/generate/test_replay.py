"""Recorded answers in a model's place: what is recorded is read by the recipe, what is lacking asked or failed."""

import json
import re
import zlib
from collections.abc import Iterable, Sequence
from dataclasses import fields, replace
from pathlib import Path
from typing import Any

import pytest
from loopback import Body, Loopback, prompt_of
from opened import begins_here, part, recipe_of
from space import MINI, SPACE, bundled

from lmkbc import Edition, GeneratorSpec, InputError, Workspace
from lmkbc.plan import Plan
from lmkbc.run.pipeline import Block, Steps, propose
from lmkbc.run.submission import reply_rows
from lmkbc.testing import CandidateSet, Query, Run, State
from tests.candidates import sources

BORDERS = "CountryBordersCountry"
QUERIES = [Query(f"land {place}", BORDERS, f"Q{place + 1}") for place in range(3)]
CHAT = {"component": "chat", "model": "gpt-4"}
CAUSAL = {"component": "causal", "model": "nobody/no-such-model"}


def answers(path: Path, *rows: dict[str, Any], **shared: Any) -> Path:
    path.write_text("".join(json.dumps({"Relation": BORDERS} | shared | row) + "\n" for row in rows))
    return path


def said(place: int, *texts: str | None, **fields: Any) -> dict[str, Any]:
    return {"SubjectEntity": QUERIES[place].subject, "completions": texts, **fields}


def run_of(*files: Path, tmp_path: Path, **given: Any) -> Run:
    servers = dict(store=tmp_path / "store.sqlite", **given.pop("servers", {}))
    table = tmp_path / "search.json"
    table.write_text('{"Peru": "Q419", "Mali": "Q912", "Chad": "Q657"}')
    return Run(files=files, servers=servers, search_table=table, **{"edition": MINI, "workspace": SPACE} | given)


def proposed(recipe: Any, *files: Path, tmp_path: Path, queries: Sequence[Query] = QUERIES, **given: Any) -> Block:
    return propose(Plan.of(run_of(*files, tmp_path=tmp_path, **given), recipe), queries)


def texts(found: CandidateSet) -> list[str]:
    return sorted(candidate.text for candidate in found.candidates)


@pytest.mark.parametrize("table", [CHAT, CAUSAL])
def test_recorded_answers_are_read_as_the_model_s_and_nobody_is_asked(table: dict[str, Any], tmp_path: Path) -> None:
    style = {"prompt": {"null": "['nobody']"}, "sampling": {"samples": 9}}
    path = answers(tmp_path / "a.jsonl", said(0, '["Peru", "land 0"]', "[]"), said(1, "['nobody']", None), model="x")
    one, two, three = proposed(recipe_of(table | style), path, tmp_path=tmp_path).sets
    assert (texts(one), one.draws) == (["Peru"], (State.ANSWERED, State.ABSTAINED))
    name = table["model"].rpartition("/")[2] if table is CAUSAL else "gpt-4"
    assert {str(source) for source in one.candidates[0].sources} <= {f"{name}#0", f"{table['model']}#0"}
    assert two.draws[1] is State.MISSING
    assert (three.draws, three.failed) == ((State.MISSING,), True)


@pytest.mark.parametrize(("clean", "subject"), [(True, True), (False, True), (False, False)])
@pytest.mark.parametrize("component", ["chat", "causal", "recorded"])
def test_names_may_stay_as_they_were_written(component: str, clean: bool, subject: bool, tmp_path: Path) -> None:
    recipe = recipe_of({"component": component, "clean": clean} | ({} if component == "recorded" else {"model": "m"}))
    recipe = replace(recipe, clean=replace(recipe.clean, subject=subject))
    wild = ["land 0", "the Peru (south)"]
    scored = [*({"object": name, "score": 1.0} for name in wild), {"object": "me", "id": "Q1", "score": 1.0}]
    raw = answers(tmp_path / "raw.jsonl", said(0, json.dumps([*wild, "None"])))
    read = answers(tmp_path / "read.jsonl", {"SubjectEntity": "land 0", "candidates": scored})
    kept = ["Peru"] if clean else wild[subject:]
    assert texts(proposed(recipe, raw, tmp_path=tmp_path).sets[0]) == sorted(kept + ([] if clean else ["None"]))
    assert texts(proposed(recipe, read, tmp_path=tmp_path).sets[0]) == sorted(kept + ([] if subject else ["me"]))


def test_what_is_lacking_is_asked_of_a_server_that_is_named(tmp_path: Path) -> None:
    path = answers(tmp_path / "a.jsonl", said(0, '["Peru"]'), said(1, None))
    asked: list[str] = []

    def answer(body: Body) -> str:
        asked.append(prompt_of(body))
        return '["Chad"]'

    recipe = recipe_of(CHAT | {"sampling": {"temperature": 0.0}})
    with Loopback(answer) as server:
        server.tells["models"] = {"data": [{"id": "llama"}]}
        given = {"base_url": server.url, "any_model": True}
        found = proposed(recipe, path, tmp_path=tmp_path, servers=given).sets
    assert [texts(one) for one in found] == [["Peru"], ["Chad"], ["Chad"]]
    assert {source for one in found for candidate in one.candidates for source in candidate.sources} == {
        *sources("gpt-4#0", "llama#0")
    }
    assert sorted(prompt.rpartition("land ")[2][:1] for prompt in asked) == ["1", "2"]


def test_recorded_facts_are_verified_by_a_server_and_else_stay_unverified(tmp_path: Path) -> None:
    path = answers(tmp_path / "a.jsonl", *(said(place, '["Peru"]') for place in range(3)))
    recipe = recipe_of(CHAT | {"verify": {"by": "text", "shots": 0}})
    with Loopback(lambda body: "False" if "land 1" in prompt_of(body) else "True") as server:
        found = proposed(recipe, path, tmp_path=tmp_path, servers={"base_url": server.url}).sets
    assert [one.candidates[0].verification for one in found] == [1.0, 0.0, 1.0]
    assert [one.candidates[0].verification for one in proposed(recipe, path, tmp_path=tmp_path).sets] == [None] * 3


def test_each_model_of_a_recipe_takes_its_own_answers(tmp_path: Path) -> None:
    recipe = recipe_of(CHAT | {"name": "a"}, CHAT | {"model": "owner/b-7b"}, CAUSAL | {"name": "c"})
    first = answers(tmp_path / "1.jsonl", said(0, '["Peru"]', model="A"))
    second = answers(tmp_path / "2.jsonl", said(0, '["Chad"]', model="b-7b"))
    third = answers(tmp_path / "c.jsonl", said(1, '["Mali"]'))
    found = proposed(recipe, third, first, second, tmp_path=tmp_path).sets
    whose = {candidate.text: candidate.sources for one in found for candidate in one.candidates}
    assert whose == {"Peru": sources("a#0"), "Chad": sources("owner/b-7b#0"), "Mali": sources("c#0")}
    assert found[0].draws == (State.ANSWERED, State.ANSWERED, State.MISSING)
    alone = proposed(recipe, first, tmp_path=tmp_path)
    assert [one.draws for one in alone.sets][:1] == [(State.ANSWERED,)]  # no draws of models that no file is of
    kin = answers(tmp_path / "k.jsonl", said(2, '["Togo"]', model="Org/C-9B"))
    assert [one.candidates[0].sources for one in proposed(recipe, kin, tmp_path=tmp_path).sets if one.candidates] == [
        sources("c#0")
    ]
    named = answers(tmp_path / "c of z.jsonl", said(2, '["Togo"]', model="z"))
    (only,) = [one.candidates[0] for one in proposed(recipe, named, tmp_path=tmp_path).sets if one.candidates]
    assert only.sources == sources("c#0")  # by the file's name
    with pytest.raises(
        InputError, match=r"x\.jsonl: of the models that the recipe asks \(a, owner/b-7b, c\), it is no"
    ):
        proposed(recipe, answers(tmp_path / "x.jsonl", said(0, "Mali", model="z")), tmp_path=tmp_path)


def test_two_files_of_one_model_are_its_draws(tmp_path: Path) -> None:
    files = [answers(tmp_path / f"{name}.jsonl", said(0, f'["{name}"]')) for name in ("Peru", "Chad")]
    (found, *_) = proposed(recipe_of(CHAT), *files, tmp_path=tmp_path).sets
    assert {one.text: one.sources for one in found.candidates} == {
        "Peru": sources("gpt-4#0"),
        "Chad": sources("gpt-4#1"),
    }


def test_scored_candidates_stand_for_a_masked_model(tmp_path: Path) -> None:
    scored = [{"object": "Peru", "score": 0.7}, {"object": "the", "score": 0.1}]
    path = answers(tmp_path / "a.jsonl", {"SubjectEntity": "land 0", "candidates": scored})
    recipe = recipe_of({"component": "masked", "model": "no-such-model", "probe": {"clean": False}})
    found = proposed(recipe, path, tmp_path=tmp_path, offline=True).sets
    assert [(one.text, one.score) for one in found[0].candidates] == [("Peru", 0.7), ("the", 0.1)]
    assert found[1].failed


def test_answers_that_nobody_could_have_given_are_refused(tmp_path: Path) -> None:
    path = answers(tmp_path / "a.jsonl", said(0, "Peru"))
    with pytest.raises(InputError, match="no generator of this recipe asks a model that the answers of --from could"):
        proposed(recipe_of({"component": "prior"}), path, tmp_path=tmp_path)
    other = answers(tmp_path / "b.jsonl", {"SubjectEntity": "elsewhere", "completions": ["Peru"]})
    for recipe in (recipe_of(CHAT), recipe_of({"component": "recorded"})):
        with pytest.raises(
            InputError, match=r"b\.jsonl answers none of the 3 queries of edition mini, first \('land 0"
        ):
            proposed(recipe, other, tmp_path=tmp_path)
    unknown = answers(tmp_path / "c.jsonl", said(0, "Peru", Relation="awardWonBy"))
    with pytest.raises(
        InputError, match=r"c\.jsonl, line 1, field Relation: 'awardWonBy' is no relation of edition mini"
    ):
        proposed(recipe_of(CHAT), unknown, tmp_path=tmp_path)


def test_files_that_a_recipe_reads_otherwise_are_no_answers(tmp_path: Path) -> None:
    told = tmp_path / "texts.jsonl"
    told.write_text('{"title": "land 0", "text": "It borders Peru."}\n')
    context = {"context": {"provider": "titles", "path": "from"}}
    with pytest.raises(InputError, match="needs a key"):  # it goes to the server
        proposed(recipe_of(CHAT | context), told, tmp_path=tmp_path)


def chosen_by_prompt(body: dict[str, Any]) -> str:
    """Answer by a hash of the prompt, so that sources and draws differ and a second run is answered alike."""
    kinds = [
        '["Peru", "Mali"]',
        "Peru, 1990, 1993",
        "None",
        '["Chad", "Peru", "land 1"]',
        "yes",
        "no",
        "From 1990 to 1993.",
        "True",
    ]
    said = kinds[zlib.crc32(prompt_of(body).encode()) % len(kinds)]
    mark = re.search("answer:", prompt_of(body), re.IGNORECASE)
    return f"{mark[0]} {said}" if mark else said


def asks_borders(spec: GeneratorSpec) -> bool:
    return not spec.only or any(BORDERS in SPACE.relation(name).names for name in spec.only)


def is_replayed(recipe: Any) -> bool:
    return any(spec.is_replayed for spec in recipe.generate) and not any(spec.reads_files for spec in recipe.generate)


def _without_index(clean: Any) -> Any:
    """Return the cleaning of a recipe, without a filter that takes an index."""
    return part("clean", **{field.name: getattr(clean, field.name) for field in fields(clean)})


RECIPES = {name: bundled(name) for name in SPACE.system_names()}
REPLAYED = {name: one for name, one in RECIPES.items() if is_replayed(one) and not begins_here(one)}
"""Recipes but those that begin with a model of this machine, which answers what no file does."""


@pytest.mark.parametrize("name", REPLAYED)
def test_any_recipe_of_a_language_model_runs_on_recorded_answers(name: str, tmp_path: Path) -> None:
    """No server, no weights, no network: the answers are all there is."""
    recipe = replace(REPLAYED[name], clean=_without_index(REPLAYED[name].clean))

    def written(spec: GeneratorSpec) -> Iterable[dict[str, Any]]:
        """Return a row with an answer and an empty one, as the generator reads them."""
        if not hasattr(spec, "prompt"):
            lists = [{"object": "Peru", "score": 0.99}], []
            return [{"SubjectEntity": QUERIES[place].subject, "candidates": own} for place, own in enumerate(lists)]
        style = spec.prompt
        if style.parse_as == "split" and not style.format.brackets:
            return map(said, (0, 1), ("Peru", style.null))
        return map(said, (0, 1), ("ANSWER: Peru", "ANSWER: none") if style.parse_as == "line" else ('["Peru"]', "[]"))

    files = [
        answers(tmp_path / f"{place}.jsonl", *written(spec), model=spec.called[0])
        for place, spec in enumerate(recipe.generate)
        if spec.is_replayed and (not spec.only or BORDERS in SPACE.relation(spec.only[0]).names)
    ]
    if not files:
        pytest.skip("it does not ask about borders")
    found = proposed(recipe, files[0], tmp_path=tmp_path, offline=True).sets
    assert texts(found[0]) == ["Peru"]
    assert (found[1].candidates, found[1].failed, found[2].failed) == ((), False, True)


WRITTEN = {
    name: recipe
    for name, recipe in REPLAYED.items()
    if any(hasattr(spec, "prompt") and not spec.ranking and asks_borders(spec) for spec in recipe.generate)
}


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=pytest.mark.whole if place % 4 else ()) for place, name in enumerate(WRITTEN)]
)
def test_what_a_run_wrote_is_read_with_the_same_result(name: str, tmp_path: Path) -> None:
    queries = [Query(f"land {place}", BORDERS, f"Q{place + 1}") for place in range(5)]  # some replies name an object
    reads_what_it_wrote(name, SPACE, MINI, queries, tmp_path)


@pytest.mark.whole
@pytest.mark.parametrize(
    ("name", "relations"), [("cs2-26", ["awardWonBy"]), *((name, list[str]()) for name in WRITTEN)]
)
def test_what_a_run_of_2026_wrote_is_read_with_the_same_result(
    name: str, relations: list[str], tmp_path: Path, data_dir: Path
) -> None:
    """Parts, draws of a step, and NIL probabilities: relations that are asked in several prompts have all of them."""
    space = Workspace(data=data_dir)
    edition = space.edition("2026")
    queries = [Query(f"land {place}", relation) for relation in relations or edition.relations for place in range(3)]
    parts = reads_what_it_wrote(name, space, edition, queries, tmp_path)
    assert parts > 1 or not relations


def reads_what_it_wrote(name: str, space: Workspace, edition: Edition, queries: list[Query], tmp_path: Path) -> int:
    """Return the most parts of a draw."""
    recipe = replace(WRITTEN[name], clean=_without_index(WRITTEN[name].clean))
    given = {"edition": edition, "workspace": space, "tmp_path": tmp_path}
    with Loopback(chosen_by_prompt) as server:
        servers = {"base_url": server.url}
        (live,) = Steps(Plan.of(run_of(servers=servers, **given), recipe)).over(queries)
        asked = len(server.requests)
        path = tmp_path / "replies.jsonl"
        path.write_bytes(reply_rows(live.replies))
        steps = servers if recipe.pool.asks or recipe.link.ask else {}
        replayed = proposed(recipe, path, queries=queries, servers=steps, offline=not steps, **given)
    assert asked
    assert any(found.candidates for found in live.sets)
    assert replayed.sets == live.sets
    return max(len(one.parts) for own in live.replies.values() for one in own)


def test_a_model_that_nobody_gave_chooses_among_no_hits(tmp_path: Path) -> None:
    path = answers(tmp_path / "a.jsonl", said(0, '["Peru"]'))
    recipe = recipe_of(CHAT)
    recipe = replace(recipe, link=part("link", strategies=("model",), ask=CHAT))
    found = proposed(recipe, path, tmp_path=tmp_path).sets[0]
    assert [(one.text, one.id) for one in found.candidates] == [("Peru", "Q419")]


@pytest.mark.parametrize(
    ("name", "place"),
    [("ministral", 2), ("ministral:cot40", 2), ("QWEN__self_consistency", 0), ("Qwen3.5-9B", 0), ("llama", None)],
)
def test_the_name_of_a_row_may_say_more_than_the_name_of_a_source(name: str, place: int | None, tmp_path: Path) -> None:
    path = tmp_path / "x.jsonl"
    path.write_text(json.dumps({"SubjectEntity": "s", "Relation": "hasArea", "model": name, "completions": ["3"]}))
    run = Run(workspace=SPACE, edition=SPACE.edition("2026"), files=(path,))
    if place is None:
        with pytest.raises(InputError, match="it is not clear whose answers these are"):
            Plan.of(run, RECIPES["chironk26"])
    else:
        found = Plan.of(run, RECIPES["chironk26"]).generators
        assert [number for number, one in enumerate(found) if one.files] == [place]


@pytest.mark.parametrize(("manifest", "place"), [({"model": "qwen"}, 0), ({"models": ["gemma"]}, 1), (None, None)])
def test_the_manifest_beside_a_file_says_whose_answers_it_holds(
    tmp_path: Path, manifest: dict[str, Any] | None, place: int | None
) -> None:
    answers(tmp_path / "a-val.jsonl", said(0, '["Peru"]'))
    if manifest:
        (tmp_path / "manifest.json").write_text(json.dumps(manifest))
    recipe = recipe_of({"component": "chat", "model": "qwen"}, {"component": "chat", "model": "gemma"})
    run = Run(workspace=SPACE, edition=SPACE.edition("mini"), files=(tmp_path / "a-val.jsonl",))
    if place is None:
        with pytest.raises(InputError, match="it is not clear whose answers these are"):
            Plan.of(run, recipe)
    else:
        assert [number for number, one in enumerate(Plan.of(run, recipe).generators) if one.files] == [place]


@pytest.mark.parametrize(
    ("row", "reason"),
    [
        ({"model": "gpt-3", "candidates": [{"object": "Peru", "score": 0.9}]}, "the recorded answers are of gpt-3"),
        ({"model": "bert-base-cased", "completions": ["Peru"]}, "the recorded answers of bert-base-cased are texts"),
    ],
)
def test_a_masked_recipe_reads_scores_of_its_own_model_alone(row: dict[str, Any], reason: str, tmp_path: Path) -> None:
    file = answers(tmp_path / "other.jsonl", {"SubjectEntity": QUERIES[0].subject, **row})
    masked = recipe_of({"component": "masked", "model": "bert-base-cased"})
    with pytest.raises(InputError, match=reason):
        proposed(masked, file, tmp_path=tmp_path)


def test_a_masked_recipe_reads_scores_of_the_model_that_the_user_names(tmp_path: Path) -> None:
    row = {"SubjectEntity": QUERIES[0].subject, "model": "gpt-3", "candidates": [{"object": "Peru", "score": 0.9}]}
    masked = recipe_of({"component": "masked", "model": "bert-base-cased"})
    made = proposed(masked, answers(tmp_path / "own.jsonl", row), tmp_path=tmp_path, model="gpt-3")
    assert [candidate.text for candidate in made.sets[0].candidates] == ["Peru"]


def channel(name: str) -> dict[str, Any]:
    return CHAT | {"name": name}


def test_rows_of_a_source_that_the_recipe_lacks_are_left_out_and_named(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    recipe = recipe_of(channel("lists"), channel("greedy"))
    lists = answers(tmp_path / "1.jsonl", said(0, '["Peru"]'), model="gpt-4", source="lists")
    other = answers(tmp_path / "2.jsonl", said(0, '["Chad"]'), model="gpt-4", source="hint")
    block = proposed(recipe, lists, other, tmp_path=tmp_path, offline=True, queries=QUERIES[:1])
    assert texts(block.sets[0]) == ["Peru"]
    assert f"{other}: the recipe asks nothing as hint: these rows are left out" in caplog.text
    with pytest.raises(InputError, match="--from holds no answers of lists, greedy"):
        proposed(recipe, other, tmp_path=tmp_path, offline=True)


def test_a_source_that_is_not_asked_of_a_relation_has_no_rows_of_it(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    recipe = recipe_of(channel("lists"), channel("greedy") | {"only": ["children"]})
    lists = answers(tmp_path / "1.jsonl", said(0, '["Peru"]'), model="gpt-4", source="lists")
    greedy = answers(tmp_path / "2.jsonl", said(0, '["Chad"]'), model="gpt-4", source="greedy")
    block = proposed(recipe, lists, greedy, tmp_path=tmp_path, offline=True, queries=QUERIES[:1])
    assert texts(block.sets[0]) == ["Peru"]
    assert "the recipe asks nothing as greedy" in caplog.text


def test_of_several_sources_of_one_model_the_file_s_name_says_which(tmp_path: Path) -> None:
    recipe = recipe_of(channel("direct"), channel("greedy"))
    given = answers(tmp_path / "m__direct_borders.jsonl", said(0, '["Peru"]'), model="gpt-4")
    block = proposed(recipe, given, tmp_path=tmp_path, offline=True, queries=QUERIES[:1])
    assert [sources_of(one) for one in block.sets] == [{"direct"}]
    with pytest.raises(InputError, match="not clear whose answers these are"):
        proposed(recipe, given.rename(tmp_path / "m.jsonl"), tmp_path=tmp_path, offline=True)


def sources_of(found: CandidateSet) -> set[str]:
    return {source.model for candidate in found.candidates for source in candidate.sources}
