"""Usage of a local run: `timing.json` against a count by hand, for answers, closed lists, verdicts and stored ones."""

import json
import re
from pathlib import Path
from typing import Any

import pytest
import tiny_causal
import torch
from command import Command
from opened import asks, recipe_of
from space import MINI, RELATIONS, SPACE, TRAIN

from lmkbc.ask.builder import PromptBuilder
from lmkbc.generate.access import step_model
from lmkbc.local import decode as decode_module
from lmkbc.local.local_model import LocalModel
from lmkbc.local.model import CausalModel
from lmkbc.models.answers import Store
from lmkbc.models.base import Prompt
from lmkbc.models.plain_questions import texts
from lmkbc.models.prefixes import groups
from lmkbc.plan import Plan
from lmkbc.run.pipeline import propose
from lmkbc.testing import Notes, Query, Run

TABLE = """description = "x"
[[generate]]
component = "causal"
model = "{model}"
prompt = {{ form = "completion", block = "{{{{ subject }}}}, {{{{ phrase }}}}:" }}
shots = {{ k = 2 }}
sampling = {{ max_tokens = 9, samples = 2, temperature = 1.0 }}
[select]
rule = "cutoff"
threshold = 0.5
"""
QUERIES = SPACE.queries(MINI, "val")[:6]
ASKS = {"prompt": {"form": "completion", "block": "{{ subject }}, {{ phrase }}:"}, "shots": {"k": 2}}


