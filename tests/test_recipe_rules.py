"""A recipe's rules: one in general, others of relations, thresholds before both; and one that is known to be exact."""

import json
from pathlib import Path
from typing import Any

import pytest
from opened import recipe_file

from lmkbc import Shape, Workspace
from lmkbc.plan import Plan
from lmkbc.recipe import read_recipe
from lmkbc.run.pipeline import propose
from lmkbc.select.pool import Pool
from lmkbc.select.selector import PerRelation
from lmkbc.session.options import Selection, settled
from lmkbc.testing import Candidate, CandidateSet, Query, Run, Source, State
from lmkbc.tune.chooser import selector_for
from tests.rules import rule_of
from tests.tuned import official

TOP = {"rule": "top-k", "k": 1}
FOUND = (Candidate("x", 0.6), Candidate("y", 0.4))


def recipe(folder: Path, **parts: Any) -> Any:
    path = recipe_file(folder / "mine.toml", {"component": "recorded"}, **{"select": {**TOP, "k": 2}, **parts})
    return read_recipe(Workspace(), str(path))


def kept(selector: Any, relation: str) -> int:
    return len(selector.select(CandidateSet(Query("s", relation), FOUND)).objects)


@pytest.mark.parametrize("name", ["country-borders", "CountryBordersCountry", "countryLandBordersCountry"])
def test_a_relation_s_own_rule_serves_it_under_every_name(tmp_path: Path, name: str) -> None:
    given = recipe(tmp_path, select={**TOP, "k": 2, "relations": {name: TOP}})
    space = Workspace()
    selector, how = selector_for(
        Plan.of(Run(workspace=space, edition=space.edition("2023")), given), settled(Selection, {})
    )
    assert how["how"] == "selected by the recipe's rule 'top-k' (k 2), another for some relations, untuned"
    assert kept(selector, "CountryBordersCountry") == kept(selector, "CountryBordersWithCountry") == 1
    assert kept(selector, "RiverBasinsCountry") == 2


def test_one_source_has_nothing_to_agree_with(tmp_path: Path) -> None:
    space, paths = Workspace(), (tmp_path / "one.jsonl", tmp_path / "two.jsonl")
    for path in paths:
        path.write_text('{"SubjectEntity": "Peru", "Relation": "CountryBordersCountry", "completions": ["Chile"]}\n')
    for files, rule in ((1, "'cutoff' (threshold 0.5)"), (2, "'agreement'")):
        run = Run(workspace=space, edition=space.edition("2023"), files=paths[:files])
        selector, how = selector_for(
            Plan.of(run, read_recipe(space, "recorded")), settled(Selection, {"untuned": True})
        )
        assert how["how"] == f"selected by the recipe's rule {rule}, untuned"
        assert selector.reads_others == (files > 1)


def test_what_was_tuned_comes_before_a_relation_s_own_rule() -> None:
    none = rule_of("cutoff", threshold=2.0)
    selector = PerRelation(rule_of("cutoff", threshold=0.5), {"a": none, "b": none}).under(
        {"b": rule_of("cutoff", threshold=0.0)}
    )
    assert [kept(selector, name) for name in "abc"] == [0, 2, 1]


def test_a_recipe_may_have_spellings_of_its_own(tmp_path: Path) -> None:
    answers = tmp_path / "answers.jsonl"
    query = Query("s", "companyTradesAtStockExchange")
    row = {"SubjectEntity": query.subject, "Relation": query.relation, "completions": ["NYSE, LSE"]}
    answers.write_text(json.dumps(row) + "\n")
    space = Workspace()
    run = Run(workspace=space, edition=space.edition("2026"), files=(answers,))
    for clean, names in (
        ({}, ["London Stock Exchange", "New York Stock Exchange"]),
        ({"spellings": {}}, ["LSE", "NYSE"]),
        ({"spellings": {"LSE": "London"}}, ["London", "NYSE"]),
    ):
        (found,) = propose(Plan.of(run, recipe(tmp_path, clean=clean)), [query]).sets
        assert [candidate.text for candidate in found.candidates] == names


def test_a_listed_name_is_spelled_as_train_spells_it(tmp_path: Path) -> None:
    shape = Shape(
        variants={"USA": "United States of America", "United States": "United States of America", "UK": "Britain"}
    )
    assert shape.spelled_as(["United States of America", "United States"]) == shape
    assert shape.spelled_as(["United States", "Chad"]).variants == {
        "USA": "United States",
        "United States": "United States",
        "United States of America": "United States",
        "UK": "Britain",
    }
    query = Query("Ghana", "countryLandBordersCountry")
    (data := tmp_path / "lmkbc2025").mkdir()
    row = {"SubjectEntity": "Mali", "Relation": query.relation, "ObjectEntities": ["Côte d'Ivoire"]}
    answers = tmp_path / "answers.jsonl"
    for path, answer in ((data / "train.jsonl", {}), (answers, {"completions": ["Ivory Coast, Togo, USA"]})):
        path.write_text(json.dumps({**row, "SubjectEntity": query.subject, **answer} if answer else row) + "\n")
    space = Workspace(data=tmp_path)
    run = Run(workspace=space, edition=space.edition("2025"), files=(answers,))
    (found,) = propose(Plan.of(run, recipe(tmp_path)), [query]).sets
    assert [one.text for one in found.candidates] == ["Côte d'Ivoire", "Togo", "United States of America"]


@pytest.mark.parametrize(
    ("files", "published"),
    [
        pytest.param(("qwen__self_consistency",), 0.462866, marks=pytest.mark.whole),
        (("gemma__independent",), 0.424555),
        pytest.param(("qwen__self_consistency", "gemma__independent"), 0.451424, marks=pytest.mark.whole),
    ],
)
def test_a_vote_in_two_stages_is_that_of_its_authors(data_dir: Path, files: tuple[str, ...], published: float) -> None:
    space = Workspace(data=data_dir)
    edition = space.edition("2026")
    paths = tuple(data_dir / "recorded" / "2026-val" / f"{name}.jsonl.gz" for name in files)
    given = read_recipe(space, "chironk26")
    examples = space.examples(edition, "val")
    sets = propose(
        Plan.of(Run(workspace=space, edition=edition, files=paths), given), [one.query for one in examples]
    ).sets
    made = {prediction.query: prediction for prediction in given.select.select_all(sets)}
    assert official(made, examples, edition).overall.f1 == pytest.approx(published, abs=1e-6)


@pytest.mark.parametrize(("mute", "kept"), [(["ministral"], ["Riga"]), (["gemma", "ministral"], [])])
def test_chironk26_counts_models_whose_answers_cannot_be_read(mute: list[str], kept: list[str]) -> None:
    query = Query("s", "personHasCityOfDeath")
    given = read_recipe(Workspace(), "chironk26")
    names = ["qwen", "gemma", "ministral"]
    groups = [
        [CandidateSet(query, draws=(State.UNPARSED,))]
        if name in mute
        else [CandidateSet(query, (Candidate("Riga", 1.0, (Source(name, "0"),)),))]
        for name in names
    ]
    (pooled,) = Pool(Workspace().edition("2026"), given.pool).merged(groups, names)
    assert [one.text for one in given.select.select(pooled).objects] == kept
