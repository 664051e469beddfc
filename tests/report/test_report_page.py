"""The page of a run: what its rows hold, what went wrong with each, and that no text of a model is markup."""

import re
import sys
from pathlib import Path
from typing import Any

import hostile
import pytest
from command import Command
from loopback import Loopback
from opened import recipe_file
from page_rows import held
from space import SPACE
from typer.testing import CliRunner

from lmkbc.cli import build
from lmkbc.link.hits import Link
from lmkbc.report import figures
from lmkbc.report.levels import ScoreCounts
from lmkbc.report.links import trace
from lmkbc.testing import Hit

LONGEST_REPLY = 4000


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> str:
    folder = tmp_path_factory.mktemp("page")
    run, gold, replies = hostile.run(folder)
    words = ("report", run, "--gold", gold, "--from", replies, "--index", hostile.index(folder))
    done = CliRunner().invoke(build(), list(map(str, words)))
    assert done.exit_code == 0, done.output
    return (run / "report.html").read_text(encoding="utf-8")


def test_text_of_models_is_no_markup(page: str) -> None:
    assert page.count("<script") == 3  # what rows refer to, the rows, and the page's own
    assert "onerror=" not in re.sub(r"&lt;.*?&gt;", "", page)
    assert "{{ 7 * 7 }}" in page


def test_the_page_fetches_nothing(page: str) -> None:
    fetched = re.findall(r"<(?:link|script|img|iframe)[^>]*(?:src|href)=\"(?!data:)", page)
    assert fetched == []
    assert not re.search(r"@import|url\((?!#)", page)
    assert "default-src 'none'" in page


def test_every_row_is_held_and_long_replies_are_cut(page: str) -> None:
    content = held(page)
    assert len(content["rows"]) == 120
    longest = max(len(text) for row in content["rows"] for _, text in row[-1])
    assert LONGEST_REPLY < longest < LONGEST_REPLY + 100
    assert any("characters in all]" in text for row in content["rows"] for _, text in row[-1])


@pytest.mark.usefixtures("undrawn")
def test_a_name_s_other_meanings_tell_a_wrong_link(command: Command, tmp_path: Path) -> None:
    """Where gold's name is another one, what was on offer tells that the linker chose wrong."""
    made = ([candidate("object 0", "Q500")], ["Q500"], {"Q1": "one"})
    assert "wrong link" in errors(command, *made, "--index", hostile.index(tmp_path, 1))
    assert "wrong link" not in errors(command, *made)


HITS = (Hit("Q1", "one", popularity=2), Hit("Q2", "two"))
LINKS = {
    "chosen": ("Q1", Link("Q1", "index", "class", "x", HITS), "the index: class, hit 1 of 2, 2 sitelinks", ["Q2"]),
    "by rows": (
        "Q1",
        Link("Q1", "relation", "most rows", "x", HITS[:1]),
        "train, as an object of the relation: most rows",
        [],
    ),
    "by a model": ("Q2", Link("Q1", "search", "first", "x", HITS, HITS), "the search: model, hit 2 of 2", ["Q1"]),
    "asked again": ("Q2", Link("Q2", "re-search", "first", "x y", HITS[1:]), "the search for 'x y': first", []),
    "unlinked": (None, Link(None, "unlinked", "no hit fits (class)", "x", HITS), "no hit fits (class)", ["Q1", "Q2"]),
    "as its name": ("x", Link(None, "unlinked", "no hit", "x"), "no hit", []),
    "lost": (None, Link("Q2", "search", "first", "x", HITS[1:]), "the search has Q2", ["Q2"]),
    "given": ("Q3", Link("Q2", "search", "first", "x", HITS[1:]), "came with the answer, or from what is not", ["Q2"]),
    "given alone": (
        "Q3",
        Link(None, "unlinked", "no hit", "x"),
        "came with the answer, or",
        [],
    ),
}


@pytest.mark.whole(but=["1", "3000"])
@pytest.mark.parametrize("count", [1, 2, 30, 3000])
def test_labels_of_axes_are_numbers_however_many_candidates_there_are(count: int) -> None:
    own = ScoreCounts()
    for _ in range(count):
        own.add(0.9, right=True)
    plot = figures.distributions(own.levels())
    labels = re.findall(r"<text [^>]*>([^<]*)</text>", plot.svg)
    assert "1" in labels
    assert [label for label in labels if "$" in label or "\\" in label or "{" in label] == []


@pytest.mark.parametrize(("given", "link", "how", "others"), LINKS.values(), ids=LINKS)
def test_a_trace_says_how_a_name_came_to_its_id(given: str | None, link: Link, how: str, others: list[str]) -> None:
    made = trace(given, link)
    assert made is not None
    assert made.how.startswith(how)
    assert [one for one, _ in made.others] == others


