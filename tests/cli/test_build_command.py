"""`lmkbc build`: from a file of subjects to a base that polars and DuckDB read, as its page of documentation says."""

import json
import re
from pathlib import Path
from typing import Any

import duckdb
import polars as pl
import pytest
from command import Command
from loopback import Loopback

ROOT = Path(__file__).resolve().parents[2]
PAGE = "".join((ROOT / "docs" / name).read_text(encoding="utf-8") for name in ("build.md", "export.md"))
SUBJECTS = """id,name,class
Q657,Chad,country
,"Lake ""Chad"",
the old one",Q23397
Q912,Mali,country
Q937,Albert Einstein,Q5
Q1339,Johann Sebastian Bach,composer
"""


@pytest.fixture
def run(command: Command) -> Command:
    Path("subjects.csv").write_text(SUBJECTS)
    least = "--least", "0.1"  # of the class prior, few facts are surer
    return command.under("build", "--subjects", "subjects.csv", "--edition", "mini", "--system", "prior", *least)


def test_a_base_is_built_of_what_fits_each_class_and_once(run: Command, tmp_path: Path) -> None:
    assert (
        "asked nothing, since no relation is of their class: 1 of 5 subjects, first 'Q23397'"
        in run.done("--out", "kb")[1]
    )
    facts = pl.read_parquet("kb/facts")
    nothing = pl.read_parquet("kb/nothing")
    asked = pl.concat([facts.select("subject", "relation"), nothing.select("subject", "relation")]).unique()
    assert set(asked.filter(subject="Chad")["relation"]) == {"country-borders", "country-languages"}
    assert "place-of-death" in set(asked.filter(subject="Albert Einstein")["relation"])
    players = asked.filter(relation="instrument")["subject"].to_list()
    assert players == ["Johann Sebastian Bach"]
    assert json.loads(Path("kb/manifest.json").read_text())["counts"]["subjects"] == 5
    assert str(tmp_path) not in Path("kb/manifest.json").read_text()
    again = {path: path.read_bytes() for path in Path("kb").rglob("*") if path.is_file()}
    assert run("--out", "kb")[0] == 0
    assert {path: path.read_bytes() for path in Path("kb").rglob("*") if path.is_file()} == again
    assert "edition mini asks for no relation 'spouse'" in run.fails("--out", "kb", "--relation", "spouse")
    assert "other inputs, which differ in relations" in run.fails("--out", "kb", "--relation", "instrument")
    assert "no subject is of a class that the relations ask about" in run.fails(
        "--out", "other", "--relation", "river-countries"
    )
    assert not Path("other").exists()


def test_facts_that_are_not_sure_enough_are_counted_and_kept_counted(command: Command, tmp_path: Path) -> None:
    Path("subjects.csv").write_text(SUBJECTS)
    prior = command.under("build", "--subjects", "subjects.csv", "--edition", "mini", "--system", "prior", "--out")

    def counts(name: str) -> dict[str, int]:
        made: dict[str, int] = json.loads(Path(name, "manifest.json").read_text())["counts"]
        return made

    _, told = prior.done("all", "--least", "0")
    assert "left out" not in told
    _, told = prior.done("some", "--least", "0.3")
    assert counts("some")["below_least"] == counts("all")["facts"] - counts("some")["facts"] > 0
    sentence = (
        f"some: {counts('some')['below_least']} facts left out, since the confidence is below 0.3; a build into a new "
        "directory with --least 0 has all of them\n"
    )
    assert sentence in told
    assert sentence in prior.done("some", "--least", "0.3")[1]  # read again, not made again
    first, last = SUBJECTS.rsplit("Q1339", 1)
    Path("subjects.csv").write_text(first)
    prior.done("some-and-more", "--least", "0.3")
    Path("subjects.csv").write_text(f"id,name,class\nQ1339{last}")
    prior.done("some-and-more", "--least", "0.3", "--add")
    assert counts("some-and-more") == counts("some")


