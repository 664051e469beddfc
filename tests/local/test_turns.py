"""An answer ends where any file of the model says so, without control tokens. A thought that a prompt opens counts."""

from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
import tiny_causal
import tiny_gguf
import torch
from tokenizers import AddedToken, processors
from transformers import LlamaConfig, LlamaForCausalLM, PreTrainedTokenizerFast

from lmkbc import InputError
from lmkbc.local.checkpoint import load
from lmkbc.local.decode import Completion, Decoding
from lmkbc.local.local_model import LocalModel
from lmkbc.local.model import CausalModel
from lmkbc.models.base import Message, Prompt
from lmkbc.models.plain_questions import paragraphs, texts, word_log_probabilities

WORDS = ("Chile", ", Bolivia", "Brazil", ", Peru", "user", "assistant", "final", "analysis", "thinking")
CHATML = (
    "{% for m in messages %}<|im_start|>{{ m.role }}\n{{ m.content }}<|im_end|>\n{% endfor %}"
    "{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
)
LLAMA3 = (
    "<|begin_of_text|>{% for m in messages %}<|start_header_id|>{{ m.role }}<|end_header_id|>\n\n{{ m.content }}"
    "<|eot_id|>{% endfor %}{% if add_generation_prompt %}<|start_header_id|>assistant<|end_header_id|>\n\n{% endif %}"
)
GEMMA = (
    "<bos>{% for m in messages %}<start_of_turn>{{ 'model' if m.role == 'assistant' else 'user' }}\n{{ m.content }}"
    "<end_of_turn>\n{% endfor %}{% if add_generation_prompt %}<start_of_turn>model\n{% endif %}"
)
MISTRAL = (
    "<s>{% for m in messages %}{% if m.role == 'user' %}[INST] {{ m.content }} [/INST]"
    "{% else %} {{ m.content }}</s>{% endif %}{% endfor %}"
)
HARMONY = (
    "{% for m in messages %}<|start|>{{ m.role }}{{ '<|channel|>final' if m.role == 'assistant' else '' }}<|message|>"
    "{{ m.content }}<|end|>{% endfor %}{% if add_generation_prompt %}<|start|>assistant{% endif %}"
)
ZEPHYR = (  # its tags are no tokens
    "{% for m in messages %}<|{{ m.role }}|>\n{{ m.content }}\n{% endfor %}"
    "{% if add_generation_prompt %}<|assistant|>\n{% endif %}"
)
NAMES = (
    "{% for m in messages %}{{ 'User' if m.role == 'user' else 'Assistant' }}: {{ m.content }}\n{% endfor %}"
    "{% if add_generation_prompt %}Assistant:{% endif %}"
)
R1 = CHATML.replace("<|im_start|>assistant\n{% endif", "<|im_start|>assistant\n<think>\n{% endif")
QWEN3 = CHATML.replace(
    "<|im_start|>assistant\n{% endif",
    "<|im_start|>assistant\n{% if enable_thinking is defined and enable_thinking is false %}<think>\n\n</think>\n\n"
    "{% endif %}{% endif",
)
MAGISTRAL = MISTRAL + "[THINK]"
ASKED = [{"role": "user", "content": "Peru"}]


def made(template: str, special: str, plain: str = "", chain: Sequence[str] = ()) -> CausalModel:
    """A model that writes a chain of tokens, each of them once.

    special, plain: its control tokens, and other added tokens.
    """
    raw = tiny_causal.tokenizer().backend_tokenizer
    raw.add_special_tokens(["<|endoftext|>", *special.split()])
    raw.add_tokens([AddedToken(word, special=False, normalized=False) for word in (*WORDS, *plain.split())])
    tokenizer = PreTrainedTokenizerFast(tokenizer_object=raw, eos_token="<|endoftext|>", chat_template=template)
    size, ids = len(tokenizer), tokenizer.convert_tokens_to_ids
    sizes: dict[str, Any] = {"hidden_size": size + size % 2, "num_hidden_layers": 1, "num_attention_heads": 1}
    model = LlamaForCausalLM(LlamaConfig(vocab_size=size, intermediate_size=2, **sizes)).eval()
    start = tokenizer(CausalModel(model, tokenizer).chat(ASKED))["input_ids"][-1]
    path = [start, *(ids(token) for token in chain)]
    with torch.no_grad():
        for name, weights in model.named_parameters():
            weights.fill_(1.0) if "norm" in name else weights.zero_()
        model.model.embed_tokens.weight[:, :size].copy_(torch.eye(size))
        for before, after in pairwise(path):
            model.lm_head.weight[after, before] = 1.0
    return CausalModel(model, tokenizer)


