"""Hidden states: those of each prompt alone, whatever it is read with."""

import numpy as np
import pytest
import torch
from tiny_causal import model, tokenizer

from lmkbc.local.model import CausalModel
from lmkbc.models.hardware import ON_CPU

pytestmark = pytest.mark.floats

PROMPTS = ["Which river?", "What", "Which languages does she speak? ", "What", "x" * 60, "Which rivers are long?"]


@pytest.mark.parametrize("kind", ["llama", "gpt2", "gemma3"])
@pytest.mark.parametrize("depth", [0.01, 0.5, 1.0])
def test_states_are_those_of_each_prompt_alone(kind: str, depth: float, monkeypatch: pytest.MonkeyPatch) -> None:
    causal = CausalModel(model(kind), tokenizer())
    layers = causal.model.config.num_hidden_layers
    layer = max(round(depth * layers), 1)
    monkeypatch.setattr("lmkbc.models.hardware.ON_CPU", ON_CPU._replace(columns=70))  # several batches
    states = causal.states(PROMPTS, depth)
    for prompt, state in zip(PROMPTS, states, strict=True):
        with torch.inference_mode():
            alone = causal.model(torch.tensor([causal.encode([prompt])[0]]), output_hidden_states=True)
        np.testing.assert_allclose(state, alone.hidden_states[layer][0, -1], atol=1e-4)
    np.testing.assert_array_equal(states[1], states[3])
    assert causal.usage.calls == len(PROMPTS)
    assert causal.usage.prompt_tokens == sum(map(len, causal.encode(PROMPTS)))


def test_what_the_window_has_no_room_for_has_no_state() -> None:
    causal = CausalModel(model("llama"), tokenizer())
    long = "y" * (causal.model.config.max_position_embeddings + 1)
    states = causal.states(["Which river?", long, ""], 1.0)
    assert states[0].any()
    assert not states[1:].any()
    assert causal.states([long], 1.0).shape == states[1:2].shape


@pytest.mark.parametrize("kind", ["llama", "gpt2", "gemma3"])
def test_states_of_prompts_whose_options_were_scored_are_not_read_again(kind: str) -> None:
    plain = CausalModel(model(kind), tokenizer()).states(PROMPTS, 0.5)
    causal = CausalModel(model(kind), tokenizer())
    causal.watch(0.5)
    causal.log_probabilities(PROMPTS[:4], [["Peru", "Chad"]] * 4)
    before = causal.usage.calls
    np.testing.assert_allclose(causal.states(PROMPTS, 0.5), plain, atol=1e-4)
    assert causal.usage.calls - before == len(set(PROMPTS) - set(PROMPTS[:4]))
    assert np.abs(causal.states(PROMPTS, 1.0) - plain).max() > 1e-2  # at another depth they are others
