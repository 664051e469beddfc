"""Behind vLLM's interface a model answers as it does by transformers. The engine here has vLLM's names and shapes.

It is no vLLM: it reads every prompt alone and in full. What it takes and returns was compared with vLLM 0.32 once.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest
import tiny_causal
import torch

from lmkbc.errors import InputError
from lmkbc.generate.access import StepModel, open_model
from lmkbc.models.local.decode import Decoding
from lmkbc.models.local.model import CausalModel
from lmkbc.models.local.vllm_model import VllmModel, engine
from lmkbc.models.reference import ModelReference
from lmkbc.notes import Notes
from lmkbc.run.run import ModelRun

TOKENIZER = tiny_causal.tokenizer()
MODEL = tiny_causal.model("llama")
PROMPTS = [f"Rome, borders: Vatican City\n{subject}, borders:" for subject in ("Peru", "São Tomé", "Chad")]


@dataclass
class SamplingParams:
    n: int = 1
    temperature: float = 1.0
    top_p: float = 1.0
    top_k: int = 0
    repetition_penalty: float = 1.0
    seed: int | None = None
    max_tokens: int | None = 16
    stop: list[str] | None = None
    stop_token_ids: list[int] | None = None
    logprobs: int | None = None
    prompt_logprobs: int | None = None


class LLM:
    """Answers greedily by the tiny model; keeps how it was made."""

    def __init__(self, model: str, **how: Any) -> None:
        self.made = how | {"model": model}
        settings = SimpleNamespace(dtype=torch.float32, max_model_len=64)
        config = SimpleNamespace(model_config=settings, device_config=SimpleNamespace(device_type="cpu"))
        self.llm_engine = SimpleNamespace(vllm_config=config)

    def generate(
        self, prompts: Sequence[dict[str, list[int]]], sampling_params: Sequence[SamplingParams], use_tqdm: bool = True
    ) -> list[Any]:
        assert not use_tqdm
        pairs = zip(prompts, sampling_params, strict=True)
        return [self._answer(prompt["prompt_token_ids"], how) for prompt, how in pairs]

    def _answer(self, prompt: list[int], how: SamplingParams) -> Any:
        assert len(prompt) + (how.max_tokens or 0) <= 64
        told = None
        if how.prompt_logprobs is not None:
            told = [None, *(self._step(prompt[:end], prompt[end]) for end in range(1, len(prompt)))]
        tokens: list[int] = []
        steps, reason = [], "length"
        for _ in range(how.max_tokens or 0):
            tokens.append(int(self._logs([*prompt, *tokens]).argmax()))
            steps.append(self._step([*prompt, *tokens[:-1]], tokens[-1]))
            ended = tokens[-1] in (tiny_causal.EOS, *(how.stop_token_ids or ()))
            if ended or any(stop in TOKENIZER.decode(tokens) for stop in how.stop or ()):
                reason = "stop"
                break
        draw = SimpleNamespace(token_ids=tokens, finish_reason=reason, logprobs=None if how.logprobs is None else steps)
        return SimpleNamespace(outputs=[draw] * how.n, prompt_logprobs=told)

    def _logs(self, tokens: list[int]) -> torch.Tensor:
        with torch.inference_mode():
            return torch.log_softmax(MODEL(torch.tensor([tokens])).logits[0, -1], dim=-1)

    def _step(self, tokens: list[int], chosen: int) -> dict[int, Any]:
        return {chosen: SimpleNamespace(logprob=float(self._logs(tokens)[chosen]))}


@pytest.fixture
def installed(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    module = ModuleType("vllm")
    module.LLM, module.SamplingParams, module.__version__ = LLM, SamplingParams, "0"  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "vllm", module)
    for name in ("VLLM_LOGGING_LEVEL", "VLLM_NO_USAGE_STATS", "HF_HUB_OFFLINE"):
        monkeypatch.setenv(name, "1")  # so that what the engine sets is gone afterwards
    return module


@pytest.fixture
def model(installed: ModuleType) -> VllmModel:
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


def test_the_engine_reads_safetensors_alone_in_the_type_that_was_chosen(installed: ModuleType, tmp_path: Path) -> None:
    made = engine(ModelReference(model=str(tmp_path)), str(tmp_path), MODEL, offline=True).made
    assert made["load_format"] == "safetensors"
    assert (made["dtype"], made["trust_remote_code"], made["model"]) == ("float32", False, str(tmp_path))


@pytest.mark.parametrize("settings", [{"quantise": "4bit"}, {"device": "cpu"}])
def test_what_the_engine_cannot_follow_is_refused(installed: ModuleType, settings: dict[str, Any]) -> None:
    with pytest.raises(InputError, match="leave device and quantise out"):
        engine(ModelReference(model="tiny", **settings), "tiny", MODEL, offline=False)


def test_without_vllm_the_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "vllm", None)
    with pytest.raises(InputError, match=r"install lmkbc\[vllm\]"):
        engine(ModelReference(model="tiny"), "tiny", MODEL, offline=False)


def test_a_run_asks_vllm_where_told_to_and_keeps_its_answers_apart(installed: ModuleType, tmp_path: Path) -> None:
    tiny_causal.model("llama").save_pretrained(tmp_path / "tiny")
    TOKENIZER.save_pretrained(tmp_path / "tiny")
    reference = StepModel(model=str(tmp_path / "tiny"))
    answers, keys = [], []
    for backend in ("local", "vllm"):
        run = ModelRun(backend=backend, servers={"store": str(tmp_path / "store.sqlite"), "base_url": "http://x"})
        opened = open_model(reference, run, Notes(), completion=True)
        answers.append(opened.texts(PROMPTS[:1], max_tokens=5))
        keys.append(opened.identity)  # type: ignore[attr-defined]
        assert isinstance(opened.model, VllmModel) == (backend == "vllm")  # type: ignore[attr-defined]
    assert answers[0] == answers[1]
    assert keys[1] == f"{keys[0]}+vllm"
    assert run.computed["tiny"] == {"engine": "vllm 0", "device": "cpu", "dtype": "float32"}