def answer(model: CausalModel, most: int = 12, **how: Any) -> Completion:
    ((draw,),) = dict(model.complete([model.chat(ASKED)], Decoding(max_tokens=most, **how))).values()
    return draw


IM, HEADERS = "<|im_start|> <|im_end|>", "<|begin_of_text|> <|start_header_id|> <|end_header_id|> <|eot_id|> <|eom_id|>"
MESSAGES = "<|start|> <|end|> <|message|> <|channel|> <|return|>"


@pytest.mark.parametrize(
    ("template", "special", "plain", "chain", "expected"),
    [
        (CHATML, IM, "", ["Chile", ", Bolivia", "<|im_end|>", "Brazil"], "Chile, Bolivia"),
        (CHATML, "", IM, ["Chile", ", Bolivia", "<|im_end|>", "Brazil"], "Chile, Bolivia"),
        (CHATML, IM, "", ["Chile", "<|im_start|>", "user"], "Chile"),
        (CHATML, IM + " <|fim_pad|>", "", ["Chile", "<|fim_pad|>", "Brazil"], "Chile"),
        (LLAMA3, HEADERS, "", ["Chile", ", Bolivia", "<|eot_id|>", "Brazil"], "Chile, Bolivia"),
        (LLAMA3, HEADERS, "", ["Chile", ", Bolivia", "<|eom_id|>", "Brazil"], "Chile, Bolivia"),
        (GEMMA, "<bos> <eos> <start_of_turn> <end_of_turn>", "", ["Chile", "<end_of_turn>", "Brazil"], "Chile"),
        (MISTRAL, "<s> </s> [INST] [/INST]", "", ["Chile", "</s>", "Brazil"], "Chile"),
        (MISTRAL, "<s> </s>", "", ["Chile", "Ġ", "[", "I", "N", "S", "T", "]", "Brazil"], "Chile "),
        (NAMES, "", "", ["Chile", "Ċ", "U", "s", "e", "r", ":", "Brazil"], "Chile"),
        (QWEN3, IM, "<think> </think>", ["Chile", "<|im_end|>", "Brazil"], "Chile"),
        (CHATML, IM, "<think> </think>", ["<think>", "Brazil", "</think>", "Chile"], "<think>Brazil</think>Chile"),
        (CHATML, IM, "<tool_call>", ["<tool_call>", "Chile", "<|im_end|>"], "<tool_call>Chile"),
        (
            HARMONY,
            MESSAGES,
            "",
            ["<|channel|>", "analysis", "<|message|>", "Brazil", "<|return|>"],
            "<|channel|>analysis<|message|>Brazil",
        ),
    ],
)
def test_an_answer_ends_with_its_turn(template: str, special: str, plain: str, chain: list[str], expected: str) -> None:
    draw = answer(made(template, special, plain, chain), len(chain))
    assert (draw.text, draw.looped) == (expected, False)


@pytest.mark.parametrize(
    ("template", "special", "text", "expected"),
    [
        (CHATML, IM, "<|im_start|>assistant\nChile, Bolivia<|im_end|>", "Chile, Bolivia"),
        (CHATML, IM, " <|im_start|>Chile", "Chile"),
        (CHATML, IM, "<|im_end|>Chile", ""),
        (CHATML, IM, "None\n<|im_start|>user\nMore?", "None\n"),
        (LLAMA3, HEADERS, "<|start_header_id|>assistant<|end_header_id|>\n\nChile<|eot_id|>", "Chile"),
        (ZEPHYR, "", "<|assistant|>\nChile\n<|user|>\nMore?", "Chile\n"),
        (ZEPHYR, "", "5 <6 and 7> 4", "5 <6 and 7> 4"),
        (NAMES, "", "Chile\nUser: More?", "Chile"),
        (NAMES, "", "Chile\nUsers: many", "Chile\nUsers: many"),
        ("{{ raise_exception('no') }}", IM, "Chile<|im_end|>Brazil", "Chile"),
    ],
)
def test_control_tokens_are_no_part_of_an_answer(template: str, special: str, text: str, expected: str) -> None:
    tokenizer = made(CHATML, special).tokenizer
    tokenizer.chat_template = template
    model = CausalModel(made(CHATML, special).model, tokenizer)
    tokens = tokenizer(text)["input_ids"]
    assert model._turns.read(tokens, tokenizer.decode)[0] == expected


