"""Figures of a page, and what it tells of the questions: prompts, models, tokens and cost."""

import base64
import gzip
import json
import re
from pathlib import Path

import hostile
import numpy as np
import pytest
from command import Command

from lmkbc.report import figures
from lmkbc.report.levels import ScoreCounts


def scored(*rights: int, score: float | None = None, into: ScoreCounts | None = None) -> ScoreCounts:
    made, count = into or ScoreCounts(), len(rights)
    for place, right in enumerate(rights):
        made.add(1 - place / count if score is None else score, bool(right))
    return made


def test_an_interval_is_wilson_s() -> None:
    low, high = figures.wilson(np.array([0.0, 8.0, 10.0]), np.array([10.0, 10.0, 10.0]))
    assert low == pytest.approx([0, 0.4902, 0.7225], abs=1e-4)
    assert high == pytest.approx([0.2775, 0.9433, 1], abs=1e-4)


def test_a_relation_of_few_candidates_has_no_panel() -> None:
    pool = {"few": scored(*[1] * 19), "<b>$_x$</b>": scored(*[1, 0] * 10)}
    own = figures.panels_of(pool, ["few", "<b>$_x$</b>", "none"])
    assert list(own) == ["<b>$_x$</b>"]
    svg = figures.curves(own, {"<b>$_x$</b>": 15}).svg
    assert "<b>" not in svg
    assert "&lt;b&gt;$_x$&lt;/b&gt;" in svg


def test_a_relation_whose_candidates_share_a_score_has_no_panel() -> None:
    alike = scored(*[1] * 4, into=scored(*[1, 0] * 20, score=1.0))
    assert figures.panels_of({"alike": alike}, ["alike"]) == {}


def test_panels_are_bounded() -> None:
    names = [f"r{place}" for place in range(40)]
    pool = {name: scored(*[1] * (20 + place)) for place, name in enumerate(names)}
    assert list(figures.panels_of(pool, names)) == names[-figures.MOST_PANELS :]
    right, taken = figures.cut_points(scored(*[1] * 5000).levels())
    assert len(right) == figures.CUTS
    assert (right[-1], taken[-1]) == (5000, 5000)


def test_candidates_of_one_score_are_taken_together() -> None:
    right, taken = figures.cut_points(scored(1, score=0.9, into=scored(1, 0, 1, score=0.5)).levels())
    assert (right.tolist(), taken.tolist()) == ([1, 3], [1, 4])


def test_bins_that_are_empty_are_left_out() -> None:
    mean, right, count = scored(1, score=1.0, into=scored(1, 0, score=0.5)).levels().binned(5)
    assert (mean.tolist(), right.tolist(), count.tolist()) == ([0.5, 1], [1, 1], [2, 1])


def test_a_score_on_a_bin_s_edge_is_in_the_bin_that_it_begins() -> None:
    own = ScoreCounts()
    for tenth in range(11):
        own.add(tenth / 10, right=False, kept=tenth > 3)
    assert own.levels().places(10).tolist() == [9, 9, 8, 7, 6, 5, 4, 3, 2, 1, 0]
    assert own.least == 0.4


def test_memory_of_scores_does_not_depend_on_their_number() -> None:
    own = ScoreCounts()
    for score in range(0, 1_000_001, 7):
        own.add(score / 1_000_000, right=score % 2 == 0)
    levels = own.levels()
    assert len(levels.count) < 5_000
    assert (levels.count.sum(), len(own)) == (142_858, 142_858)
    assert levels.right.sum() == 71_429
    assert np.average(levels.mean, weights=levels.count) == pytest.approx(0.5, abs=1e-4)
    assert np.abs(levels.mean - levels.floor / 1_000_000).max() < 0.001


def test_figures_of_nothing_are_left_out_and_floors_are_named(command: Command, tmp_path: Path) -> None:
    run, gold, _ = hostile.run(tmp_path, 14)
    (run / "candidates.jsonl.gz").unlink()
    asked = [json.loads(line) for line in gold.read_text().splitlines()]
    hostile.lines(run / "predictions.jsonl", [{**row, "ObjectEntitiesID": ["Q99999"]} for row in asked])
    titles = ("F1 per relation", "Precision against recall", "Objects kept", "Scores of right", "as the cut moves")
    for words, wanted in (((), titles[:3]), (("--relation", hostile.RELATIONS[0]), titles[2:3])):
        command.done("report", run, "--gold", gold, *words)
        page = (run / "report.html").read_text(encoding="utf-8")
        assert tuple(title for title in titles if f"<h3>{title}" in page) == wanted
        assert page.index('id="relations"') < page.index("<h3>")  # the table first, figures after it
        lines = 2 if words else 3  # of each relation, and of the average
        assert len(re.findall(">below (class prior and )?all-empty file</td>", page)) == lines


CHAT = {"component": "chat", "model": "m", "prompt": {"ask": "<script> {{ subject }}"}, "shots": {"k": 2}}


