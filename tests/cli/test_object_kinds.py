"""A workspace whose relations have dates, addresses, identifiers and degrees: from replies to scores and exports."""

import json
from pathlib import Path

import pytest
from command import Command

RELATION = '''"""What it is."""
from lmkbc import EntityType, Relation
RELATION = Relation(
    name="{name}", names=("has_{name}",), property="{property}", subject_type=EntityType("country", "Q6256"),
    object_type=EntityType("thing", "Q35120"), kind="{kind}", may_be_empty=True, definition="The {name}.",
    clozes=("{{subject}} has {{mask}}.",), question="What is the {name} of {{subject}}?", triple="has",
    statement="{{subject}} has {{object}}.", {more}
)
'''
EDITION = '''"""What it is."""
from lmkbc import Edition
EDITION = Edition(
    name="mine", folder="mine", relations=("has_inception", "has_site", "has_code", "has_degrees"),
    splits=dict.fromkeys(("train", "val", "test")), column="ObjectEntities", target="string",
)
'''
RECIPE = """description = "Recorded."
[[generate]]
component = "recorded"
[select]
rule = "cutoff"
threshold = 0.1
"""
ROWS = [
    ("Chad", "inception", "It became independent on 11 August 1960.", "1960-08-11", "1960-08-11"),
    ("Mali", "inception", "c. 1960", "1960", "c. 1960"),
    ("Chad", "site", "[here](https://a.td/b,c)", "https://a.td/b,c", "https://a.td/b,c"),
    ("Mali", "site", "none", "", ""),
    ("Chad", "code", "007", "007", "007"),
    ("Mali", "code", "A, B and C", "A, B and C", "A, B and C"),
    ("Chad", "degrees", "32 °F", "0", "0"),
    ("Mali", "degrees", "5000", "-38.83", "5000"),
]


@pytest.fixture
def options(tmp_path: Path) -> tuple[object, ...]:
    """Write a workspace, and return the options that name it."""
    for name in ("relations", "eval/mine"):
        (tmp_path / name).mkdir(parents=True)
    kinds = {"inception": ("date", "P571"), "site": ("url", "P856"), "code": ("identifier", "P345")}
    kinds["degrees"] = ("number", "P2076")
    for name, (kind, number) in kinds.items():
        more = 'unit="°C", unit_id="Q25267"' if kind == "number" else ""
        written = RELATION.format(name=name, kind=kind, property=number, more=more)
        (tmp_path / "relations" / f"{name}.py").write_text(written)
    (tmp_path / "eval" / "mine.py").write_text(EDITION)
    gold = [(s, f"has_{r}", [[true]] if true else []) for s, r, _, true, _ in ROWS]
    lines = [json.dumps({"SubjectEntity": s, "Relation": r, "ObjectEntities": true}) for s, r, true in gold]
    for split in ("train", "val", "test"):
        (tmp_path / "eval" / "mine" / f"{split}.jsonl").write_text("\n".join(lines) + "\n")
    told = [
        {"SubjectEntity": s, "Relation": f"has_{r}", "model": "m", "completions": [text]} for s, r, text, _, _ in ROWS
    ]
    (tmp_path / "told.jsonl").write_text("".join(json.dumps(one) + "\n" for one in told))
    (tmp_path / "mine.toml").write_text(RECIPE)
    (tmp_path / "subjects.csv").write_text("id,name,class\nQ657,Chad,country\nQ912,Mali,country\n")
    return ("--workspace", ".", "--edition", "mine")


def test_kinds_of_objects_from_replies_to_exports(
    command: Command, options: tuple[object, ...], tmp_path: Path
) -> None:
    asked = (*options, "--system", "mine.toml", "--from", "told.jsonl", "--offline")
    command.done("predict", *asked, "--split", "val", "--out", "run")
    made = [json.loads(line) for line in (tmp_path / "run" / "predictions.jsonl").read_text().splitlines()]
    assert [one["ObjectEntities"] for one in made] == [[object_] if object_ else [] for *_, object_ in ROWS]
    scored = command.done("evaluate", "run/predictions.jsonl", *options, "--split", "val")[0]
    assert "*** Average ***  0.875  0.875  0.875" in scored
    command.done("build", *asked, "--subjects", "subjects.csv", "--least", "0", "--out", "kb")
    command.done("export", "kb", "--format", "ntriples", "--out", "kb.nt", "--least", "0")
    values = {line.split(" ", 2)[2] for line in (tmp_path / "kb.nt").read_text().splitlines()}
    xsd = "http://www.w3.org/2001/XMLSchema#"
    assert values == {
        f'"1960-08-11"^^<{xsd}date> .',
        f'"1960"^^<{xsd}gYear> .',
        "<https://a.td/b,c> .",
        '"007" .',
        '"A, B and C" .',
        f'"+0"^^<{xsd}decimal> .',
        f'"+5000"^^<{xsd}decimal> .',
    }
