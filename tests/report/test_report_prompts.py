"""What a page tells of the questions: prompts as recorded or as worded, models, tokens and cost."""

from __future__ import annotations

import json
from pathlib import Path

import hostile
from command import Command

from lmkbc.report.prompts import asked_in

CHAT = {"component": "chat", "model": "m", "prompt": {"ask": "<script> {subject}"}, "shots": {"k": 2}}


def page(command: Command, folder: Path, generate: list[object], *words: object) -> str:
    run, gold, _ = hostile.run(folder, 8)
    manifest = {"edition": "mini", "split": "val", "recipe": {"generate": generate}, "models": ["m"]}
    (run / "manifest.json").write_text(json.dumps(manifest))
    usage = {"a": {"prompt_tokens": 3000, "completion_tokens": 21, "cost": 0.25}, "b": {"prompt_tokens": 1}}
    (run / "timing.json").write_text(json.dumps({"seconds": 1.5, "usage": usage}))
    command.done("report", run, "--gold", gold, *words)
    return (run / "report.html").read_text(encoding="utf-8")


def test_a_recipe_s_prompts_are_shown_per_relation_and_escaped(command: Command, tmp_path: Path) -> None:
    made = page(command, tmp_path, [CHAT, {"component": "prior"}])
    for name in hostile.RELATIONS:
        assert made.count(f"<summary>{name}</summary>") == 1
    assert "m, as the recipe words it; subject: subject 000" in made
    assert made.count("&lt;script&gt; subject 000") == len(hostile.RELATIONS)
    assert made.count("<script") == 3


def test_tokens_and_cost_stand_at_the_top(command: Command, tmp_path: Path) -> None:
    made = page(command, tmp_path, [{"component": "prior"}])
    assert "<dt>tokens</dt><dd>3,022</dd>" in made
    assert "<dt>cost</dt><dd>0.2500</dd>" in made
    assert 'id="prompts"' not in made


def test_recorded_prompts_and_tokens_come_first(command: Command, tmp_path: Path) -> None:
    query = {"SubjectEntity": "subject 001", "Relation": hostile.RELATIONS[0], "model": "gpt", "completions": ["x"]}
    rows = [
        {**query, "prompt": "one <b>"},
        {**query, "prompt": "two"},
        {**query, "SubjectEntity": "elsewhere", "prompt": "three"},
    ]
    hostile.lines(tmp_path / "asked.jsonl", rows)
    found = asked_in([tmp_path / "asked.jsonl"], {("subject 001", hostile.RELATIONS[0])})
    assert found.models == ("gpt",)
    made = page(command, tmp_path, [CHAT], "--from", tmp_path / "asked.jsonl")
    assert "gpt, as recorded; subject: subject 001" in made
    assert "one &lt;b&gt;</pre>" in made
    assert made.count("as the recipe words it") == 1  # of the relation that no file tells of