def test_where_objects_have_no_ids_there_are_no_links(command: Command, tmp_path: Path) -> None:
    query = {"SubjectEntity": "s", "Relation": SPACE.edition("2025").relations[0]}
    hostile.lines(tmp_path / "gold.jsonl", [{**query, "ObjectEntities": ["one"]}])
    hostile.lines(tmp_path / "run.jsonl", [{**query, "ObjectEntities": ["one", "two"]}])
    words = ("report", "run.jsonl", "--edition", "2025", "--gold", "gold.jsonl", "--out", "r.html")
    command.done(*words)
    content = held((tmp_path / "r.html").read_text(encoding="utf-8"))
    assert (content["links"], content["traces"]) == (False, [])
    assert [one[:2] for one in content["rows"][0][7]] == [["one", ""], ["two", ""]]


@pytest.mark.usefixtures("undrawn")
def test_what_the_run_s_own_models_wrote_is_shown_before_files(command: Command, tmp_path: Path) -> None:
    run, gold, replies = hostile.run(tmp_path, 2)
    query = {"SubjectEntity": "subject 000", "Relation": hostile.RELATIONS[0]}
    hostile.lines(run / "replies.jsonl.gz", [{**query, "model": "m", "completions": ["own", None]}])
    command.done("report", run, "--gold", gold, "--from", replies)
    row = next(row for row in held((run / "report.html").read_text(encoding="utf-8"))["rows"] if row[-1])
    assert row[-1][:2] == [["m #0", "own"], ["m #1", "[the call failed]"]]
    assert len(row[-1]) == 3


@pytest.mark.whole
def test_the_same_run_gives_the_same_page(command: Command, tmp_path: Path) -> None:
    run, gold, _ = hostile.run(tmp_path, 5)
    pages = [command("report", run, "--gold", gold, "--out", name)[0] for name in ("a", "b")]
    assert pages == [0, 0]
    assert (tmp_path / "a").read_bytes() == (tmp_path / "b").read_bytes()


