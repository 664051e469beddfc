"""Answers of a local model that are held to a JSON schema."""

import json
from typing import Any

import pytest
import tiny_causal

from lmkbc import InputError
from lmkbc.local.decode import Decoding
from lmkbc.local.model import CausalModel

FORM = {
    "type": "object",
    "properties": {"objects": {"type": "array", "items": {"enum": ["Peru", "Chile"]}, "maxItems": 2}},
    "required": ["objects"],
    "additionalProperties": False,
}


@pytest.mark.parametrize("kind", ["llama", "gpt2"])
@pytest.mark.parametrize("temperature", [0.0, 1.0])
def test_a_random_model_writes_what_the_schema_allows(kind: str, temperature: float) -> None:
    model = CausalModel(tiny_causal.model(kind), tiny_causal.tokenizer())
    how = Decoding(max_tokens=60, temperature=temperature, draws=4, seed=1)
    prompts = ["Peru borders", "Which countries border Chad?"]
    free = [draw.text for _, draws in model.complete(prompts, how) for draw in draws]
    assert not any((text or "").startswith("{") for text in free)
    held = Decoding(max_tokens=60, temperature=temperature, draws=4, seed=1, schema=json.dumps(FORM))
    for _, draws in model.complete(prompts, held):
        for draw in draws:
            assert draw.finished
            (name, objects), = json.loads(draw.text or "").items()  # fmt: skip
            assert name == "objects"
            assert len(objects) <= 2
            assert {*objects} <= {"Peru", "Chile"}


def test_stored_answers_without_a_schema_keep_their_keys() -> None:
    assert "schema" not in Decoding().key
    assert Decoding(schema="{}").key["schema"] == "{}"


def test_a_tokenizer_without_a_table_is_named() -> None:
    class Slow:
        """A tokenizer that has all but what a fast one is made of."""

        def __init__(self) -> None:
            self._whole = tiny_causal.tokenizer()

        def __getattr__(self, name: str) -> Any:
            return getattr(self._whole, name)

        def __call__(self, *given: Any, **how: Any) -> Any:
            return self._whole(*given, **how)

        def __len__(self) -> int:
            return len(self._whole)

    model = CausalModel(tiny_causal.model("gpt2"), Slow())  # type: ignore[arg-type]
    with pytest.raises(InputError, match="cannot hold answers to a form"):
        list(model.complete(["Peru"], Decoding(max_tokens=4, schema=json.dumps(FORM))))
