"""Input that was spoilt on its way, drawn at random: a sentence or a result, and never a traceback."""

import json
import random
from collections.abc import Sequence
from pathlib import Path

import pytest
from forge import ROOT, Ended, Forge
from memory import measured
from places import Places
from test_hostile_text import run

GOLD = ROOT / "eval" / "mini" / "val.jsonl"
MINI: Sequence[object] = ("--edition", "mini", "--split", "val")
RECORDED = 'description = "r"\n[[generate]]\ncomponent = "recorded"\n[select]\nrule = "cutoff"\nthreshold = 0.5\n'
UNSEEN = "\r\n\t\x00\x1b\x7f\xa0\u202e\u2066\u200b :[]"
"""Characters that no web address holds at any place, so that none becomes the address of another machine."""
HERE = "http://127.0.0.1:9/v1"


def predict(folder: Path, *more: object) -> Sequence[object]:
    recipe = folder / "recorded.toml"
    recipe.write_text(RECORDED)
    return ["predict", *MINI, "--system", recipe, "--out", folder / "o", *more]


def told(forge: Forge, places: Places, folder: Path, *words: object, **variables: str) -> Ended:
    """How a command ended; where it failed, by one error."""
    environment = places.environment(folder) | variables
    ended = forge.run(words, environment, timeout=120)
    errors = [line for line in ended.err.splitlines() if line.startswith("error: ")]
    assert ended.code in (0, 1, 2), ended.err[:2000]
    assert len(errors) == (1 if ended.code else 0), ended.err[:2000]
    assert "Traceback" not in ended.err, ended.err[:2000]
    return ended


def spoilt(text: str, draw: random.Random, characters: str = UNSEEN) -> str:
    """A text with characters put in at random places."""
    for _ in range(draw.randint(1, 3)):
        at = draw.randint(0, len(text))
        text = text[:at] + draw.choice(characters) + text[at:]
    return text


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


@pytest.mark.whole
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