def test_a_dry_build_counts_and_writes_nothing(run: Command, tmp_path: Path) -> None:
    asked = "--model", "m", "--base-url", "http://localhost:1", "--store", "s.sqlite", "--dry-run", "--grow", "1"
    _, told = run.done("--out", "kb", "--system", "minimal23", *asked)
    assert "nothing was asked, and nothing written" in told
    assert "what --grow asks beyond the first level is not counted" in told
    assert [path.name for path in tmp_path.iterdir()] == ["subjects.csv"]


def queries(language: str) -> list[str]:
    return re.findall(rf"```{language}\n(.*?)```", PAGE, flags=re.DOTALL)


def test_a_limit_ends_a_build_cleanly_and_a_higher_one_goes_on(command: Command) -> None:
    Path("lands.csv").write_text("name\n" + "".join(f"Land {number}\n" for number in range(9)))
    Path("chat.toml").write_text(
        'description = "A server is asked."\n[[generate]]\ncomponent = "chat"\nmodel = "stand-in"\n'
        'sampling = { temperature = 0.0, max_tokens = 10 }\n[select]\nrule = "cutoff"\nthreshold = 0.5\n'
    )
    with Loopback() as server:
        asked = "build", "--subjects", "lands.csv", "--edition", "mini", "--relation", "country-borders"
        run = command.under(*asked, "--system", "chat.toml", "--base-url", server.url, "--grow", 1, "--out", "kb")
        _, ended = run.done("--max-tokens", 600)
        assert f"--max-tokens is reached: {9 - server.served} of 9 queries were not asked" in ended
        assert "it ended by: --max-tokens is reached" in ended
        missing = pl.read_parquet("kb/missing/*.parquet")
        assert [*missing["reason"].unique()] == ["--max-tokens is reached"]
        assert "not asked" not in run.done()[1]
        assert not [*Path("kb/missing").glob("*")]


