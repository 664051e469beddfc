"""Hostile text through every output: files stay whole, and nothing that a command prints steers a terminal."""

import io
import json
import re
import zipfile
from collections.abc import Sequence
from pathlib import Path

import pytest
from forge import Ended, Forge
from loopback import Loopback
from places import EMBEDDED, ROOT, Places, tree

TEXTS = {
    "escape": "\x1b]0;owned\x07\x1b[2J\x1b[31mRome",
    "C1 escape": "\x9b31mRome",
    "right to left": "Rome\u202eemoR\u2066x\u2069",
    "lines": "Rome\r\nerror: all is well\n\u2028Paris\u2029\x0b\x0c\x85",
    "NUL": "Ro\x00me",
    "half a character": "Ro\ud800me",
    "both halves": "\ud83d\ude00 Rome",
    "megabyte": "Rome " * 200_000,
    "markup": "[red]Rome[/red] [link=file:///etc]x[/link] <script>alert(1)</script>",
    "formula": "=cmd|' /C calc'!A0",
    "JSON": '"}\n{"SubjectEntity": "x", "Relation": "y", "ObjectEntitiesID": []}',
    "path": "../../../etc/passwd",
    "template": "{subject} {mask} {0} %s ${HOME}",
    "marks": "R" + "\u0301" * 500 + "ome",
    "zero width": "\u200bRo\u200dme\ufeff",
    "emoji": "\U0001f469\u200d\U0001f4bb",
}
STEERING = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069]")


def tame(ended: Ended, *codes: int) -> Ended:
    """Say whether a text may be shown on a terminal as it is."""
    assert ended.code in (codes or (0, 1, 2)), ended.err[:2000]
    assert "Traceback" not in ended.err, ended.err[:2000]
    for shown in (ended.out, ended.err):
        found = STEERING.search(shown)
        assert found is None, f"{found[0]!r} in {shown[max(found.start() - 80, 0) : found.end() + 80]!r}"
    return ended


def text_of(name: str) -> str:
    """As it stands in JSON: half a character only as an escape."""
    return json.dumps(TEXTS[name])


def run(forge: Forge, places: Places, folder: Path, *argv: object, codes: Sequence[int] = ()) -> Ended:
    return tame(forge.run(argv, places.environment(folder), timeout=120), *codes)


def sound(folder: Path, rows: int) -> None:
    """The files of a run are what they are said to be."""
    files = tree(folder)
    lines = files["predictions.jsonl"].decode().split("\n")
    assert len(lines) == rows + 1
    assert all(json.loads(line) for line in lines[:-1])
    with zipfile.ZipFile(io.BytesIO(files["predictions.zip"])) as zipped:
        assert zipped.read("predictions.jsonl") == files["predictions.jsonl"]
    json.loads(files["manifest.json"])


@pytest.mark.listed
@pytest.mark.parametrize("name", TEXTS)
def test_hostile_answers(forge: Forge, places: Places, tmp_path: Path, name: str) -> None:
    out, store = tmp_path / "out", tmp_path / "store.sqlite"
    mini = ["--edition", "mini", "--data", places.data]
    with Loopback(lambda _: f'["Spain", {text_of(name)}, "Chile"]', keep=False) as server:
        asked = ["--system", places.chat(), "--base-url", server.url, "--store", store, "--split", "val", *mini]
        run(forge, places, tmp_path, "predict", *asked, "--out", out, codes=[0])
    sound(out, places.rows)
    run(
        forge,
        places,
        tmp_path,
        "predict",
        "--split",
        "val",
        "--from",
        out / "candidates.jsonl.gz",
        *mini,
        "--out",
        tmp_path / "b",
        codes=[0],
    )
    sound(tmp_path / "b", places.rows)
    for more in ([], ["--json", "--rows"]):
        run(forge, places, tmp_path, "evaluate", out / "predictions.jsonl", "--split", "val", *mini, *more, codes=[0])
    run(forge, places, tmp_path, "store", "stats", "--store", store, codes=[0])
    run(forge, places, tmp_path, "store", "export", "--store", store, codes=[0])


@pytest.mark.listed
@pytest.mark.whole
@pytest.mark.parametrize("name", TEXTS)
def test_hostile_files(forge: Forge, places: Places, tmp_path: Path, name: str) -> None:
    text = text_of(name)
    mini = tmp_path / "data" / "mini"
    mini.mkdir(parents=True)
    row = (
        f'{{"SubjectEntity": {text}, "Relation": "CountryBordersCountry", "ObjectEntities": [{text}], '
        '"ObjectEntitiesID": ["Q1"]}\n'
    )
    for split in ("train", "val", "test"):
        (mini / f"{split}.jsonl").write_text((places.data / "mini" / f"{split}.jsonl").read_text() + row)
    where = ["--edition", "mini", "--data", mini.parent]
    if (
        run(
            forge, places, tmp_path, "predict", "--system", "prior", "--split", "val", *where, "--out", tmp_path / "out"
        ).code
        == 0
    ):
        sound(tmp_path / "out", places.rows + 1)
        run(
            forge,
            places,
            tmp_path,
            "evaluate",
            tmp_path / "out" / "predictions.jsonl",
            *where,
            "--json",
            "--rows",
            codes=[0],
        )
    mine = tmp_path / "mine.jsonl"
    mine.write_text(
        f'{{"SubjectEntity": "x", "Relation": {text}, "ObjectEntities": [{text}], '
        f'"ObjectEntitiesID": [{text}], {text}: 1}}\n'
    )
    for command in ("evaluate", "submit"):
        run(forge, places, tmp_path, command, mine, *where, "--split", "val")
    run(forge, places, tmp_path, "predict", "--from", mine, *where, "--out", tmp_path / "c")


@pytest.mark.listed
@pytest.mark.whole
@pytest.mark.parametrize("name", [name for name in TEXTS if name not in ("megabyte", "NUL", "half a character")])
def test_hostile_words(forge: Forge, places: Places, tmp_path: Path, name: str) -> None:
    """On the command line, in recipes and in relation modules."""
    text = TEXTS[name].encode("utf-16", "surrogatepass").decode("utf-16")
    mini = ["--edition", "mini", "--data", places.data]
    for words in (
        ["link", "--explain", text, "--relation", "CountryBordersCountry", *mini, "--offline"],
        ["evaluate", text, *mini],
        ["predict", "--system", text, *mini],
        ["relations", "show", text],
        ["systems", "show", text],
        ["store", "prune", "--before", text, "--store", tmp_path / "s"],
        ["tune", "--rules", text, *mini, "--system", "prior", "--no-write"],
        [text],
    ):
        run(forge, places, tmp_path, *words)
    recipe = tmp_path / "own.toml"
    recipe.write_text(
        EMBEDDED.replace("The embedded default", "\\u001b[31m").strip() + f"\n[published]\n{json.dumps(text)} = 0.1\n"
    )
    for more in ([], ["--json"]):
        run(forge, places, tmp_path, "systems", "show", recipe, *more)
    workspace = places.workspace(tmp_path)
    (workspace / "relations").unlink()
    (workspace / "relations").mkdir()
    module = (ROOT / "relations" / "country_borders.py").read_text()
    module += f"from dataclasses import replace\nRELATION = replace(RELATION, definition={text!r})\n"
    (workspace / "relations" / "country_borders.py").write_text(module)
    for more in ([], ["--json"]):
        run(forge, places, tmp_path, "relations", "show", "CountryBordersCountry", "--workspace", workspace, *more)
