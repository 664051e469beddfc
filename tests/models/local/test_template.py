"""Chat templates: rendered as transformers renders them, and ended at a bound of time, memory or length."""

from __future__ import annotations

import resource
import time
from collections.abc import Iterator

import pytest
import tiny_causal
import tiny_gguf

from lmkbc.errors import InputError
from lmkbc.models.local import template
from lmkbc.models.local.model import CausalModel

TURNS = [{"role": "system", "content": " Be brief. "}, {"role": "user", "content": "Où?\n{{ x }} <b>"}]
BEGUN = [*TURNS, {"role": "assistant", "content": "It is  "}]
QWEN = """{%- if messages[0].role == 'system' %}
    {{- '<|im_start|>system\\n' + messages[0].content|trim + '<|im_end|>\\n' }}
{%- endif %}
{%- set ns = namespace(last=messages|length - 1) %}
{%- for m in messages[1:] %}
    {%- if loop.index0 > 9 %}{% break %}{% endif %}
    {{- '<|im_start|>' ~ m['role'] ~ '\\n' ~ (m.content | tojson if tools else m.content) }}
    {%- generation %}{{ '<|im_end|>' }}{% endgeneration %}
{%- endfor %}
{%- if add_generation_prompt %}
    {{- '<|im_start|>assistant\\n' }}
    {%- if enable_thinking is defined and enable_thinking is false %}{{ '<think></think>' }}{% endif %}
{%- endif %}{{ bos_token }}{{ dict(a=1) | tojson }}"""
TRIMS = "{% for m in messages %}[{{ m['role'] }}] {{ m['content'].strip() }}\n{% endfor %}"


@pytest.fixture(scope="module")
def model() -> CausalModel:
    return CausalModel(tiny_causal.model("llama"), tiny_causal.tokenizer())


@pytest.fixture
def short(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """A render may take one second."""
    own = template.Renderer(1.0)
    monkeypatch.setattr(template, "_renderer", own)
    yield
    own.close()


@pytest.mark.parametrize("text", [QWEN, TRIMS, tiny_gguf.TEMPLATE], ids=["qwen", "trims", "tiny"])
@pytest.mark.parametrize("turns", [TURNS, BEGUN], ids=["asked", "begun"])
def test_a_template_renders_as_in_transformers(
    model: CausalModel, monkeypatch: pytest.MonkeyPatch, text: str, turns: list[dict[str, str]]
) -> None:
    monkeypatch.setattr(model.tokenizer, "chat_template", text)
    begun = turns is BEGUN
    how = {"add_generation_prompt": not begun, "continue_final_message": begun, "enable_thinking": False}
    assert model.chat(turns) == model.tokenizer.apply_chat_template(turns, tokenize=False, **how)


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("{{ ('x' * 10 ** 8) * 9 }}", "takes more than"),
        ("{% for i in range(99999) %}{% for j in range(99999) %}{% endfor %}{% endfor %}", "takes more than 1 s"),
        ("{{ 9 ** (9 ** 9) }}", "takes more than 1 s"),
        ("{% for i in range(9999) %}{{ 'x' * 999 }}{% endfor %}", "writes more than 4 MiB"),
    ],
)
@pytest.mark.usefixtures("short")
def test_a_template_ends_at_its_bounds(
    model: CausalModel, monkeypatch: pytest.MonkeyPatch, text: str, told: str
) -> None:
    monkeypatch.setattr(model.tokenizer, "chat_template", text)
    before, start = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss, time.monotonic()
    with pytest.raises(InputError, match=rf"chat template .*{told}.* for a prompt: use form = 'completion'"):
        model.chat(TURNS)
    assert time.monotonic() - start < 60
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss < before + (64 << 10), "nothing of it is in this process"
    monkeypatch.setattr(model.tokenizer, "chat_template", "{{ messages | length }}")
    assert model.chat(TURNS) == "2", "a bound of one prompt is none of the next"