def test_a_reply_that_cannot_be_read_is_counted_and_does_not_end_a_build(
    command: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    command.done("init", "firms", "--relation", "founded:date", "--relation", "owner:entity")
    monkeypatch.chdir(tmp_path / "firms")
    Path("subjects.csv").write_text("name\nAcme\nBolt\n")
    rows = [
        ("Acme", "founded", "vor 2005"),
        ("Bolt", "founded", "1999"),
        ("Acme", "owner", "A"),
        ("Bolt", "owner", "B"),
    ]
    replies = [{"SubjectEntity": s, "Relation": r, "model": "m", "completions": [text] * 3} for s, r, text in rows]

    def given(count: int) -> None:
        Path("own.jsonl").write_text("".join(json.dumps(reply) + "\n" for reply in replies[:count]))

    run = command.under("build", "--subjects", "subjects.csv", "--from", "own.jsonl")
    given(4)
    told = run.done("--out", "kb")[1]
    assert "1 of 4 queries failed, which is no empty answer: kb/missing lists them" in told
    assert "replies to 1 (founded 1) cannot be read" in told
    assert pl.read_parquet("kb/facts").height == 3
    assert [*pl.read_parquet("kb/missing/*.parquet")["reason"]] == ["unparsed"]
    told = run.fails("--out", "kb3", "--relation", "founded", "--limit", "1", status=1)
    assert "error: 1 of 1 queries failed" in told  # no reply at all can be read
    given(2)
    told = run.fails("--out", "kb2", status=1)
    assert "error: 3 of 4 queries failed" in told
    assert told.rstrip().endswith("give answers to these with one more --from, and name a new directory")
    Path("more.jsonl").write_text("".join(json.dumps(reply) + "\n" for reply in replies[2:]))
    assert "1 of 4 queries failed" in run.done("--from", "more.jsonl", "--out", "kb4")[1]


@pytest.mark.parametrize("answers", ['{"subject": "Peru", "objects": ["Chile"]}\n', '{"Peru": ["Chile"]}\n'])
def test_answers_of_a_script_that_name_no_relation_are_of_the_one_that_is_built(
    command: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, answers: str
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("own.jsonl").write_text(answers)
    Path("s.csv").write_text("name\nPeru\n")
    build = ("build", "--subjects", "s.csv", "--edition", "mini", "--from", "own.jsonl", "--out", "kb", "--untuned")
    command.done(*build, "--relation", "country-borders")
    assert [*pl.read_parquet("kb/facts")["object"]] == ["Chile"]
    assert "asks for no relation 'borders'" in command.fails(*build, "--relation", "borders")


def test_the_page_s_queries_run_on_a_base(run: Command, command: Command) -> None:
    assert run("--out", "kb", "--grow", "1", "--budget", "9")[0] == 0
    sql, python, sparql = queries("sql"), queries("python"), queries("sparql")
    assert len(sql) >= 3
    names: dict[str, Any] = {}
    for code in python:
        exec(compile(code, "docs/build.md", "exec"), names)
    rows = [duckdb.sql(query).fetchall() for query in sql]
    found = [json.loads(command.done("query", "kb", query, "--least", "0", "--json")[0]) for query in sparql]
    assert all((*rows, *found))
    items = [pair for pair in found[1] if all("/entity/Q" in str(value) for value in pair.values())]
    assert len(rows[2]) == len(items)


def test_the_page_tells_of_every_column_and_option(run: Command) -> None:
    run.done("--out", "kb")
    parts = [part for part in Path("kb").rglob("*.parquet") if part.relative_to("kb").parts[0] != "replies"]
    assert {"facts", "entities"} <= {part.relative_to("kb").parts[0] for part in parts}
    for name in {name for part in parts for name in pl.read_parquet_schema(part)}:
        assert f"`{name}`" in PAGE, name
    for name in (
        "--relation",
        "--limit",
        "--grow",
        "--budget",
        "--novelty",
        "--grow-by",
        "--precision",
        "--known",
        "--least",
    ):
        assert name in PAGE, name


def test_a_dry_run_shows_what_a_build_would_send_about_its_first_queries(command: Command, tmp_path: Path) -> None:
    subjects = tmp_path / "subjects.csv"
    subjects.write_text("name\nPeru\nChile\n")
    asked = ("--subjects", subjects, "--out", "kb", "--edition", "mini", "--relation", "country-borders")
    words = ("build", *asked, "--system", "few-shot", "--model", "m", "--base-url", "http://localhost:1")
    out, _ = command.done(*words, "--dry-run", "--show", "1")
    assert "land border with Peru?" in out
    assert "land border with Chile?" not in out
    assert "add --dry-run" in command.fails(*words, "--show", "1")


def test_a_precision_is_of_the_relations_of_the_subjects(command: Command) -> None:
    Path("lmkbc.toml").touch()
    command.done("tune", "--edition", "mini", "--split", "val", "--system", "prior", "--trials", "0")
    Path("rivers.csv").write_text("name,class\nRhine,river\n")
    Path("lands.csv").write_text("name,class\nMali,country\n")
    rivers = command.under("build", "--subjects", "rivers.csv", "--edition", "mini", "--system", "prior")
    lands = command.under("build", "--subjects", "lands.csv", "--edition", "mini", "--system", "prior")
    told = rivers.fails("--out", "kb", "--precision", "0.9", status=1)
    assert re.findall(r"(\w+): [.\d]+ at recall", told) == ["RiverBasinsCountry"]
    assert not Path("kb").exists()
    first = rivers.done("--out", "kb", "--precision", "best:0.1")[1]
    assert "promised by 1 of 1 relation;" in first
    of_lands = lands.done("--out", "other", "--precision", "best:0.1")[1]
    both = lands.done("--out", "kb", "--precision", "best:0.1", "--add")[1]
    found = [re.findall(r"at precision ([.\d]+), promised by \d of (\d)", told)[0] for told in (first, both, of_lands)]
    assert found[0][0] == found[1][0] != found[2][0]  # an addition has the precision of its base
    assert [count for _, count in found] == ["1", "3", "2"]