@pytest.mark.usefixtures("undrawn")
def test_rows_in_many_parts_are_the_same_rows(
    command: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run, gold, replies = hostile.run(tmp_path, 30)
    words = ("report", run, "--gold", gold, "--from", replies, "--index", hostile.index(tmp_path))
    command.done(*words, "--out", "one.html")
    monkeypatch.setattr(sys.modules["lmkbc.report.run_page"], "PART", 20)
    command.done(*words, "--out", "many.html")
    one, many = ((tmp_path / name).read_text(encoding="utf-8") for name in ("one.html", "many.html"))
    assert (one.count('class="part"'), many.count('class="part"')) == (1, 15)
    script = r"<script.*?</script>"
    assert re.sub(script, "", one, flags=re.DOTALL).split() == re.sub(script, "", many, flags=re.DOTALL).split()
    whole, parts = map(held, (one, many))
    assert [row[:7] for row in whole["rows"]] == [row[:7] for row in parts["rows"]]
    assert whole["entities"] == parts["entities"]
    assert set(map(str, whole["traces"])) == set(map(str, parts["traces"]))


def test_only_the_best_of_many_dropped_objects_are_in_the_page_and_all_are_counted(
    command: Command, tmp_path: Path
) -> None:
    query = {"SubjectEntity": "Peru", "Relation": hostile.RELATIONS[0]}
    hostile.lines(tmp_path / "gold.jsonl", [{**query, "ObjectEntities": ["Chile"], "ObjectEntitiesID": ["Q298"]}])
    (tmp_path / "run").mkdir()
    hostile.lines(tmp_path / "run" / "predictions.jsonl", [{**query, "ObjectEntitiesID": []}])
    some = [{"object": f"n{place}", "score": 0.9 - place / 1000, "id": f"Q{place + 1}"} for place in range(300)]
    hostile.lines(tmp_path / "run" / "candidates.jsonl.gz", [{**query, "candidates": some, "pooled": True}])
    command.done("report", "run", "--edition", "mini", "--gold", "gold.jsonl")
    page = (tmp_path / "run" / "report.html").read_text(encoding="utf-8")
    (row,) = held(page)["rows"]
    assert (row[4][3], len(row[8]), row[8][0][0]) == (300, 100, "n0")
    assert "missed: proposed, not kept" in [held(page)["errors"][place] for place in range(8) if row[5] >> place & 1]
    if figures.drawable():
        assert "wrong (299)" in page


@pytest.mark.parametrize("name", ["candidates.jsonl.gz", "replies.jsonl.gz"])
def test_a_file_of_a_run_that_lost_its_content_is_damaged_and_not_absent(
    command: Command, tmp_path: Path, name: str
) -> None:
    run, gold, _ = hostile.run(tmp_path, 1)
    (run / name).write_bytes(b"")
    assert name in command.fails("report", run, "--gold", gold)


def errors(
    command: Command, candidates: list[dict[str, Any]], kept: list[str], gold: dict[str, str], *more: object
) -> set[str]:
    """Return the errors of one row, in the page's words; gold: id -> name."""
    query = {"SubjectEntity": "s", "Relation": "CountryBordersCountry"}
    Path("run").mkdir(exist_ok=True)
    row = {**query, "ObjectEntities": [*gold.values()], "ObjectEntitiesID": [*gold]}
    hostile.lines(Path("gold.jsonl"), [row])
    hostile.lines(Path("run/predictions.jsonl"), [{**query, "ObjectEntitiesID": kept}])
    hostile.lines(Path("run/candidates.jsonl.gz"), [{**query, "candidates": candidates, "pooled": True}])
    command.done("report", "run", "--edition", "mini", "--gold", "gold.jsonl", *more)
    content = held(Path("run/report.html").read_text(encoding="utf-8"))
    return {name for place, name in enumerate(content["errors"]) if content["rows"][0][5] >> place & 1}


def candidate(name: str, identifier: str) -> dict[str, Any]:
    return {"object": name, "score": 0.5, "id": identifier}


MISSED, ABSTAINED, WRONG = "missed: never proposed", "wrong abstention", "wrong object kept"


@pytest.mark.usefixtures("undrawn")
@pytest.mark.whole(but=["kept0-gold0-candidates0-wanted0", "kept3-gold3-candidates3-wanted3"])
@pytest.mark.parametrize(
    ("kept", "gold", "candidates", "wanted"),
    [
        (["Q1"], {"Q1": "one"}, [candidate("one", "Q1")], set()),
        ([], {}, [], set()),
        ([], {"Q1": "one"}, [], {MISSED, ABSTAINED}),
        ([], {"Q1": "one"}, [candidate("one", "Q1")], {"missed: proposed, not kept", ABSTAINED}),
        (["Q2"], {"Q1": "One"}, [candidate("one", "Q2")], {MISSED, "wrong link", WRONG}),
        (["Q2"], {}, [candidate("two", "Q2")], {"answered, where gold is empty"}),
        (["Q1", "Q2", "Q3"], {"Q1": "one"}, [], {WRONG, "over-long list"}),
    ],
)
def test_a_row_says_what_went_wrong(
    command: Command, kept: list[str], gold: dict[str, str], candidates: list[dict[str, Any]], wanted: set[str]
) -> None:
    assert errors(command, candidates, kept, gold) == wanted


def test_predict_writes_the_page_where_gold_is_known(command: Command, tmp_path: Path) -> None:
    for split in ("val", "test"):
        command.done(*"predict --edition mini --system prior --offline --report --out".split(), split, "--split", split)
    (page,) = tmp_path.glob("*/report.html")  # of val alone
    assert "report.html" not in (tmp_path / "val" / "manifest.json").read_text()
    assert re.findall(r'"#relation=.*?<td class="n">20</td><td class="n">(.*?)</td>', page.read_text("utf-8")) == [
        "–",
        "0.040",
        *["–"] * 6,
    ]  # none where nothing is kept


def test_the_page_of_a_comparison_is_escaped(command: Command, tmp_path: Path) -> None:
    run, gold, _ = hostile.run(tmp_path, 9)
    other = tmp_path / "<b>other"
    other.write_bytes((run / "predictions.jsonl").read_bytes())
    made = tmp_path / "compare.html"
    command.done("compare", run, other, "--gold", gold, "--html", made)
    assert "<b>" not in made.read_text(encoding="utf-8")


def test_a_comparison_has_names_beside_ids_and_colours_where_it_is_significant(
    command: Command, tmp_path: Path
) -> None:
    run, gold, _ = hostile.run(tmp_path, 30)
    command.done("compare", run, gold, "--gold", gold, "--html", "compare.html")
    page = (tmp_path / "compare.html").read_text(encoding="utf-8")
    assert "object 2 (Q502)" in page  # a wrong object, which gold does not name
    differences = re.findall(r'<td class="n (\w*)">([-+][0-9.]+)</td>', page)
    assert len(differences) == 3  # two relations and the average
    assert {side for side, _ in differences} == {"right"}


@pytest.mark.usefixtures("undrawn")
@pytest.mark.parametrize("model", ["SmolLM2-135M-Instruct", "other-8b"])
def test_the_page_names_the_model_that_was_asked(
    command: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, model: str
) -> None:
    """Beside the recipe's, where another one was asked in its place."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "t.json").write_text("{}")
    words = ("--edition", "mini", "--split", "val", "--system", "few-shot", "--limit", 2, "--search-table", "t.json")
    with Loopback() as server:
        command.done("predict", *words, "--base-url", server.url, "--model", model, "--out", "run", "--report")
    page = (tmp_path / "run" / "report.html").read_text()
    assert f"question: {model}, as the recipe words it" in page
    assert {one[0] for row in held(page)["rows"] for one in row[13]} == {f"question: {model}, as the recipe words it"}
    assert ("was asked in place of SmolLM2-135M-Instruct" in page) == (model == "other-8b")


@pytest.mark.usefixtures("undrawn")
def test_models_within_each_that_another_replaced_are_named(
    command: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    table = {"component": "chat", "each": [{"model": "first-1b"}, {"model": "second-2b"}]}
    recipe_file(tmp_path / "mine.toml", table)
    words = ("--edition", "mini", "--split", "val", "--limit", 2, "--report")
    with Loopback() as server:
        command.done(
            "predict", *words, "--system", "mine.toml", "--base-url", server.url, "--model", "other-8b", "--out", "run"
        )
    page = (tmp_path / "run" / "report.html").read_text()
    assert "other-8b was asked in place of first-1b; other-8b was asked in place of second-2b" in page
