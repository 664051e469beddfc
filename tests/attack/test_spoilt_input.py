"""Input that was spoilt on its way, drawn at random: a sentence or a result, and never a traceback."""

from __future__ import annotations

import io
import json
import random
import zipfile
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest
from forge import ROOT, Ended, Forge
from memory import measured
from places import Places
from test_hostile_text import run

GOLD = ROOT / "eval" / "mini" / "val.jsonl"
MINI: Sequence[object] = ("--edition", "mini", "--split", "val")
RECORDED = 'description = "r"\n[[generate]]\ncomponent = "recorded"\n[select]\nrule = "cutoff"\nthreshold = 0.5\n'
READERS: dict[str, Callable[[Path, Path], Sequence[object]]] = {
    "evaluate": lambda file, _: ["evaluate", file, *MINI],
    "gold": lambda file, _: ["evaluate", GOLD, "--gold", file, "--edition", "mini"],
    "submit": lambda file, folder: ["submit", file, *MINI, "--out", folder / "o.zip"],
    "--from": lambda file, folder: predict(folder, "--from", file),
    "--system": lambda file, folder: ["predict", *MINI, "--system", toml(file, folder), "--out", folder / "o"],
    "--search-table": lambda file, folder: ["link", GOLD, "--edition", "mini", "--search-table", file, "--offline"],
    "link build": lambda file, folder: ["link", "build", folder / "i.sqlite", "--dump", file],
    "subjects": lambda file, folder: [
        "build",
        "--subjects",
        file,
        "--system",
        "prior",
        "--out",
        folder / "kb",
        *MINI[:2],
    ],
}
DEPTH = 100_000
NESTS = (("[", "]"), ('{"a":', "}"), ('[{"a":', "}]"))
ROWS = ("%s", '{"SubjectEntity": %s}', '{"SubjectEntity": "a", "Relation": "r", "ObjectEntities": [%s]}')
BETWEEN = ("", " ", ",", "\t", "\r", "\x0b", "\x00", "\u2028", ";", "}{")
UNSEEN = "\r\n\t\x00\x1b\x7f\xa0\u202e\u2066\u200b :[]"
"""Characters that no web address holds at any place, so that none becomes the address of another machine."""
HERE = "http://127.0.0.1:9/v1"
ADDRESSES = ("https://../x", "http://[::", HERE, "https://a..b/x", "https://", "http://127.0.0.1:99999")
SOURCE = """
[source]
licence = "MIT"
credit = "somebody"
[[source.files]]
url = %s
format = "templates"
"""


def predict(folder: Path, *more: object) -> Sequence[object]:
    recipe = folder / "recorded.toml"
    recipe.write_text(RECORDED)
    return ["predict", *MINI, "--system", recipe, "--out", folder / "o", *more]


def toml(file: Path, folder: Path) -> Path:
    """The same file under a name that recipes have."""
    named = folder / "huge.toml"
    named.symlink_to(file)
    return named


def told(forge: Forge, places: Places, folder: Path, *words: object, **variables: str) -> Ended:
    """How a command ended; where it failed, by one error."""
    environment = places.environment(folder) | variables
    ended = forge.run(words, environment, timeout=120)
    errors = [line for line in ended.err.splitlines() if line.startswith("error: ")]
    assert ended.code in (0, 1, 2), ended.err[:2000]
    assert len(errors) == (1 if ended.code else 0), ended.err[:2000]
    assert "Traceback" not in ended.err, ended.err[:2000]
    return ended


def readers(forge: Forge, places: Places, folder: Path, file: Path) -> None:
    """Give a file to every command that takes rows of predictions."""
    mini = ["--edition", "mini", "--data", places.data, "--split", "val"]
    for words in (["evaluate", file], ["submit", file, "--out", "o.zip"], ["predict", "--from", file, "--out", "o"]):
        told(forge, places, folder, *words, *mini)


def spoilt(text: str, draw: random.Random, characters: str = UNSEEN) -> str:
    """A text with characters put in at random places."""
    for _ in range(draw.randint(1, 3)):
        at = draw.randint(0, len(text))
        text = text[:at] + draw.choice(characters) + text[at:]
    return text