@pytest.mark.parametrize("where", ["config", "generation", "list", "eos_token", "eot_token", "eom_token"])
def test_each_file_may_name_an_end(where: str) -> None:
    """The template has none: it writes the turns alone."""
    chain = ["Chile", "<stop>", "Brazil", "<|endoftext|>"]
    model = made(NAMES, "", "<stop>", chain)
    stop = model.tokenizer.convert_tokens_to_ids("<stop>")
    assert answer(model, 4).text == "Chile<stop>Brazil"
    if where == "config":
        model.model.config.eos_token_id = [stop]
    elif where.endswith("_token"):
        model.tokenizer = PreTrainedTokenizerFast(
            tokenizer_object=model.tokenizer.backend_tokenizer, chat_template=NAMES, **{where: "<stop>"}
        )
    else:
        model.model.generation_config.eos_token_id = [stop, 0] if where == "list" else stop
    assert answer(CausalModel(model.model, model.tokenizer), 4).text == "Chile"


def test_the_default_end_of_a_config_is_no_ordinary_word() -> None:
    model = made(NAMES, "", "", ["Chile", "$", "Brazil"])
    model.model.config.eos_token_id = model.tokenizer.convert_tokens_to_ids("$")
    model.model.generation_config.eos_token_id = None
    assert answer(CausalModel(model.model, model.tokenizer), 3).text == "Chile$Brazil"


def test_an_end_that_the_tokenizer_appends_to_prompts_is_taken_off() -> None:
    model = made(CHATML, IM + " <s>")
    plain = model.encode(["Peru", "", "Chile"])
    ids = [(name, model.tokenizer.convert_tokens_to_ids(name)) for name in ("<s>", "<|endoftext|>")]
    model.tokenizer.backend_tokenizer.post_processor = processors.TemplateProcessing(
        single="<s> $A <|endoftext|>", special_tokens=ids
    )
    model.tokenizer.bos_token = "<s>"
    both = CausalModel(model.model, model.tokenizer)
    assert both.encode(["Peru", "", "<s>Chile"]) == [(ids[0][1], *tokens) for tokens in plain]
    (choices,) = both.log_probabilities(["Peru"], [[" Chile", " Brazil"]])
    assert len(choices) == 2


@pytest.mark.parametrize(
    ("template", "special", "begun"),
    [
        (R1, IM, "<think>\n"),
        (R1.replace("think", "thought"), IM, "<thought>\n"),
        (R1.replace("<think>", "<seed:think>"), IM, "<seed:think>\n"),
        (R1.replace("<think>", "◁think▷"), IM, "◁think▷\n"),
        (R1.replace("<think>\n", "<think>\nOkay, "), IM, "<think>\nOkay, "),
        (R1.replace("<think>", "<|START_THINKING|>"), IM + " <|START_THINKING|>", "<|START_THINKING|>\n"),
        (R1.replace("<think>", "<think>\n\n</think>"), IM, ""),
        (R1.replace("<think>", "</think>"), IM, ""),
        (R1.replace("<think>", "<|START_THINKING|><|END_THINKING|>"), IM, ""),
        (MAGISTRAL, "<s> </s> [INST] [/INST] [THINK] [/THINK]", "[THINK]"),
        (QWEN3, IM, ""),
        (CHATML, IM, ""),
        (
            HARMONY.replace("assistant{% endif", "assistant<|channel|>analysis<|message|>{% endif"),
            MESSAGES,
            "<|channel|>analysis<|message|>",
        ),
    ],
)
def test_a_thought_that_the_prompt_opens_begins_the_answer(template: str, special: str, begun: str) -> None:
    model = made(template, special, chain=["Brazil", ", Peru"])
    draw = answer(model, 2, logprobs=True)
    assert (draw.text, draw.finished) == (f"{begun}Brazil, Peru", False)
    assert "".join(text for text, _ in draw.logprobs) == draw.text
    ((plain,),) = dict(model.complete(["<think>\n is a tag."], Decoding(max_tokens=1))).values()
    assert not (plain.text or "").startswith("<")


