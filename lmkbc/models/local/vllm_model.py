"""A causal model that vLLM runs in this process. Prompts and ends of answers are the same as in `model`."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any, NoReturn

from transformers import PreTrainedModel, PreTrainedTokenizerBase

from lmkbc.errors import InputError
from lmkbc.models.loading import ADAPTER, explained
from lmkbc.models.local.decode import Asked, Completion, Decoding, spelt
from lmkbc.models.local.model import CausalModel
from lmkbc.models.local.prefixes import Option, Tokens
from lmkbc.models.local.trees import Scores
from lmkbc.models.located import located
from lmkbc.models.reference import ModelReference

PORTION = 512
"""Prompts that the engine gets at a time; a killed run loses at most these."""
SILENT = {"VLLM_LOGGING_LEVEL": "ERROR", "VLLM_NO_USAGE_STATS": "1"}
"""Settings of the library, unless the environment has others: no log, and no usage report to its makers."""


class VllmModel(CausalModel):
    """Completes prompts and scores continuations with vLLM's engine.

    settings: the model without weights, as `checkpoint.load` returns it. An answer that is a list is decoded to its
    stop string or `max_tokens` and then cut. Hidden states are not available.
    """

    reads_weights = False
    suffix = "+vllm"
    spare = 1  # the engine must decode a token after an option, which is dropped

    @classmethod
    def over(
        cls,
        model: PreTrainedModel,
        tokenizer: PreTrainedTokenizerBase,
        reference: ModelReference,
        source: str,
        *,
        offline: bool,
    ) -> VllmModel:
        """Return vLLM's engine with a model's weights."""
        return cls(engine(reference, source, model, offline=offline), model, tokenizer)

    def __init__(self, engine: Any, settings: PreTrainedModel, tokenizer: PreTrainedTokenizerBase) -> None:
        super().__init__(settings, tokenizer)
        self._engine = engine

    def states(self, prompts: Sequence[str], depth: float) -> NoReturn:  # noqa: ARG002
        """Raise InputError: the engine does not return hidden states."""
        raise InputError("hidden states are not read by vLLM: say backend = 'local' in the table of hidden_states")

    def computes(self) -> dict[str, str | int]:
        """Return the engine, the device and the precision of the computation."""
        from vllm import __version__

        settings = self._engine.llm_engine.vllm_config
        dtype = str(settings.model_config.dtype).removeprefix("torch.")
        return {"engine": f"vllm {__version__}", "device": settings.device_config.device_type, "dtype": dtype}

    @property
    def _window(self) -> int:
        return min(super()._window, int(self._engine.llm_engine.vllm_config.model_config.max_model_len))

    def _answered(
        self,
        encoded: Sequence[Tokens],
        begun: Sequence[str],
        places: Sequence[int],
        room: Sequence[int],
        how: Decoding,
        seeds: Sequence[int],
    ) -> Iterator[tuple[Asked, list[Completion]]]:
        ends = sorted(self._turns.ends)
        settings = [
            _sampling(replace(how, seed=seeds[place]), min(how.max_tokens, room[place]), stop_token_ids=ends)
            for place in places
        ]
        answers = self._generated([encoded[place] for place in places], settings)
        for place, answer in zip(places, answers, strict=True):
            asked = Asked(place, encoded[place], (), room[place], seeds[place], begun[place])
            yield asked, [self._read_draw(draw, how, begun[place]) for draw in answer.outputs]

    def _read(
        self,
        prompts: Sequence[Sequence[Option]],
        layer: int | None,  # noqa: ARG002 -- there are no states, and the engine has a cache of its own
        *,
        reuse: bool = False,  # noqa: ARG002
    ) -> Iterator[tuple[int, Scores]]:
        options = [option for choices in prompts for option in choices]
        settings = [_sampling(Decoding(max_tokens=1), 1, prompt_logprobs=0)] * len(options)
        answers = self._generated([whole for whole, _ in options], settings)
        logs = (
            sum(answer.prompt_logprobs[at][whole[at]].logprob for at in range(first, len(whole)))
            for (whole, first), answer in zip(options, answers, strict=True)
        )
        for place, choices in enumerate(prompts):
            yield place, ([next(logs) for _ in choices], None)

    def _generated(self, prompts: Sequence[Tokens], settings: Sequence[Any]) -> Iterator[Any]:
        for start in range(0, len(prompts), PORTION):
            some = [{"prompt_token_ids": list(tokens)} for tokens in prompts[start : start + PORTION]]
            yield from self._engine.generate(some, settings[start : start + PORTION], use_tqdm=False)

    def _read_draw(self, draw: Any, how: Decoding, begun: str) -> Completion:
        read, tokens = self._reader(how), list(draw.token_ids)
        done = read(tokens, begun)
        chosen = [step[token].logprob for step, token in zip(draw.logprobs or (), tokens, strict=False)]
        return replace(
            done,
            finished=done.finished or draw.finish_reason == "stop",
            logprobs=spelt(tokens, chosen, read, begun),
            tokens=len(tokens),
        )


def engine(model: ModelReference, source: str, settings: PreTrainedModel, *, offline: bool) -> Any:
    """Return vLLM's engine with a model's weights.

    source: the model's name. settings: the model without weights. Raise InputError if vLLM is not installed, cannot
    load the model, or gets settings that only the other back end supports.
    """
    for name, value in SILENT.items():
        os.environ.setdefault(name, value)
    if offline:
        os.environ.setdefault("HF_HUB_OFFLINE", "1")
    try:
        from vllm import LLM
    except ImportError as error:
        raise InputError(
            f"backend = 'vllm' needs vLLM, which cannot be loaded ({error}): install lmkbc[vllm]"
        ) from None
    place = located(source, model.revision or None)
    if model.quantise != "none" or model.device or os.path.isfile(os.path.join(place, ADAPTER)):
        raise InputError(
            "vLLM chooses the device itself, and is given no adapter and no quantise here: leave device and quantise "
            "out and name a whole model, or say backend = 'local'"
        )
    with explained(source):
        return LLM(
            place,
            revision=model.revision or None,
            dtype=str(settings.dtype).removeprefix("torch."),
            load_format="safetensors",
            trust_remote_code=model.trust_remote_code,
        )


def _sampling(how: Decoding, most: int, **further: Any) -> Any:
    """Return the engine's settings for a prompt. most: maximum number of tokens of its answer."""
    from vllm import SamplingParams

    return SamplingParams(
        n=how.draws,
        seed=how.seed + how.first if how.temperature else None,
        temperature=how.temperature,
        top_p=how.top_p,
        top_k=how.top_k,
        repetition_penalty=how.repetition_penalty,
        max_tokens=most,
        stop=list(how.stops),
        logprobs=0 if how.logprobs else None,
        **further,
    )
