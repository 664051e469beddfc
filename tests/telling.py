"""A stand-in for servers that tell log-probabilities, those of a tiny model of ours, in the ways of real servers."""

import math
from collections.abc import Iterable
from functools import lru_cache
from typing import Literal

import tiny_causal
import torch
from loopback import Body, Loopback

from lmkbc.local.model import CausalModel

Kind = Literal["llama.cpp", "echo"]


def _all(model: CausalModel, tokens: tuple[int, ...]) -> torch.Tensor:
    with torch.inference_mode():
        logs: torch.Tensor = model.model(torch.tensor([tokens])).logits[0].double().log_softmax(-1)
    return logs


@lru_cache(1 << 14)
def _last(model: CausalModel, tokens: tuple[int, ...]) -> torch.Tensor:
    """The last token's alone, since tests ask a model of theirs the same again and again."""
    return _all(model, tokens)[-1].clone()


class Telling(Loopback):
    """kind: tells the next token's, of token numbers, as llama.cpp; or those of a text that it repeats, as vLLM.

    window: tokens that it reads at most. processed: whether it tells what is left after what it was made to write.
    Like llama.cpp, it tells nothing of a token that ends within a character.
    """

    def __init__(
        self,
        kind: Kind,
        model: CausalModel | None = None,
        *,
        window: int = 512,
        processed: bool = False,
        faults: Iterable[str | None] = (),
        delay: float = 0.0,
    ) -> None:
        super().__init__(faults=faults, delay=delay)
        self.model = model or CausalModel(tiny_causal.model("llama"), tiny_causal.tokenizer())
        self.kind, self.window, self.processed = kind, window, processed
        if kind == "llama.cpp":
            self.tells["tokenize"] = lambda body: {"tokens": self._tokens(body["content"])}
            if self.model.tokenizer.chat_template:
                self.tells["apply-template"] = lambda body: {"prompt": self.model.chat(body["messages"])}

    def reply(self, body: Body) -> tuple[int, Body]:
        prompt = body["prompt"]
        tokens = self._tokens(prompt) if isinstance(prompt, str) else list(prompt)
        if len(tokens) >= self.window:
            said = f"This model's maximum context length is {self.window} tokens. However, you requested more."
            return 400, {"error": {"message": said, "code": "context_length_exceeded"}}
        choice: Body = {"index": 0, "finish_reason": "length"}
        if self.kind == "llama.cpp":
            choice |= self._next(body, _last(self.model, tuple(tokens)))
        else:
            logs = _all(self.model, tuple(tokens))
            written = int(logs[-1].argmax())
            whole = [*tokens, written] if body.get("echo") else [written]
            told = [None, *(float(log[token]) for log, token in zip(logs, [*tokens[1:], written], strict=True))]
            spelt = [self._spelt(token) for token in whole]
            choice["text"] = (prompt if body.get("echo") else "") + spelt[-1]
            choice["logprobs"] = {"tokens": spelt, "token_logprobs": told[-len(whole) :], "text_offset": []}
        usage = {"prompt_tokens": len(tokens), "completion_tokens": 1}
        return 200, {"model": body["model"], "choices": [choice], "usage": usage}

    def _next(self, body: Body, logs: torch.Tensor) -> Body:
        made = [int(token) for token in body.get("logit_bias", ())]
        chosen = made[0] if made else int(logs.argmax())
        told = (
            torch.full_like(logs, -math.inf).index_fill(0, torch.tensor(made), 0.0) if self.processed and made else logs
        )
        likeliest = told.topk(min(body["logprobs"], len(told)))

        def one(token: int, logprob: float) -> Body:
            return {"id": token, "token": self._spelt(token), "logprob": max(logprob, -3.4e38)}

        pairs = zip(likeliest.indices.tolist(), likeliest.values.tolist(), strict=True)
        content = one(chosen, float(told[chosen])) | {"top_logprobs": [one(*pair) for pair in pairs]}
        return {"text": self._spelt(chosen), "logprobs": {"content": [content]}}

    def _tokens(self, text: str) -> list[int]:
        return list(self.model.encode([text])[0])

    def _spelt(self, token: int) -> str:
        return str(self.model.tokenizer.convert_ids_to_tokens(token))
