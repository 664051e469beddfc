"""The commands as a user runs them: tables, JSON, files, and one sentence for bad input."""

import json
from pathlib import Path
from typing import Any

import pytest
import tiny_causal
import tiny_masked
from command import Command
from small import give_mini
from transformers import T5Config, T5ForConditionalGeneration

from lmkbc.probe.controls import controls

SCHEMA = """
[relations.in]
name = "in"
templates = ["{subject} is in {object}.", "{object} holds {subject}."]
topic = "places"
transitive = true
"""


def test_controls(command: Command, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    give_mini(tmp_path, "CountryBordersCountry", 10)
    made = list[Any]()

    def once(*given: Any, **how: Any) -> Any:
        made.extend([] if made else [controls(*given, **how)])
        return made[0]

    monkeypatch.setattr("lmkbc.probe.controls.controls", once)  # here it is about what is shown of them
    words = ("probe", "controls", "--edition", "mini", "--system", "prior", "--no-tune", "--offline")
    words += ("-r", "CountryBordersCountry", "--limit", "3")
    printed, _ = command.done(*words, "--json")
    table = json.loads(printed)
    assert (table["system"], list(table["relations"])) == ("prior", ["CountryBordersCountry"])
    assert table["overall"]["queries"] == 3
    printed, _ = command.done(*words)
    assert "F1, LM-KBC mini, val, untuned" in printed
    assert "naive-bayes" in printed
    assert "*** Average ***" in printed


def capitals(root: Path, broken: str = "") -> Path:
    folder = root / "KAMEL" / "P36"
    folder.mkdir(parents=True)
    for split in ("train", "test"):
        rows = [json.dumps({"sub_label": f"{split} {n}", "obj_label": [f"{split} town {n}"]}) for n in range(8)]
        (folder / f"{split}.jsonl").write_text("\n".join([broken, *rows] if broken else rows))
    return root / "KAMEL"


def test_kamel_as_a_user_reads_it(tmp_path: Path, command: Command) -> None:
    source = capitals(tmp_path, broken='{"sub_label": "x", "obj_label": [}')
    tiny_causal.save(tmp_path / "gpt2", "gpt2")
    templates = tmp_path / "templates.csv"
    templates.write_text("P36,What rules [S]?\n")
    words = ["probe", "kamel", source, "--model", tmp_path / "gpt2", "--shots", 1, "--limit", 3]
    words += ["--templates", templates, "--store", tmp_path / "s.sqlite", "--out", tmp_path / "out.jsonl"]
    printed, told = command.done(*words)
    assert told.count("skipped P36/") == 2
    assert "1 random shots: 3 queries of 1 property, test" in told
    assert len((tmp_path / "out.jsonl").read_text().splitlines()) == 3
    for shown in (
        "published, labels only",
        "stripped, labels only",
        "by number of gold answers",
        "LAMA's",
        "literals",
        "paper: OPT-13b, 10 shots, labels only",
        "paper: majority object",
        "naive Bayes of train",
        "what no control answers",
    ):
        assert shown in printed
    assert "replaces nothing" in command.fails(*words)
    printed, _ = command.done(*words[:-2], "--json")
    tables = json.loads(printed)
    assert set(tables) > {f"{way}{labels}" for way in ("published", "stripped") for labels in ("", ", labels only")}
    assert tables["majority of train"]["overall"]["count"] == 1
    assert (tables["stripped"]["kinds"], tables["stripped"]["properties"]["P36"]["count"]) == ({"P36": "entity"}, 3)


def test_kamel_asks_for_a_table_of_years_only_what_has_years(tmp_path: Path, command: Command) -> None:
    source = capitals(tmp_path)
    folder = source / "P569"
    folder.mkdir()
    for split in ("train", "test"):
        rows = [json.dumps({"sub_label": f"{split} {n}", "obj_label": [f"19{n}0"]}) for n in range(8)]
        (folder / f"{split}.jsonl").write_text("\n".join(rows))
    tiny_causal.save(tmp_path / "gpt2", "gpt2")
    words = ["probe", "kamel", source, "--model", tmp_path / "gpt2", "--shots", 1, "--limit", 3, "--table", "years"]
    printed, told = command.done(*words, "--store", tmp_path / "s.sqlite")
    assert "3 queries of 1 property" in told
    assert [line.split()[0] for line in printed.splitlines()] == ["Years:", "property", "P569", "***"]
    assert "no property asked about belongs into the table years" in command.fails(*words, "--properties", "P36")


def test_own_triples_become_data_that_kamel_asks(tmp_path: Path, command: Command) -> None:
    (tmp_path / "t.tsv").write_text("".join(f"land {n}\tP36\ttown {n}\n" for n in range(9)) + "x\tP36\tx\n")
    words = ["probe", "kamel-build", tmp_path / "t.tsv", "--out", tmp_path / "own"]
    printed, told = command.done(*words, "--train", 5, "--dev", 1, "--test", 2)
    assert "8 queries of 1 property" in told
    assert [line.split()[-4:] for line in printed.splitlines()[1:]] == [
        ["0", "10", "10", "1"],
        ["1", "9", "9", "1"],
        ["0", "9", "9", "1"],
        ["0", "9", "9", "1"],
        ["1", "8", "8", "1"],
    ]
    tiny_causal.save(tmp_path / "gpt2", "gpt2")
    asked = ["probe", "kamel", tmp_path / "own", "--model", tmp_path / "gpt2", "--shots", 1]
    _, told = command.done(*asked, "--store", tmp_path / "s.sqlite", "--table", "overall")
    assert "2 queries of 1 property, test" in told


def test_lamas_facts_beside_kamels(tmp_path: Path, command: Command) -> None:
    source, lama = capitals(tmp_path), tmp_path / "lama"
    (lama / "TREx").mkdir(parents=True)
    (lama / "relations.jsonl").write_text('{"relation": "P36", "template": "[X] is ruled from [Y] ."}')
    (lama / "TREx" / "P36.jsonl").write_text('{"sub_label": "France", "obj_label": "Paris"}')
    tiny_causal.save(tmp_path / "gpt2", "gpt2")
    words = ["probe", "kamel", source, "--model", tmp_path / "gpt2", "--shots", 1, "--limit", 3]
    words += ["--table", "lama-facts", "--store", tmp_path / "s.sqlite"]
    printed, told = command.done(*words)
    assert "LAMA's facts are not asked" in told
    assert [line.split()[0] for line in printed.splitlines()[2:]] == ["KAMEL's", "paper:", "paper:"]
    printed, told = command.done(*words, "--lama", lama, "--out", tmp_path / "out.jsonl")
    assert "3 queries of 1 property, test, and 1 of LAMA" in told
    assert "LAMA's facts are not asked" not in told
    assert printed.count("\nLAMA's facts") == 1
    rows = [json.loads(line) for line in (tmp_path / "out.jsonl").read_text().splitlines()]
    assert [row["facts"] for row in rows] == ["KAMEL"] * 3 + ["LAMA"]


def test_kamel_refuses_in_one_sentence(tmp_path: Path, command: Command) -> None:
    source, templates = capitals(tmp_path), tmp_path / "templates.csv"
    templates.write_text("P47,What borders [S]?\n")
    config = T5Config(vocab_size=100, d_model=16, d_kv=8, d_ff=16, num_layers=1, num_heads=2)
    T5ForConditionalGeneration(config).save_pretrained(tmp_path / "t5")
    tiny_masked.save(tmp_path / "bert")
    for arguments, message in (
        (("--model", tmp_path / "bert"), "is of type BertForMaskedLM, which does not continue a text"),
        (("--model", tmp_path / "t5"), "is of type encoder-decoder, which does not continue a text"),
        (("--model", tmp_path / "none"), "is no model directory"),
        (("--model", "x", "--templates", templates), "P36 has no question template"),
        (("--model", "x", "--properties", "P36,P9999"), "KAMEL has no test split of 'P9999'"),
        (("--model", "x", "--split", "dev"), "no dev split of 'P36'"),
        (("--model", "x", "--split", "train"), "'train' is not one of 'test', 'dev'"),
        (("--model", "x", "--form", "chatt"), "'chatt' is not one of 'chat'"),
        (("--model", tmp_path / "bert", "--shots", "9"), "too few for 9 shots"),
    ):
        told = command.fails("probe", "kamel", source, *arguments)
        assert (message in told, told.count("\n")) == (True, 1), told


def test_kmir_refuses_in_one_sentence(tmp_path: Path, command: Command) -> None:
    triples, schema, out = tmp_path / "t.tsv", tmp_path / "s.toml", tmp_path / "out"
    for rows, written, message in (
        ("a\tinn\tb\n", SCHEMA, "triple 1: the schema lacks relation 'inn'; did you mean 'in'"),
        ("a\tin\tb\n", SCHEMA.replace('name = "in"', "name = 3"), "relations.in.name"),
        ("a\tin\tb\nc\tin\tb\n", SCHEMA, "no statement of 'in' can be made false"),
        ("a\tin\tb\n", SCHEMA.replace("templates = [", 'templates = []\naspect = "x" # ['), "has no templates"),
    ):
        triples.write_text(rows)
        schema.write_text(written)
        told = command.fails("probe", "kmir", "build", triples, "--schema", schema, "--out", out)
        assert (message in told, told.count("\n")) == (True, 1), told
        assert not out.exists()
