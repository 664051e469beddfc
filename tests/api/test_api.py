"""Python callers use the public names, and each verb on files and on data in memory, with nothing printed."""

import asyncio
import importlib
import json
import pkgutil
import shutil
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from loopback import Loopback
from space import SPACE

import lmkbc

ROOT = Path(__file__).resolve().parents[2]
MINI = ROOT / "eval" / "mini"
VAL = [json.loads(line) for line in (MINI / "val.jsonl").read_text().splitlines()]
RELATION = VAL[0]["Relation"]
GOLD = {(row["SubjectEntity"], row["Relation"]): row["ObjectEntitiesID"] for row in VAL}


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two predictions files of mini's val split: a good one, and one that is wrong in every other row."""
    folder = tmp_path_factory.mktemp("api")
    for name, step in (("good", 7), ("bad", 2)):
        rows = [
            row | {"ObjectEntitiesID": ["Q1"] if at % step == 0 else row["ObjectEntitiesID"]}
            for at, row in enumerate(VAL)
        ]
        (folder / f"{name}.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    return folder


@pytest.fixture(autouse=True)
def _silent(capfd: pytest.CaptureFixture[str]) -> Any:
    yield
    assert capfd.readouterr() == ("", "")


def test_every_public_name_is_there_and_is_listed_once() -> None:
    assert len(set(lmkbc.__all__)) == len(lmkbc.__all__)
    assert {name for name in lmkbc.__all__ if getattr(lmkbc, name).__doc__} == set(lmkbc.__all__)
    assert sorted(lmkbc.__all__) == dir(lmkbc)
    with pytest.raises(AttributeError, match="has no attribute 'nothing'"):
        _ = lmkbc.nothing  # type: ignore[attr-defined]


def test_rooms_do_not_take_the_place_of_verbs() -> None:
    rooms = [room.name for room in pkgutil.iter_modules(lmkbc.__path__) if room.name in lmkbc.__all__]
    assert {"ask", "report", "tune"} <= {*rooms}
    for room in rooms:
        importlib.import_module(f"lmkbc.{room}")
    assert [name for name in lmkbc.__all__ if isinstance(getattr(lmkbc, name), ModuleType)] == []


def test_a_file_is_scored_as_the_command_does_it(files: Path) -> None:
    scores = lmkbc.score(files / "good.jsonl", MINI / "val.jsonl", "mini")
    assert 0.8 < scores.f1 < 1
    assert (scores.f1, scores.p, scores.r) == (scores.overall.f1, scores.overall.p, scores.overall.r)
    assert lmkbc.score(files / "good.jsonl", edition="mini", split="dev").f1 == scores.f1
    assert {*scores.relations["relation"]} == {*SPACE.edition("mini").relations}  # so that a mean is one
    assert scores.relations["f1"].mean() == pytest.approx(scores.f1)
    assert scores.rows.height == len(VAL)
    assert scores.rows["f1"].mean() == pytest.approx(sum(row.f1 for _, row in scores.evaluation.table.rows) / len(VAL))
    assert repr(scores).startswith("<Scores LM-KBC mini: macro-F1 0.")


def test_answers_in_memory_score_as_their_file(files: Path) -> None:
    import polars as pl

    rows = [json.loads(line) for line in (files / "bad.jsonl").read_text().splitlines()]
    by_query = {(row["SubjectEntity"], row["Relation"]): row["ObjectEntitiesID"] for row in rows}
    frame = pl.DataFrame(
        [{name: row[name] for name in ("SubjectEntity", "Relation", "ObjectEntitiesID")} for row in rows]
    )
    expected = lmkbc.score(files / "bad.jsonl", edition="mini", split="val").f1
    for given in (rows, by_query, frame):
        assert lmkbc.score(given, edition="mini").f1 == expected
        assert lmkbc.score(given, GOLD, "mini").f1 == expected
    assert lmkbc.score(files / "bad.jsonl", GOLD, "mini").f1 == expected


def test_odd_rows_in_memory_are_counted_as_those_of_a_file(files: Path) -> None:
    rows = [json.loads(line) for line in (files / "good.jsonl").read_text().splitlines()]
    odd = [*rows, rows[0], rows[-1] | {"SubjectEntity": "nobody"}]
    assert lmkbc.score(odd, edition="mini").evaluation.remarks == "1 unknown, 1 repeated"
    with pytest.raises(lmkbc.InputError, match=r"predictions: 0 missing, 1 unknown, 1 repeated and 0 malformed rows"):
        lmkbc.score(odd, edition="mini", strict=True)
    with pytest.raises(lmkbc.InputError, match=r"predictions, row 160, .* is answered otherwise than in row 0"):
        lmkbc.score([*rows, rows[0] | {"ObjectEntitiesID": ["Q2"]}], edition="mini")
    spoilt = lmkbc.score([rows[0] | {"ObjectEntitiesID": [5]}, *rows[1:]], edition="mini")
    assert spoilt.evaluation.remarks == "1 malformed"


def test_a_part_is_scored_alone(files: Path) -> None:
    whole = lmkbc.score(files / "bad.jsonl", edition="mini")
    part = lmkbc.score(files / "bad.jsonl", edition="mini", relation=RELATION)
    assert part.f1 == whole.evaluation.table.relations[RELATION].f1
    assert lmkbc.score(GOLD, GOLD, "mini", relation=[RELATION]).f1 == 1.0
    own = SPACE.relation(RELATION).name
    first = lmkbc.score(files / "bad.jsonl", edition="mini", relation=own, limit=4)
    assert first.overall.rows == 4
    assert first.evaluation.unknown == 0


@pytest.mark.parametrize(
    ("given", "told"),
    [
        ({"relation": "borders"}, "edition mini asks for no relation 'borders'"),
        ({"limit": 0}, "limit is 0"),
        ({"profile": "old"}, "has no metric profile 'old'"),
        ({"split": "test"}, "has no gold"),
        ({"gold": {}}, "the gold has no query"),
        ({"gold": [{"SubjectEntity": "x"}]}, "gold, row 0: lacks Relation, a column of edition mini"),
        ({"edition": "2031"}, "unknown edition"),
    ],
)
def test_what_cannot_be_scored_is_one_sentence(files: Path, given: dict[str, Any], told: str) -> None:
    with pytest.raises(lmkbc.InputError) as error:
        lmkbc.score(files / "good.jsonl", **{"edition": "mini"} | given)
    assert told in str(error.value)


def test_runs_of_another_split_or_spelling_are_named_as_such(files: Path, tmp_path: Path) -> None:
    train = [json.loads(line) for line in (ROOT / "eval" / "mini" / "train.jsonl").read_text().splitlines()]
    (tmp_path / "t.jsonl").write_text("".join(json.dumps(row) + "\n" for row in train))
    told = "t.jsonl answers train of edition mini, not val of mini: name edition mini and split train"
    with pytest.raises(lmkbc.InputError, match=told):
        lmkbc.compare(files / "good.jsonl", tmp_path / "t.jsonl", edition="mini")
    with pytest.raises(lmkbc.InputError, match=told):
        lmkbc.score(tmp_path / "t.jsonl", edition="mini")
    rows = [row | {"SubjectEntity": row["SubjectEntity"] + "\xa0"} for row in VAL]
    (tmp_path / "s.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    made = lmkbc.compare(files / "good.jsonl", tmp_path / "s.jsonl", edition="mini")
    assert (made.split, made.comparisons[0].overall.second, made.remarks) == ("val", pytest.approx(1.0), [])


def test_relations_by_other_names_are_scored_named_and_give_the_edition_away(
    files: Path, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    rows = [row | {"Relation": " country borders" if row["Relation"] == RELATION else row["Relation"]} for row in VAL]
    (tmp_path / "w.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    found = lmkbc.score(tmp_path / "w.jsonl")
    assert (found.edition.name, found.f1, found.evaluation.remarks) == ("mini", 1.0, "")
    told = f"w.jsonl: relations read by other names, ' country borders' as {RELATION}; the official script finds none"
    assert told in caplog.text
    made = lmkbc.compare(files / "good.jsonl", tmp_path / "w.jsonl")
    assert (made.edition.name, made.comparisons[0].overall.second, made.remarks) == ("mini", pytest.approx(1.0), [])


def test_runs_are_compared_and_shown(files: Path, tmp_path: Path) -> None:
    made = lmkbc.compare(files / "bad.jsonl", files / "good.jsonl", edition="mini")
    assert made.verdicts[0].startswith("good.jsonl is better than bad.jsonl")
    assert made.table.height == len(SPACE.edition("mini").relations) + 1
    assert {"relation", "difference", "low", "high", "corrected", "won", "lost", "significant"} <= {*made.table.columns}
    assert "good.jsonl" in made.write(tmp_path / "compare.html").read_text()
    one = lmkbc.compare(files / "bad.jsonl", files / "good.jsonl", edition="mini", relation=RELATION)
    assert list(one.comparisons[0].relations) == [RELATION]
    with pytest.raises(lmkbc.InputError, match="two runs at least"):
        lmkbc.compare(files / "bad.jsonl", edition="mini")


def test_a_page_is_written_of_a_part(files: Path, tmp_path: Path) -> None:
    steps: list[str] = []
    page = lmkbc.report(
        files / "good.jsonl", tmp_path / "page.html", edition="mini", relation=RELATION, limit=3,
        progress=lambda step, done, total: steps.append(step),
    )  # fmt: skip
    assert page.size == page.path.stat().st_size
    assert steps
    assert page._repr_html_().startswith('<a href="file:///')


def test_tuning_checks_what_it_is_given_before_anything_is_asked(files: Path, tmp_path: Path) -> None:
    space = tmp_path / "space"
    for name in ("relations", "eval", "thresholds"):
        shutil.copytree(ROOT / name, space / name, ignore=shutil.ignore_patterns("bench"))
    options: dict[str, Any] = {"edition": "mini", "system": "prior", "workspace": space}
    for given, told in (
        ({"rules": ["foo"]}, "rule 'foo' cannot be tuned"),
        ({"folds": 1}, "at least 2 folds"),
        ({"relation": "x"}, "asks for no relation 'x'"),
        ({"system": "none.toml"}, "none.toml does not exist"),
    ):
        with pytest.raises(lmkbc.InputError, match=told):
            lmkbc.tune(**options | given, progress=lambda step, *_: pytest.fail(f"{step} was begun"))
    tuning = lmkbc.tune(**options, trials=0, rules=["cutoff", "top-k"])
    assert tuning.path == space / "thresholds" / "mini" / "prior.toml"
    assert tuning.f1 == tuning.tuned.cv_macro_f1
    assert tuning.relations["relation"].to_list() == sorted(SPACE.edition("mini").relations)
    assert "of prior on LM-KBC mini, val" in repr(tuning)
    written = tuning.path.read_bytes()
    part = lmkbc.tune(**options, trials=0, rules=["cutoff"], relation=RELATION, limit=20)
    assert (part.path, list(part.tuned.relations)) == (None, [RELATION])
    assert tuning.path.read_bytes() == written


def test_a_base_is_built_and_its_tables_are_read(tmp_path: Path) -> None:
    (tmp_path / "subjects.csv").write_text("name,class\nChad,country\nMali,country\n<b>Nile,river\n")
    (tmp_path / "search.json").write_text('{"Libya": "Q1016"}')
    answer = {"SubjectEntity": "Chad", "Relation": "CountryBordersCountry", "completions": ["['Libya']"]}
    (tmp_path / "answers.jsonl").write_text(json.dumps(answer))
    options: dict[str, Any] = {"edition": "mini", "files": [tmp_path / "answers.jsonl"], "offline": True}
    options["search_table"] = tmp_path / "search.json"
    borders: dict[str, Any] = options | {"relation": "country-borders"}
    for _ in range(2):  # the second goes on, and changes nothing
        base = lmkbc.build(tmp_path / "subjects.csv", tmp_path / "kb [1]", **borders)
        facts = base.facts.select("subject", "relation", "object", "object_id").collect().rows()
        assert facts == [("Chad", "country-borders", "Libya", "Q1016")]
        assert base.missing.collect()["subject"].to_list() == ["Mali"]
        assert (base.failed, base.counts["queries"], base.nothing.collect().height) == (1, 2, 0)
        assert "kb [1]: 3 subjects, 2 queries, 1 facts" in base._repr_html_()
    empty: dict[str, Any] = {"edition": "mini", "system": "bl22-empty", "relation": "river-countries"}
    river = lmkbc.build(tmp_path / "subjects.csv", tmp_path / "rivers", **empty)
    assert river.facts.collect().is_empty()
    assert river.nothing.collect()["subject"].to_list() == ["<b>Nile"]
    assert river.facts.collect_schema() == base.facts.collect_schema()


def test_notebooks_show_no_markup_of_the_data() -> None:
    evil = {("<script>alert(1)</script>", RELATION): ["<img src=x onerror=alert(1)>"]}
    scores = lmkbc.score(evil, evil, "mini")
    for shown in (scores._repr_html_(), scores.rows._repr_html_()):
        assert "<script>alert" not in shown
        assert "<img" not in shown


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> lmkbc.PredictedRun:
    out = tmp_path_factory.mktemp("run") / "prior"
    return lmkbc.predict(split="val", edition="mini", system="prior", out=out)


def test_a_run_is_made_scored_compared_and_read_again(run: lmkbc.PredictedRun, tmp_path: Path) -> None:
    assert run.predictions.columns == ["SubjectEntity", "Relation", "objects"]
    assert run.predictions.height == len(VAL) == run.manifest["counts"]["queries"]
    assert set(run.candidates.columns) == {"SubjectEntity", "Relation", "object", "id", "score", "source"}
    assert run.candidates.height > run.predictions["objects"].list.len().sum()
    scores = run.evaluate()
    assert (
        scores.f1 == lmkbc.score(run.directory).f1 == lmkbc.score(run.directory / "predictions.zip", edition="mini").f1
    )
    assert scores.f1 == lmkbc.score(run.predictions, edition="mini", split="val").f1
    other = lmkbc.predict("val", edition="mini", system="bl22-empty", out=tmp_path / "empty")
    assert run.compare(other).comparisons[0].overall.second == pytest.approx(other.evaluate().f1)
    again = lmkbc.read_run(run.directory)
    assert (again.edition, again.split, again.evaluate().f1) == (run.edition, "val", scores.f1)
    assert run.report(tmp_path / "page.html").size > 10_000
    assert "prior on LM-KBC mini, val" in repr(again)
    assert "160 queries" in run._repr_html_()


def test_a_server_is_asked_where_a_loop_runs_already_as_in_a_notebook(tmp_path: Path) -> None:
    async def cell(url: str) -> lmkbc.PredictedRun:
        given = {"edition": "mini", "system": "few-shot", "model": "m", "base_url": url}
        return lmkbc.predict("val", limit=8, out=tmp_path / "run", store=tmp_path / "s.sqlite", **given)

    with Loopback(lambda _: '["Chile"]') as server:
        made = asyncio.run(cell(server.url))
    assert (made.predictions.height, server.served) == (8, 8)


def test_what_is_no_run_is_said(tmp_path: Path) -> None:
    with pytest.raises(lmkbc.InputError, match="is no directory"):
        lmkbc.read_run(tmp_path / "absent")
    with pytest.raises(lmkbc.InputError, match="dict is no run"):
        lmkbc.compare({}, {}, edition="mini")  # type: ignore[arg-type]
