"""Text and programs of other people: chat templates end within bounds, and no text leaves its comment in an export."""

from __future__ import annotations

import csv
import random
import re
import shutil
from pathlib import Path

import pytest
from bases import Base
from command import Command
from forge import Forge
from memory import measured
from places import CAUSAL, Places
from test_hostile_text import run

from lmkbc.types import Candidate, CandidateSet, Query, Source

MOST = 500
"""MB of memory that rendering may take at its peak, of this process and of the one that renders."""
SECONDS = 2.0
TEMPLATES = {
    "times": "{{ 'x' * HUGE }}",
    "list": "{{ [0, 1] * HUGE }}",
    "percent": "{{ '%HUGEd' % 1 }}",
    "zeros": "{{ '%0HUGEd' % 1 }}",
    "given width": "{{ '%*d' % (HUGE, 1) }}",
    "format": "{{ '{:>HUGE}'.format('x') }}",
    "pad": "{{ 'x'.center(HUGE) }}",
    "fill": "{{ 'x'.zfill(HUGE) }}",
    "filter": "{{ 'x' | center(HUGE) }}",
    "indent": "{{ {'a': 1} | tojson(indent=HUGE) }}",
    "words": "{{ lipsum(n=HUGE) }}",
    "replace": "{{ ('x' * MANY * SOME).replace('x', 'y' * MANY) }}",
    "loops": "{% for i in range(MANY) %}{% for j in range(MANY) %}{% endfor %}{% endfor %}",
    "doubling": "{% set n = namespace(x='x' * SOME) %}"
    "{% for i in range(SOME) %}{% set n.x = n.x ~ n.x %}{% endfor %}{{ n.x }}",
    "power": "{{ SOME ** SOME ** SOME ** SOME }}",
    "macro": "{% macro a(n) %}{{ a(n + SOME) }}{{ a(n) }}{% endmacro %}{{ a(0) }}",
    "brackets": "{{ BRACKETS }}",
}
"""HUGE, MANY, SOME stand for numbers that each try draws."""
AROUND = (("", ""), ("{% if messages %}", "{% endif %}"), ("{% for m in messages %}{{ m.content }}", "{% endfor %}"))
RENDER = f"""
import sys
from lmkbc.errors import InputError
from lmkbc.models.local import template
template._renderer = template.Renderer({SECONDS})
try:
    template.rendered(sys.stdin.read(), [{{"role": "user", "content": "Where?"}}], {{}})
except (InputError, ValueError) as error:
    print(error)
template._renderer.close()
"""
PIECES = ["*/", "|", "*|", "*", "/", "||", "/*", "\n", "\r", "\t", " ", "\x85", "\u2028", "\x0b", "Q1", "P31", '"', "é"]
STATEMENT = re.compile(r"Q\d+\tP47\tQ1016 /\* unchecked, for review: (.*) \*/")


def hostile(kind: str, seed: int) -> str:
    """A template without bounds, whose numbers are drawn."""
    draw = random.Random(f"{kind} {seed}")
    drawn = {"HUGE": (10**9, 2 * 10**9), "MANY": (60_000, 99_999), "SOME": (30, 99)}
    text = TEMPLATES[kind].replace("BRACKETS", "(" * draw.randint(10**4, 10**6))
    before, behind = draw.choice(AROUND)
    return before + re.sub("HUGE|MANY|SOME", lambda found: str(draw.randint(*drawn[found[0]])), text) + behind


@pytest.mark.listed
@pytest.mark.parametrize("kind", TEMPLATES)
def test_templates_without_bounds(kind: str, seed: int) -> None:
    text = hostile(kind, seed)
    status, said, peak = measured(RENDER, text=text)
    assert (status, said.count("\n")) == (0, 1), f"{text[:200]}: {said}"
    assert 0 < peak < MOST, f"{text[:200]} took {peak} MB"


@pytest.mark.whole
def test_a_model_s_template(forge: Forge, places: Places, tmp_path: Path, seed: int) -> None:
    """By the command: one sentence, exit status 2 or 1, and no run."""
    model = Path(shutil.copytree(places.causal, tmp_path / "model"))
    kind = random.Random(seed).choice(list(TEMPLATES))
    (model / "chat_template.jinja").write_text(hostile(kind, seed))
    recipe = tmp_path / "r.toml"
    recipe.write_text(CAUSAL.replace('"none"', f'"{model}"').replace('"completion", style = "triple"', '"chat"'))
    mini = ["--edition", "mini", "--data", places.data, "--split", "val"]
    ended = run(forge, places, tmp_path, "predict", *mini, "--system", recipe, "--out", tmp_path / "out", codes=[1, 2])
    assert [line.startswith("error: ") for line in ended.err.splitlines()].count(True) == 1, ended.err
    assert "chat template" in ended.err
    assert not (tmp_path / "out" / "predictions.jsonl").exists()


def test_texts_that_leave_their_comment(tmp_path: Path, command: Command, seed: int) -> None:
    draw = random.Random(seed)

    def text() -> str:
        return "x" + "".join(draw.choices(PIECES, k=draw.randint(1, 9))) + draw.choice("x*/|")

    def answer(query: Query) -> CandidateSet:
        return CandidateSet(query, (Candidate(text(), 0.9, (Source(text(), text()),), "Q1016"),))

    base = Base(tmp_path, [])
    with base.file.open("w", newline="") as file:
        csv.writer(file).writerows([("name", "id"), *((text(), f"Q{n}") for n in range(1, 41))])
    with pytest.MonkeyPatch.context() as patch:
        base.build(patch, answer, ("country-borders",))
    (tmp_path / "known.csv").write_text("subject,property,object\nQ1,P31,Q5\n")
    words = ["export", base.out, "--format", "quickstatements", "--known", "known.csv", "--out", "review"]
    status, _, told = command(*words)
    assert status == 0, told
    written = "".join(path.read_bytes().decode() for path in sorted((tmp_path / "review").glob("review-*.txt")))
    lines = written.splitlines()
    assert len(lines) == len(written.split("\n")) - 1 == 40
    for line in lines:
        found = STATEMENT.fullmatch(line)
        assert found, line
        assert not re.search(r"\*/|[|\t]", found[1]), line
