"""Labels of linked items beside the model's word, in tables, commands for Wikidata, pages and samples."""

import json
from hashlib import sha256
from pathlib import Path

import polars as pl
from bases import fact, written
from command import Command


def test_a_build_keeps_the_labels_that_the_index_knows_and_every_reader_shows_them(command: Command) -> None:
    Path("table.csv").write_text(
        "text,id,label\nHolland,Q55,Netherlands\nNetherlands,Q55,Netherlands\nFrance,Q142,France\n"
    )
    command.done("link", "build", "index", "--table", "table.csv")
    Path("subjects.csv").write_text("name,id,class\nBelgium,Q31,country\n")
    row = {"SubjectEntity": "Belgium", "Relation": "CountryBordersCountry", "model": "m"}
    Path("answers.jsonl").write_text(json.dumps(row | {"completions": ["Holland, France"]}) + "\n")
    build = ["build", "--edition", "mini", "--from", "answers.jsonl", "--out", "kb", "--subjects", "subjects.csv"]
    command.done(*build, "--relation", "country-borders", "--untuned", "--least", "0", "--index", "index")
    facts = pl.read_parquet("kb/facts/**/*.parquet").select("object", "object_id", "object_label").sort("object")
    assert facts.rows() == [("France", "Q142", "France"), ("Holland", "Q55", "Netherlands")]
    command.done("export", "kb", "--format", "csv", "--out", "kb.csv")
    assert pl.read_csv("kb.csv").sort("object")["object_label"].to_list() == ["France", "Netherlands"]
    Path("known.csv").write_text("subject,property,object\nQ1,P47,Q2\nQ31,P37,Q3\n")
    command.done(*"export kb --format quickstatements --unreviewed --known known.csv --out qs".split())
    batches = "".join(path.read_text() for path in Path("qs").glob("*.txt"))
    assert "Belgium - country-borders - Holland (Netherlands); m" in batches
    assert "Belgium - country-borders - France; m" in batches


def test_a_base_without_labels_still_opens(command: Command) -> None:
    folder = written(Path("kb"), [fact(0, "country-borders", "Holland", 0.9, object_id="Q55")])
    (part,) = folder.glob("facts/*/*.parquet")
    before, old = part.read_bytes(), pl.read_parquet(part, hive_partitioning=False).drop("object_label")
    old.write_parquet(part)
    manifest = folder / "manifest.json"
    hashes = [sha256(content).hexdigest() for content in (before, part.read_bytes())]
    table = json.loads(manifest.read_text().replace(*hashes))
    manifest.write_text(json.dumps({name: value for name, value in table.items() if name != "sha256"}))
    command.done("export", "kb", "--format", "csv", "--out", "kb.csv")
    assert pl.read_csv("kb.csv")["object_label"].to_list() == [None]
