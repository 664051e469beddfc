"""The earlier scorers that some published figures were computed with: what they score otherwise, and those figures."""

import json
from pathlib import Path

import pytest
from command import Command
from hypothesis import given
from hypothesis import strategies as st
from space import SPACE, bundled

from lmkbc import Edition, Workspace
from lmkbc.evaluation.official import evaluate

EDITIONS = [edition for edition in SPACE.editions.values() if edition.profiles]
PAIR = ("s", "r")


def scored(edition: Edition, profile: str, predicted: list[str], gold: list[object]) -> tuple[float, ...]:
    edition = edition.under(profile) if profile else edition
    table = edition.metric.evaluate({PAIR: predicted}, {PAIR: gold}, rows=True)
    assert table.rows[0][1][:3] == (table.overall.p, table.overall.r, table.overall.f1)
    return table.rows[0][1][:3]


@pytest.mark.parametrize(
    ("profile", "predicted", "gold", "then", "now"),
    [
        ("2023-legacy", [], [""], (1.0, 0.0, 0.0), (1.0, 1.0, 1.0)),
        ("2023-legacy", ["Q1"], [""], (0.0, 0.0, 0.0), (0.0, 1.0, 0.0)),
        ("2023-legacy", [""], [""], (1.0, 1.0, 1.0), (1.0, 1.0, 1.0)),
        ("2023-legacy", ["Q1", "Q2"], ["Q1"], (0.5, 1.0, 2 / 3), (0.5, 1.0, 2 / 3)),
        ("2022-legacy", [], [["a"]], (0.0, 0.0, 0.0), (1.0, 0.0, 0.0)),
        ("2022-legacy", ["none"], [["a"]], (0.0, 0.0, 0.0), (1.0, 0.0, 0.0)),
        ("2022-legacy", ["a"], [], (0.0, 0.0, 0.0), (0.0, 1.0, 0.0)),
        ("2022-legacy", [], [], (1.0, 1.0, 1.0), (1.0, 1.0, 1.0)),
        ("2022-legacy", ["b", "c"], [["a", "b"]], (0.5, 1.0, 2 / 3), (0.5, 1.0, 2 / 3)),
    ],
)
def test_what_an_earlier_scorer_scored_otherwise(
    profile: str, predicted: list[str], gold: list[object], then: tuple[float, ...], now: tuple[float, ...]
) -> None:
    edition = SPACE.edition(profile.removesuffix("-legacy"))
    assert scored(edition, profile, predicted, gold) == pytest.approx(then)
    assert scored(edition, "", predicted, gold) == pytest.approx(now)


@given(
    st.lists(st.lists(st.sampled_from("abc"), min_size=1, max_size=2), max_size=3),
    st.lists(st.sampled_from("abcd"), max_size=3),
)
def test_the_f1_of_2022_is_the_same_by_either_script(gold: list[list[str]], predicted: list[str]) -> None:
    edition = SPACE.edition("2022")
    assert scored(edition, "2022-legacy", predicted, [*gold])[2] == scored(edition, "", predicted, [*gold])[2]


@pytest.mark.parametrize(("file", "printed"), [("bert", (0.368, 0.161, 0.142)), ("gpt3-ned", (0.308, 0.210, 0.218))])
def test_the_organisers_files_of_2023_have_their_printed_figures(
    data_dir: Path, file: str, printed: tuple[float, ...]
) -> None:
    space = Workspace(data=data_dir)
    edition = space.edition("2023").under("2023-legacy")
    path = data_dir / f"recorded/2023-val/organisers-{file}.predictions.jsonl"
    overall = evaluate(path, space.gold_path(edition, "val"), edition).table.overall
    assert tuple(round(value, 3) for value in (overall.p, overall.r, overall.f1)) == printed


def test_a_published_figure_names_a_profile_that_there_is() -> None:
    for edition in EDITIONS:
        assert {result.profile for result in edition.published} <= {"", *edition.profiles}
    for name in SPACE.system_names():
        for place in bundled(name).published:
            edition_name, split, *profile = place.split("/")
            edition = SPACE.edition(edition_name)
            assert split in edition.splits
            assert {*profile} <= {*edition.profiles}


def test_evaluate_takes_a_profile_by_name(tmp_path: Path, command: Command) -> None:
    row = {"SubjectEntity": "s", "Relation": "PersonHasSpouse", "ObjectEntitiesID": []}
    predictions, gold = tmp_path / "p.jsonl", tmp_path / "g.jsonl"
    predictions.write_text(json.dumps(row))
    gold.write_text(json.dumps(row | {"ObjectEntities": [""], "ObjectEntitiesID": [""]}))

    run = command.under("evaluate", predictions, "--gold", gold)
    code, out, _ = run("--edition", "2023", "--json", "--profile", "2023-legacy")
    shown = json.loads(out)
    assert (code, shown["profile"], shown["macro_p"], shown["macro_r"]) == (0, "2023-legacy", 1.0, 0.0)
    code, out, _ = run("--edition", "2023", "--json")
    shown = json.loads(out)
    assert (code, shown["macro_f1"], "profile" in shown) == (0, 1.0, False)
    assert "has no metric profile '2023-legcy': did you mean '2023-legacy'?" in run.fails(
        "--edition", "2023", "--profile", "2023-legcy"
    )
    assert "it has none, so leave --profile out" in run.fails("--edition", "2024", "--profile", "x")
