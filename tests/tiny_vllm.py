"""An engine with vLLM's names and shapes, over a tiny model.

It is no vLLM: it reads every prompt alone and in full. What it takes and returns was compared with vLLM 0.32 once.
"""

import sys
from collections.abc import Sequence
from dataclasses import dataclass
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest
import tiny_causal
import torch

TOKENIZER = tiny_causal.tokenizer()
MODEL = tiny_causal.model("llama")


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
            rows = self._logs(prompt)[:-1]
            told = [None, *(_step(logs, token) for logs, token in zip(rows, prompt[1:], strict=True))]
        tokens: list[int] = []
        steps, reason = [], "length"
        for _ in range(how.max_tokens or 0):
            logs = self._logs([*prompt, *tokens])[-1]
            tokens.append(int(logs.argmax()))
            steps.append(_step(logs, tokens[-1]))
            ended = tokens[-1] in (tiny_causal.EOS, *(how.stop_token_ids or ()))
            if ended or any(stop in TOKENIZER.decode(tokens) for stop in how.stop or ()):
                reason = "stop"
                break
        draw = SimpleNamespace(token_ids=tokens, finish_reason=reason, logprobs=None if how.logprobs is None else steps)
        return SimpleNamespace(outputs=[draw] * how.n, prompt_logprobs=told)

    def _logs(self, tokens: list[int]) -> torch.Tensor:
        """Return the log-probabilities of what follows each token."""
        with torch.inference_mode():
            return torch.log_softmax(MODEL(torch.tensor([tokens])).logits[0], dim=-1)


def _step(logs: torch.Tensor, chosen: int) -> dict[int, Any]:
    return {chosen: SimpleNamespace(logprob=float(logs[chosen]))}


def install(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the engine be found as vLLM."""
    module = ModuleType("vllm")
    module.LLM, module.SamplingParams, module.__version__ = LLM, SamplingParams, "0"  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "vllm", module)
    for name in ("VLLM_LOGGING_LEVEL", "VLLM_NO_USAGE_STATS", "HF_HUB_OFFLINE"):
        monkeypatch.setenv(name, "1")  # so that what the engine sets is gone afterwards