def page(
    command: Command,
    folder: Path,
    generate: list[object],
    *words: object,
    usage: object = {"a": {"prompt_tokens": 3000, "completion_tokens": 21, "cost": 0.25}, "b": {"prompt_tokens": 1}},
) -> str:
    run, gold, _ = hostile.run(folder, 8)
    manifest = {"edition": "mini", "split": "val", "recipe": {"generate": generate}, "models": ["m"]}
    (run / "manifest.json").write_text(json.dumps(manifest))
    (run / "timing.json").write_text(json.dumps({"seconds": 1.5, "usage": usage}))
    command.done("report", run, "--gold", gold, *words)
    return (run / "report.html").read_text(encoding="utf-8")


@pytest.mark.usefixtures("undrawn")
def test_a_recipe_s_prompts_are_shown_per_relation_and_escaped(command: Command, tmp_path: Path) -> None:
    made = page(command, tmp_path, [CHAT, {"component": "prior"}])
    for name in hostile.RELATIONS:
        assert made.count(f"<summary>{name}</summary>") == 1
    assert "m, as the recipe words it; subject: subject 000" in made
    assert made.count("&lt;script&gt; subject 000") == len(hostile.RELATIONS)
    assert made.count("<script") == 3


@pytest.mark.usefixtures("undrawn")
def test_what_a_run_took_is_named_and_says_what_is_of_its_last_command(command: Command, tmp_path: Path) -> None:
    server = {"prompt_tokens": 30, "from_store": 9, "requests": 15, "calls": 13, "spent_cost": 0.5}
    made = page(command, tmp_path, [CHAT], usage={"a": server, "b": {"calls": 7}})
    table = made.partition('<h2 id="usage">')[2].partition("</table>")[0]
    lines = [re.findall(r"<t[hd][^>]*>(.*?)</t[hd]>", row) for row in table.split("<tr>")]
    last = "of the last command that asked"
    assert [line for line in lines if line and line[-1][:1].isdigit()] == [
        ["all steps", f"seconds, {last}", "1.5"],
        ["a", "prompt tokens", "30"],
        ["a", "draws from the store", "9"],
        ["a", f"requests sent, retries included, {last}", "15"],
        ["a", f"requests answered, {last}", "13"],
        ["a", f"cost, {last}", "0.5"],
        ["b", "prompts read", "7"],
    ]


@pytest.mark.usefixtures("undrawn")
def test_every_row_has_its_prompts_checks_included(command: Command, tmp_path: Path) -> None:
    made = page(command, tmp_path, [CHAT | {"verify": {}}])
    packed = re.findall(r'class="part">([A-Za-z0-9+/=]+)</script>', made)
    rows = [row for part in packed for row in json.loads(gzip.decompress(base64.b64decode(part)))["rows"]]
    for subject, prompts in ((row[0], row[-2]) for row in rows):
        assert [of for of, _ in prompts] == [
            f"{part}: m, as the recipe words it" for part in ("question", "verification")
        ]
        assert prompts[0][1].endswith(subject[-3:])
        assert f"{subject[-3:]} shares" in prompts[1][1] or f"{subject[-3:]} plays" in prompts[1][1]
        assert "{object}" in prompts[1][1]


@pytest.mark.usefixtures("undrawn")
def test_tokens_and_cost_stand_at_the_top(command: Command, tmp_path: Path) -> None:
    made = page(command, tmp_path, [{"component": "prior"}])
    assert "<dt>tokens</dt><dd>3,022</dd>" in made
    assert "<dt>cost</dt><dd>0.2500</dd>" in made
    assert 'id="prompts"' not in made


@pytest.mark.usefixtures("undrawn")
def test_a_recipe_of_an_older_version_costs_no_page(command: Command, tmp_path: Path) -> None:
    run, gold, _ = hostile.run(tmp_path, 8)
    recipe = {"generate": [{**CHAT, "tempo": 1}], "link": {"stratgies": {}}}
    (run / "manifest.json").write_text(json.dumps({"edition": "mini", "recipe": recipe}))
    _, told = command.done("report", run, "--gold", gold)
    for said in (
        "'tempo': known",
        "; no prompts are shown",
        "no setting 'stratgies'",
        "; links are explained with the",
    ):
        assert said in told, told


@pytest.mark.usefixtures("undrawn")
def test_recorded_prompts_and_tokens_come_first(command: Command, tmp_path: Path) -> None:
    query = {"SubjectEntity": "subject 001", "Relation": hostile.RELATIONS[0], "model": "gpt", "completions": ["x"]}
    rows = [
        {**query, "prompt": "one <b>"},
        {**query, "prompt": "two"},
        {**query, "SubjectEntity": "elsewhere", "prompt": "three"},
    ]
    hostile.lines(tmp_path / "asked.jsonl", rows)
    made = page(command, tmp_path, [CHAT], "--from", tmp_path / "asked.jsonl")
    assert "gpt, as recorded; subject: subject 001" in made
    assert made.count("as recorded") == 1  # of the first subject of a relation alone
    assert "one &lt;b&gt;</pre>" in made
    assert made.count("as the recipe words it") == 1  # of the relation that no file tells of