@pytest.mark.parametrize("artefact", ["lost", "changed", "names"])
def test_a_zip_whose_bytes_are(forge: Forge, places: Places, tmp_path: Path, artefact: str, seed: int) -> None:
    """Lost or changed anywhere, or in its heads, which are small; or a member's name is no text."""
    draw, buffer = random.Random(f"{artefact} {seed}"), io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as zipped:
        zipped.writestr("predictions_é.jsonl", (places.data / "mini" / "val.jsonl").read_bytes())
    whole = bytearray(buffer.getvalue())
    at = draw.randrange(draw.choice([len(whole), 60, 160]))
    at = draw.choice([at, len(whole) - 1 - at])
    if artefact == "lost":
        del whole[at : at + draw.randint(1, 9)]
    elif artefact == "changed":
        for place in (at, *draw.sample(range(len(whole)), draw.randint(0, 3))):
            whole[place] = draw.randrange(256)
    else:
        whole = whole.replace("é".encode(), bytes([draw.randrange(128, 192), draw.randrange(128, 256)]))
    (tmp_path / "p.zip").write_bytes(whole)
    readers(forge, places, tmp_path, tmp_path / "p.zip")


def test_two_rows_on_a_line(forge: Forge, places: Places, tmp_path: Path, seed: int) -> None:
    draw = random.Random(seed)
    rows = (places.data / "mini" / "val.jsonl").read_text(encoding="utf-8").splitlines()
    at = draw.randrange(len(rows) - 1)
    rows[at : at + 2] = [rows[at] + draw.choice(BETWEEN) + rows[draw.choice([at, at + 1])]]
    (tmp_path / "p.jsonl").write_text("\n".join(rows) + "\n", encoding="utf-8")
    readers(forge, places, tmp_path, tmp_path / "p.jsonl")


@pytest.mark.listed
@pytest.mark.parametrize("reader", READERS)
def test_deep_json(forge: Forge, places: Places, tmp_path: Path, reader: str, seed: int) -> None:
    draw = random.Random(f"{reader} {seed}")
    opens, closes = draw.choice(NESTS)
    deep = opens * DEPTH + draw.choice(["", "1" + closes * DEPTH])
    file = tmp_path / draw.choice(["deep.json", "deep.jsonl"])
    file.write_text(draw.choice(["", '{"name": "a"}\n']) + draw.choice(ROWS) % deep + "\n")
    told(forge, places, tmp_path, *READERS[reader](file, tmp_path))


def test_addresses_and_keys(forge: Forge, places: Places, tmp_path: Path, seed: int) -> None:
    """In the environment, or typed; what is typed is shown so that it steers no terminal, and a key is never shown."""
    draw = random.Random(seed)
    mini = ["--edition", "mini", "--data", places.data, "--split", "val", "--limit", "1"]
    asked = ["predict", *mini, "--system", places.chat(), "--out", "o"]
    key = spoilt("sk-canary-5be1", draw, UNSEEN + "é\U0001f469").replace("\x00", "é")
    inherited, typed = (spoilt(HERE, draw).replace("\x00", "\u202e") for _ in range(2))
    assert told(forge, places, tmp_path, *asked, OPENAI_BASE_URL=inherited).code
    assert told(forge, places, tmp_path, *asked, OPENAI_BASE_URL=HERE + "\r").code == 1, "nothing listens there"
    ended = told(forge, places, tmp_path, *asked, "--base-url", HERE, OPENAI_API_KEY=key)
    assert (ended.code > 0, "5be1" in ended.err, key in ended.err) == (True, False, False), ended.err
    run(forge, places, tmp_path, *asked, "--base-url", typed, codes=[1, 2])


def test_sources_that_cannot_be_fetched(forge: Forge, places: Places, tmp_path: Path, seed: int) -> None:
    draw = random.Random(seed)
    recipe = tmp_path / "r.toml"
    for url in (ADDRESSES[0], spoilt(draw.choice(ADDRESSES), draw)):
        recipe.write_text(places.chat().read_text() + SOURCE % json.dumps(url, ensure_ascii=False), encoding="utf-8")
        assert told(forge, places, tmp_path, "systems", "fetch", recipe).code


def test_recorded_answers_of_any_size_take_little_memory(tmp_path: Path) -> None:
    """40 MB of completions, of which one block of lines is in memory at a time."""
    file, text = tmp_path / "c.jsonl", "thought " * 5_000
    with file.open("w") as rows:
        for line in GOLD.read_text(encoding="utf-8").splitlines():
            row = json.loads(line)
            head = {"SubjectEntity": row["SubjectEntity"], "Relation": row["Relation"]}
            rows.write(json.dumps(head | {"completions": [f"<think>{text}</think>Chad"] * 7}) + "\n")
    words = predict(tmp_path, "--from", file, "--no-report")
    code, shown, peak = measured("from lmkbc.cli import main\nmain()", *words)
    assert (code, file.stat().st_size > 40 << 20, peak < 200) == (0, True, True), (peak, shown)
