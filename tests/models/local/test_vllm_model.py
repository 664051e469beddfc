"""Behind vLLM's interface a model answers as it does by transformers."""

import sys
from pathlib import Path
from typing import Any

import pytest
import tiny_causal
import tiny_vllm
from tiny_vllm import LLM, MODEL, TOKENIZER

from lmkbc.errors import InputError
from lmkbc.generate.access import StepModel, open_model
from lmkbc.models.local.decode import Decoding
from lmkbc.models.local.model import CausalModel
from lmkbc.models.local.vllm_model import VllmModel, engine
from lmkbc.models.plain_questions import texts
from lmkbc.models.reference import ModelReference
from lmkbc.notes import Notes
from lmkbc.run.run import ModelRun

PROMPTS = [f"Rome, borders: Vatican City\n{subject}, borders:" for subject in ("Peru", "São Tomé", "Chad")]


@pytest.fixture
def installed(monkeypatch: pytest.MonkeyPatch) -> None:
    tiny_vllm.install(monkeypatch)


@pytest.fixture
def model(installed: None) -> VllmModel:
    return VllmModel(LLM("tiny"), MODEL, TOKENIZER)


@pytest.mark.parametrize("how", [Decoding(max_tokens=6), Decoding(max_tokens=9, stops=("e",), draws=2, logprobs=True)])
def test_draws_are_those_of_the_other_back_end(model: VllmModel, how: Decoding) -> None:
    told = dict(model.complete(PROMPTS, how))
    expected = dict(CausalModel(MODEL, TOKENIZER).complete(PROMPTS, how))
    assert told.keys() == expected.keys()
    for place, draws in told.items():
        for draw, other in zip(draws, expected[place], strict=True):
            assert (draw.text, draw.finished, draw.tokens) == (other.text, other.finished, other.tokens)
            assert [text for text, _ in draw.logprobs] == [text for text, _ in other.logprobs]
            assert [log for _, log in draw.logprobs] == pytest.approx([log for _, log in other.logprobs], abs=1e-4)
    assert model.usage.completion_tokens == sum(draw.tokens for draws in told.values() for draw in draws)
    assert model.usage.prompt_tokens == sum(map(len, model.encode(PROMPTS)))


def test_options_score_as_by_the_other_back_end(model: VllmModel) -> None:
    options = [[" Chile", " Brazil", ""], [" none"], [" Libya", " " + "x" * 64]]
    told = model.log_probabilities(PROMPTS, options)
    expected = CausalModel(MODEL, TOKENIZER).log_probabilities(PROMPTS, options)
    expected[2][1] = float("-inf")  # the engine's window is shorter
    assert [len(row) for row in told] == [3, 1, 2]
    for row, other in zip(told, expected, strict=True):
        assert row == pytest.approx(other, abs=1e-4)


def test_prompts_beyond_the_window_are_not_asked(model: VllmModel) -> None:
    told = dict(model.complete(["x" * 64, "x" * 60, ""], Decoding(max_tokens=8)))
    assert [told[place][0].text for place in (0, 2)] == [None, None]
    assert told[1][0].tokens <= 4
    with pytest.raises(InputError, match="hidden states are not read by vLLM"):
        model.states(["x"], 1.0)


def test_the_engine_reads_safetensors_alone_in_the_type_that_was_chosen(installed: None, tmp_path: Path) -> None:
    made = engine(ModelReference(model=str(tmp_path)), str(tmp_path), MODEL, offline=True).made
    assert made["load_format"] == "safetensors"
    assert (made["dtype"], made["trust_remote_code"], made["model"]) == ("float32", False, str(tmp_path))


@pytest.mark.parametrize("settings", [{"quantise": "4bit"}, {"device": "cpu"}])
def test_what_the_engine_cannot_follow_is_refused(installed: None, settings: dict[str, Any]) -> None:
    with pytest.raises(InputError, match="leave device and quantise out"):
        engine(ModelReference(model="tiny", **settings), "tiny", MODEL, offline=False)


def test_without_vllm_the_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "vllm", None)
    with pytest.raises(InputError, match=r"install lmkbc\[vllm\]"):
        engine(ModelReference(model="tiny"), "tiny", MODEL, offline=False)


def test_a_run_asks_vllm_where_told_to_and_keeps_its_answers_apart(installed: None, tmp_path: Path) -> None:
    tiny_causal.model("llama").save_pretrained(tmp_path / "tiny")
    TOKENIZER.save_pretrained(tmp_path / "tiny")
    reference = StepModel(model=str(tmp_path / "tiny"))
    answers, keys = [], []
    for backend in ("local", "vllm"):
        run = ModelRun(backend=backend, servers={"store": str(tmp_path / "store.sqlite"), "base_url": "http://x"})
        opened = open_model(reference, run, Notes(), completion=True)
        answers.append(texts(opened, PROMPTS[:1], 5))
        keys.append(opened.identity)  # type: ignore[attr-defined]
        assert isinstance(opened.model, VllmModel) == (backend == "vllm")  # type: ignore[attr-defined]
    assert answers[0] == answers[1]
    assert keys[1] == f"{keys[0]}+vllm"
    assert run.computed["tiny"] == {"engine": "vllm 0", "device": "cpu", "dtype": "float32"}