THINKS = CHATML.replace("assistant\n{% endif", "assistant\n<think>{% endif")


def test_an_open_thought_is_no_answer_and_holds_no_stop() -> None:
    def reply(*chain: str, **how: Any) -> Any:
        model = made(THINKS, IM, "<think> </think>", chain)
        return answer(model, len(chain), **how)

    open_thought = LocalModel(made(THINKS, IM, "<think> </think>", ["Brazil", ", Peru"]))
    assert open_thought.model.chat(ASKED).endswith("<think>")
    assert reply("Brazil", ", Bolivia", ", Peru", stops=(", ",)).text == "<think>Brazil, Bolivia, Peru"
    closed = reply("Brazil", ", Bolivia", "</think>", "Chile", ", Peru", stops=(", ",))
    assert (closed.text, closed.finished) == ("<think>Brazil, Bolivia</think>Chile", True)
    listed = reply("[", '"', "Brazil", "]", "</think>", "{", "}", ", Peru", lists=True)
    assert (listed.text, listed.finished) == ('<think>["Brazil]</think>{}', True)


def test_plain_questions_get_what_follows_the_thought() -> None:
    for chain, line in ((["Brazil", "</think>", "Chile", "<|im_end|>"], ["Chile"]), (["Brazil", ", Peru"], [])):
        model = LocalModel(made(THINKS, IM, "<think> </think>", chain), chats=True)
        assert texts(model, ["Peru"], len(chain)) == [line]
        assert paragraphs(model, ["Peru"], len(chain)) == ([*line, None][:1])


def test_options_are_scored_after_the_thought() -> None:
    model = made(THINKS, IM, "<think> </think>", ["Brazil"])
    asked: list[str] = []
    scored = model.log_probabilities
    model.log_probabilities = lambda prompts, options, *more: asked.extend(prompts) or scored(prompts, options, *more)  # type: ignore[method-assign, func-returns-value]
    LocalModel(model).score([Prompt((), (Message("user", "Peru"),))], [["Chile", "Brazil"]])
    word_log_probabilities(LocalModel(model, chats=True), ["Peru"], ["Chile"])
    assert [text.partition("assistant\n")[2] for text in asked] == ["<think>\n\n</think>\n\n"] * 2


def test_a_token_without_an_embedding_is_named() -> None:
    model = made(CHATML, IM)
    model.model.config.vocab_size = tiny_causal.SIZE
    last = len(model.tokenizer) - 1
    with pytest.raises(
        InputError, match=f"no embeddings of the tokens 257 to {last} of its tokenizer, and a prompt holds 26"
    ):
        answer(model)
    assert model.encode(["no such token here"])


def gguf_of(model: CausalModel, path: Path, **fields: Any) -> Path:
    """The model as a GGUF file, whose tokens between angle brackets are control tokens."""
    tokens = [
        "QQ" if token == "ÿ" else token for token in model.tokenizer.convert_ids_to_tokens(range(len(model.tokenizer)))
    ]
    kinds = [1 if len(token) == 1 or token == "QQ" else 3 if token[0] == "<" else 4 for token in tokens]
    ends = {"eos_token_id": tokens.index("<|endoftext|>"), "padding_token_id": 0, **fields}
    table = {f"tokenizer.ggml.{name}": value for name, value in ends.items()}
    table |= {"tokenizer.ggml.tokens": tokens, "tokenizer.ggml.token_type": kinds}
    return tiny_gguf.write(path, model.model, fields=table | {"tokenizer.chat_template": model.tokenizer.chat_template})


@pytest.mark.parametrize("field", ["eot_token_id", "eom_token_id", "eos_token_id"])
def test_a_gguf_file_names_its_ends(field: str, tmp_path: Path) -> None:
    model = made(NAMES, "", "", ["Chile", "$", "Brazil"])
    ids = model.tokenizer.convert_tokens_to_ids
    file = gguf_of(model, tmp_path / "tiny.gguf", **{field: ids("$")})
    assert answer(CausalModel(*load(str(file))), 3).text == "Chile"