@pytest.fixture(autouse=True)
def _scripted(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every answer is a list of five bytes, and would go on."""
    script = tiny_causal.tokenizer()(' ["a"] and so')["input_ids"]
    monkeypatch.setattr(decode_module, "_pick", lambda _, rows, __: [script[len(row.tokens)] for row in rows])


def prompts(given: list[Query]) -> list[Prompt]:
    asking = PromptBuilder(MINI, RELATIONS, TRAIN, asks(ASKS), SPACE.relations)
    return [asking.prompt(query) for query in given]


def counted(model: CausalModel, texts: list[str]) -> tuple[int, int]:
    """Tokens of prompts, and how many of them are read once for several."""
    tokens = model.encode(texts)
    return sum(map(len, tokens)), sum(group.shared * (len(group.members) - 1) for group in groups(tokens))


def test_timing_json_tells_what_a_local_model_was_asked(command: Command, tiny: Path, tmp_path: Path) -> None:
    (tmp_path / "x.toml").write_text(TABLE.format(model=tiny))

    def timing() -> dict[str, Any]:
        words = ["predict", "--split", "val", "--edition", "mini", "--system", "x.toml", "--limit", "6"]
        command.done(*words, "--store", "s.sqlite", "--out", "run")
        used: dict[str, Any] = json.loads((tmp_path / "run" / "timing.json").read_bytes())["usage"]["causal"]
        return used

    model = CausalModel(tiny_causal.model("llama"), tiny_causal.tokenizer())
    read, shared = counted(model, [prompt.text for prompt in prompts(QUERIES)])
    expected = {
        "prompt_tokens": read,
        "completion_tokens": len(' ["a"]') * 2 * len(QUERIES),
        "calls": len(QUERIES),
        "from_store": 0,
        "saved_by_prefixes": shared,
        "saved_by_store": 0,
    }
    first = timing()
    assert first.pop("seconds") > 0
    assert first == expected
    assert shared > 0
    again = timing()
    again.pop("seconds")
    saved = read + expected["completion_tokens"]
    assert again == expected | {"from_store": 2 * len(QUERIES), "saved_by_store": saved}  # the first call's spending
    counts = json.loads((tmp_path / "run" / "manifest.json").read_bytes())["counts"]
    assert sum(counts["draws"].values()) == 2 * len(QUERIES)


def used(tiny: Path, tmp_path: Path, **settings: Any) -> dict[str, Any]:
    run = Run(workspace=SPACE, edition=MINI, servers={"store": tmp_path / "s.sqlite"})
    recipe, steps = recipe_of({"component": "causal", "model": str(tiny), **ASKS, **settings}, name="x"), list[str]()
    found = propose(Plan.of(run, recipe), QUERIES, lambda step, *_: steps.append(step))
    counts = map(int, re.findall(r"\(queries, (\d+) answers", " ".join(steps)))
    usage: dict[str, Any] = found.usage["causal"] | {"told": max(counts, default=0)}
    return usage


def test_closed_lists_and_verdicts_are_counted(tiny: Path, tmp_path: Path) -> None:
    closed = used(tiny, tmp_path, ranking={"max": 5, "calibration": "nothing"})
    model = CausalModel(tiny_causal.model("llama"), tiny_causal.tokenizer())
    assert closed["calls"] == len(QUERIES)
    assert closed["prompt_tokens"] == counted(model, [prompt.text for prompt in prompts(QUERIES)])[0]
    again = used(tiny, tmp_path, ranking={"max": 5, "calibration": "nothing"})
    assert (again["calls"], again["from_store"]) == (0, len(QUERIES))
    assert (closed["told"], again["told"]) == (len(QUERIES), 0)
    assert again["saved_by_store"] == again["prompt_tokens"] == closed["prompt_tokens"]
    plain = used(tiny, tmp_path)
    judged = used(tiny, tmp_path, verify={"variants": ["statement"]})
    assert judged["from_store"] == plain["calls"]  # the answers; the verdicts are new
    assert (plain["told"], judged["told"]) == (len(QUERIES), judged["calls"])
    assert judged["calls"] > 0


def test_a_blank_draw_comes_again_and_is_not_asked_again(
    tiny: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is no answer, and the same model would write it again."""
    end = tiny_causal.tokenizer().eos_token_id
    monkeypatch.setattr(decode_module, "_pick", lambda _, rows, __: [end for _ in rows])
    first, again = used(tiny, tmp_path), used(tiny, tmp_path)
    assert first["calls"] == again["from_store"] == len(QUERIES)
    assert again["calls"] == 0


def test_a_step_s_own_questions_are_counted_where_it_says(tmp_path: Path) -> None:
    model, notes, other = CausalModel(tiny_causal.model("llama"), tiny_causal.tokenizer()), Notes(), Notes()
    store = Store(tmp_path / "s.sqlite")
    scorer = LocalModel(model, "m", store=store, notes=notes)
    texts(LocalModel(model, "m", store=store, notes=other), ["elsewhere"], 4)
    texts(scorer, ["Peru", "Chile"], 4)
    texts(scorer, ["Peru"], 4)
    assert {name: notes.usage[name] for name in ("calls", "prompt_tokens", "from_store", "saved_by_store")} == {
        "calls": 2,
        "prompt_tokens": 4 + 5 + 4,
        "from_store": 1,
        "saved_by_store": 4 + 4,
    }
    assert other.usage["calls"] == 1
    store.close()


def test_generators_of_one_name_are_told_of_together(tiny: Path, tmp_path: Path) -> None:
    run = Run(workspace=SPACE, edition=MINI, servers={"store": tmp_path / "s.sqlite"})
    table = {"component": "causal", "model": str(tiny), **ASKS}
    both = recipe_of(table, {**table, "shots": {"k": 1}}, name="x")
    assert propose(Plan.of(run, both), QUERIES).usage["causal"]["calls"] == 2 * len(QUERIES)


def test_a_run_says_in_what_its_model_computed(tiny: Path) -> None:
    run = Run(workspace=SPACE, edition=MINI, model=str(tiny))
    step_model({"component": "causal"}).open(run, Notes())
    assert run.computed[tiny.name] == {
        "device": "cpu",
        "dtype": "float32",
        "instructions": torch.backends.cpu.get_cpu_capability(),
        "threads": torch.get_num_threads(),
    }
