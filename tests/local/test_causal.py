"""The local back end says what a model says when every prompt is asked alone and in full."""

import math
from collections import Counter
from collections.abc import Sequence
from functools import cache
from inspect import signature
from itertools import takewhile
from typing import Any

import pytest
import tiny_causal
import torch
from hypothesis import given
from hypothesis import strategies as st
from opened import part
from transformers import (
    BloomConfig,
    Gemma2Config,
    Gemma3ForCausalLM,
    GptOssConfig,
    LlamaForCausalLM,
    MambaConfig,
    MistralConfig,
    Qwen3NextConfig,
    RwkvConfig,
)

from lmkbc import InputError
from lmkbc.local import decode as decode_module
from lmkbc.local.branches import Ragged
from lmkbc.local.caches import PrefixCaches
from lmkbc.local.decode import Decoding, Room
from lmkbc.local.model import CausalModel
from lmkbc.models import hardware
from lmkbc.models.endings import Repeats
from lmkbc.models.prefixes import beginnings, groups

TOKENIZER = tiny_causal.tokenizer()
PREFIX = "Rome, borders: Vatican City\nLesotho, borders: South Africa\nMalta, borders: none\n"
SUBJECTS = ("Peru", "Fiji", "São Tomé", "Chad", "a {name}", "Côte d'Ivoire", "Iran", "Peru")
PROMPTS = [f"{PREFIX}{subject}, borders:" for subject in SUBJECTS]
WIDE = {"vocab_size": tiny_causal.SIZE, "hidden_size": 32, "initializer_range": 0.3}
LINEAR = {
    "intermediate_size": 48,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "head_dim": 8,
    "linear_key_head_dim": 8,
    "linear_value_head_dim": 8,
    "linear_num_key_heads": 2,
    "linear_num_value_heads": 4,
    "num_experts": 0,
    "layer_types": ["linear_attention", "full_attention"],
    "mlp_only_layers": [0, 1],
}
EXPERTS = {"num_local_experts": 4, "num_experts_per_tok": 2, "head_dim": 8, "sliding_window": 20}
SLIDING = {"intermediate_size": 48, "num_hidden_layers": 2, "num_attention_heads": 4, "num_key_value_heads": 2}


def made(kind: str) -> Any:
    if kind == "bloom":
        return tiny_causal.model("", config=BloomConfig(n_layer=2, n_head=4, **WIDE))
    if kind == "mistral":
        return tiny_causal.model("", config=MistralConfig(sliding_window=20, **SLIDING, **WIDE))
    if kind == "gemma2":  # scores have a bound
        bounds = {
            "attn_logit_softcapping": 2.0,
            "head_dim": 8,
            "query_pre_attn_scalar": 8,
            "tie_word_embeddings": False,
        }
        return tiny_causal.model("", config=Gemma2Config(**bounds, **SLIDING, **WIDE))
    if kind == "gpt-oss":  # heads may read nothing
        return tiny_causal.model("", config=GptOssConfig(**EXPERTS, **SLIDING, **WIDE))
    if kind == "qwen3-next":
        return tiny_causal.model("", config=Qwen3NextConfig(**LINEAR, **WIDE))
    if kind == "mamba":  # keeps states, and reads further prompts wrongly after them
        return tiny_causal.model("", seed=2, config=MambaConfig(num_hidden_layers=2, state_size=4, **WIDE))
    if kind == "rwkv":  # takes no cache of ours
        return tiny_causal.model("", config=RwkvConfig(num_hidden_layers=2, attention_hidden_size=32, **WIDE))
    return tiny_causal.model(kind)


KINDS = ("gpt2", "llama", "bloom", "mistral", "gemma2", "gemma3", "gpt-oss", "qwen3-next", "mamba", "rwkv")
shared = cache(made)
"""Returns a model that no test changes."""
CACHE = next(name for name in signature(shared("llama").forward).parameters if name in ("cache", "past_key_values"))
"""Name of the cache argument in transformers' own classes; classes that come with a model say past_key_values."""


@pytest.fixture(scope="module", params=KINDS)
def asked(request: pytest.FixtureRequest) -> CausalModel:
    return CausalModel(shared(request.param), TOKENIZER)


@cache
def plainly(model: Any, prompt: str, tokens: int, **how: Any) -> str:
    """One full prompt, `generate`."""
    read = TOKENIZER(prompt, return_tensors="pt")
    answer = model.generate(**read, max_new_tokens=tokens, do_sample=False, **how)[0, read["input_ids"].shape[1] :]
    return str(TOKENIZER.decode(answer, skip_special_tokens=True))


def answers(model: CausalModel, prompts: list[str], **how: Any) -> list[list[str | None]]:
    found = dict(model.complete(prompts, Decoding(**how)))
    assert sorted(found) == list(range(len(prompts)))
    return [[draw.text for draw in found[place]] for place in range(len(prompts))]


def test_how_each_kind_of_model_is_served() -> None:
    able = {kind: CausalModel(shared(kind), TOKENIZER)._able for kind in KINDS}
    for kind, its in able.items():
        assert its.grows == (kind != "rwkv"), kind
        assert its.shares == (kind not in {"mamba", "rwkv"}), kind
        assert (
            its.packs == its.ragged == (its.reach == math.inf) == (its.shares and kind not in {"bloom", "qwen3-next"})
        ), kind


@pytest.mark.parametrize("kind", ["llama", "gpt2"])
def test_a_known_model_in_half_precision_shares_though_its_numbers_are_coarse(kind: str) -> None:
    assert CausalModel(made(kind).to(torch.bfloat16), TOKENIZER)._able == (True, True, True, True, math.inf)


@pytest.mark.parametrize("kind", ["mistral", "gemma3"])
def test_past_a_window_that_no_mask_narrows_every_prompt_has_a_row(kind: str) -> None:
    model = CausalModel(shared(kind), TOKENIZER)
    packed = answers(model, PROMPTS, max_tokens=8), model.log_probabilities(PROMPTS, [[" Chad", " Chile", "x"]] * 8)
    model._able = model._able._replace(reach=shared(kind).config.sliding_window)
    assert answers(model, PROMPTS, max_tokens=8) == packed[0]
    for ours, theirs in zip(model.log_probabilities(PROMPTS, [[" Chad", " Chile", "x"]] * 8), packed[1], strict=True):
        assert ours == pytest.approx(theirs, abs=1e-3)


def test_a_class_that_takes_one_mask_for_all_layers_keeps_to_its_window() -> None:
    class TakesOne(Gemma3ForCausalLM):
        def forward(  # type: ignore[override]
            self,
            input_ids: Any,
            attention_mask: Any = None,
            position_ids: Any = None,
            past_key_values: Any = None,
            **more: Any,
        ) -> Any:
            assert not isinstance(attention_mask, dict)
            ways = {"position_ids": position_ids, CACHE: past_key_values}
            return super().forward(input_ids, attention_mask=attention_mask, **ways, **more)

    tiny = made("gemma3")
    tiny.__class__ = TakesOne
    assert CausalModel(tiny, TOKENIZER)._able == (True, True, True, True, 8)
    assert tiny.config.sliding_window == 8


class OfItsOwn(LlamaForCausalLM):
    """A class that came with a model."""

    def forward(  # type: ignore[override]
        self,
        input_ids: Any,
        attention_mask: Any = None,
        position_ids: Any = None,
        past_key_values: Any = None,
        **more: Any,
    ) -> Any:
        """Look at no mask of ours."""
        return super().forward(input_ids, position_ids=position_ids, **{CACHE: past_key_values}, **more)


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_a_class_that_is_not_known_is_tried(dtype: torch.dtype) -> None:
    tiny = made("llama").to(dtype)
    tiny.__class__ = OfItsOwn
    assert CausalModel(tiny, TOKENIZER)._able == (False, True, True, False, 0)


def test_where_nothing_is_shared_a_line_says_so(caplog: pytest.LogCaptureFixture) -> None:
    class Forgets(LlamaForCausalLM):
        def forward(self, *given: Any, past_key_values: Any = None, **more: Any) -> Any:  # type: ignore[override]
            return super().forward(*given, **more)

    tiny = made("llama")
    expected = answers(CausalModel(tiny, TOKENIZER), PROMPTS[:2], max_tokens=1)
    tiny.__class__ = Forgets
    model = CausalModel(tiny, TOKENIZER)
    assert answers(model, PROMPTS[:2], max_tokens=1) == expected
    (only,) = dict(model.complete(["x" * 5000], Decoding(max_tokens=1))).values()
    assert only[0].text is None  # no room, and nothing to share: not asked
    assert [record.getMessage() for record in caplog.records if "cannot continue" in record.getMessage()] == [
        "the model cannot continue from a cache (Forgets): every prompt is read as a whole, for every token "
        "of an answer, which takes longer"
    ]


@pytest.mark.whole(but=["gpt2", "llama", "gemma3", "mamba"])
@pytest.mark.parametrize(
    "how", [{}, pytest.param({"repetition_penalty": 1.15}, marks=pytest.mark.whole)], ids=["plain", "penalty"]
)
def test_greedy_answers_are_those_of_one_full_prompt_at_a_time(asked: CausalModel, how: dict[str, float]) -> None:
    expected = [[plainly(asked.model, prompt, 14, **how)] for prompt in PROMPTS]
    assert answers(asked, PROMPTS, max_tokens=14, **how) == expected
    assert len(set(map(tuple, expected))) > 2  # the comparison means something


def test_a_prefix_that_saves_few_tokens_gets_no_pass_of_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    model, read, cache = CausalModel(shared("gpt2"), TOKENIZER), list[int](), PrefixCaches.cache
    answers(model, ["Is it?"], max_tokens=1)  # by then it has tried whether it can pack
    monkeypatch.setattr(PrefixCaches, "cache", lambda self, tokens: read.append(len(tokens)) or cache(self, tokens))
    for prompts, is_long in ((["Is it Chad?", "Is it Peru?", "On"], False), (PROMPTS, True)):
        read.clear()
        assert answers(model, prompts, max_tokens=4) == [[plainly(model.model, prompt, 4)] for prompt in prompts]
        assert any(read) is is_long


@pytest.mark.whole(but=["300-0-llama", "2048-150-gpt2"])
@pytest.mark.parametrize("kind", ["gpt2", "llama"])
@pytest.mark.parametrize(("most", "saving"), [(2048, 0), (300, 0), (50, 0), (2048, 150)])
def test_prompts_that_begin_differently_are_decoded_together(
    kind: str, most: int, saving: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(hardware, "ON_CPU", hardware.ON_CPU._replace(saving_of_answers=saving))
    model = CausalModel(shared(kind), TOKENIZER)
    model._room = Room(most, most)
    answers(model, ["Is it?"], max_tokens=1)  # by then it has tried whether it can pack
    heads = (PREFIX, PREFIX.lower(), "Chad: ", "")
    prompts = [f"{head}{subject}, borders:" for head in heads for subject in SUBJECTS[:3]] + ["Is it?", "On"]
    assert len(groups(model.encode(prompts))) > 2
    kept = [group.saved for group in model._groups(model.encode(prompts), to_answer=True) if group.shared]
    assert min(kept) >= saving
    assert len(kept) == (2 if saving else 3)
    full = [plainly(model.model, prompt, 24) for prompt in prompts]
    stop = full[0][5:7]
    reads, rows = list[int](), list[int]()
    read, step = Ragged.read, Ragged.step
    monkeypatch.setattr(Ragged, "read", lambda self, asked, *rest: reads.append(len(asked)) or read(self, asked, *rest))
    monkeypatch.setattr(Ragged, "step", lambda self, kept, tokens: rows.append(len(kept)) or step(self, kept, tokens))
    found = answers(model, prompts, max_tokens=24, stops=(stop,))
    assert found == [[text.split(stop)[0]] for text in full]
    assert sum(reads) == len(prompts)
    alone = sum(len(text) for text in full)
    assert len(rows) < alone / (1 if most == 50 else 4)
    if most == 2048:
        assert reads == [len(prompts)]
    else:  # those that wait do not wait for all the others
        assert len(reads) > 1


@pytest.mark.whole(but=["gpt2", "llama", "gemma3", "qwen3-next"])
def test_a_stop_string_ends_each_answer_and_the_others_go_on(asked: CausalModel) -> None:
    full = [plainly(asked.model, prompt, 14) for prompt in PROMPTS]
    stop = full[0][5:7]
    found = dict(asked.complete(PROMPTS, Decoding(max_tokens=14, stops=(stop, "\n"))))
    for place, text in enumerate(full):
        (draw,) = found[place]
        cut = min((at for end in (stop, "\n") if (at := text.find(end)) >= 0), default=None)
        assert draw.text == text[:cut]
        assert draw.finished == (cut is not None or len(TOKENIZER(text)["input_ids"]) < 14)


@pytest.mark.whole(but=["gpt2", "llama", "gemma3", "mamba"])
def test_draws_are_the_same_whatever_the_batch(asked: CausalModel, monkeypatch: pytest.MonkeyPatch) -> None:
    how = {"max_tokens": 6, "draws": 3, "temperature": 0.9, "top_p": 0.95, "top_k": 50, "seed": 4}
    some = PROMPTS[-1:] + PROMPTS[4:]
    together = answers(asked, some, **how)
    assert together == [answers(asked, [prompt], **how)[0] for prompt in some]
    assert together[0] == together[-1]  # the same prompt, the same draws
    monkeypatch.setattr(asked, "_room", Room(3, 100), raising=False)  # not computed where rows have one length
    assert answers(asked, some[::-1], **how)[::-1] == together
    assert answers(asked, some, **{**how, "seed": 5}) != together
    assert all(len(set(draws)) > 1 for draws in together)


def test_an_answer_that_goes_round_in_circles_is_stopped_and_the_others_go_on() -> None:
    model = CausalModel(shared("bloom"), TOKENIZER)
    found = dict(model.complete(PROMPTS, Decoding(max_tokens=90)))
    assert 0 < sum(draw.looped for (draw,) in found.values()) < len(PROMPTS)
    for place, prompt in enumerate(PROMPTS):
        (draw,) = found[place]
        read = TOKENIZER(prompt, return_tensors="pt")
        whole = model.model.generate(**read, max_new_tokens=90, do_sample=False)[0, read["input_ids"].shape[1] :]
        repeats = Repeats()
        end = next((at for at, token in enumerate(whole.tolist(), start=1) if repeats.take(token)), None)
        assert (draw.looped, draw.finished) == (end is not None, end is None and len(whole) < 90)
        assert (draw.text, draw.tokens) == (TOKENIZER.decode(whole[:end], skip_special_tokens=True), end or len(whole))
        assert dict(model.complete([prompt], Decoding(max_tokens=90)))[0] == [draw]


def test_prompts_with_seeds_of_their_own_are_answered_together_as_each_alone() -> None:
    model, how = CausalModel(shared("llama"), TOKENIZER), {"max_tokens": 8, "temperature": 1.0}

    def texts(prompts: Sequence[str], seeds: Sequence[int]) -> list[str | None]:
        found = dict(model.complete(prompts, Decoding(**how), seeds))
        return [found[place][0].text for place in range(len(prompts))]

    seeds = range(3, 3 + len(PROMPTS))
    assert texts(PROMPTS, seeds) == [texts([one], [seed])[0] for one, seed in zip(PROMPTS, seeds, strict=True)]
    assert texts(PROMPTS, seeds) != texts(PROMPTS, [3] * len(PROMPTS))


def test_an_answer_that_is_a_list_ends_with_it(monkeypatch: pytest.MonkeyPatch) -> None:
    model = CausalModel(shared("llama"), TOKENIZER)
    script = TOKENIZER(' ["Chile", "Bo"] and so on')["input_ids"]
    monkeypatch.setattr(decode_module, "_pick", lambda _, rows, __: [script[len(row.tokens)] for row in rows])
    for lists, text in ((True, ' ["Chile", "Bo"]'), (False, ' ["Chile", "Bo"] and so')):
        ((draw,),) = dict(model.complete(["Peru"], Decoding(max_tokens=len(script) - 3, lists=lists))).values()
        assert (draw.text, draw.finished, draw.tokens) == (text, lists, len(text))
    assert Decoding(lists=True).key == Decoding().key


def test_draws_follow_the_distribution() -> None:
    model = CausalModel(shared("llama"), TOKENIZER)
    first = Counter(text for text in answers(model, ["Peru"], max_tokens=1, draws=4000, temperature=1.5, top_k=4)[0])
    with torch.inference_mode():
        scores = model.model(**TOKENIZER("Peru", return_tensors="pt")).logits[0, -1] / 1.5
    expected: Counter[str] = Counter()
    for share, token in zip(scores.topk(4).values.softmax(-1).tolist(), scores.topk(4).indices.tolist(), strict=True):
        expected[TOKENIZER.decode([token])] += share
    assert {text: count / 4000 for text, count in first.items()} == pytest.approx(expected, abs=0.03)


def test_a_prompt_without_room_is_not_asked_and_a_tight_one_gets_what_fits() -> None:
    model = CausalModel(shared("gpt2"), TOKENIZER)
    prompts = ["x" * 505, "x" * 5000, "y" * 512, "", "abc"]
    found = dict(model.complete(prompts, Decoding(max_tokens=20)))
    assert [found[place][0].text for place in (1, 2, 3)] == [None, None, None]
    assert not any(found[place][0].finished for place in (1, 2, 3))
    assert found[0][0].text == plainly(model.model, prompts[0], 7)
    assert found[4][0].text == plainly(model.model, "abc", 20)


def common(one: Sequence[int], other: Sequence[int]) -> int:
    """The number of tokens that two prompts begin with."""
    return sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], zip(one, other, strict=False)))


@pytest.mark.whole(but=["gpt2", "llama", "gemma3", "rwkv"])
def test_log_probabilities_of_continuations(asked: CausalModel) -> None:
    prompts = [*PROMPTS[:4], "Is it?", "Is it not?", "Is it a Tru"]
    options = [[" True", " False", "", " Trudy", "e", " True"][place % 3 :] for place in range(len(prompts))]
    for prompt, choices, scores in zip(prompts, options, asked.log_probabilities(prompts, options), strict=True):
        for option, score in zip(choices, scores, strict=True):
            tokens = TOKENIZER(prompt + option, return_tensors="pt")["input_ids"]
            with torch.inference_mode():
                logs = asked.model(tokens).logits[0].float().log_softmax(-1)
            first = common(TOKENIZER(prompt)["input_ids"], tokens[0].tolist())
            expected = sum(float(logs[place - 1, tokens[0, place]]) for place in range(first, tokens.shape[1]))
            assert score == pytest.approx(expected, abs=1e-3)
    assert asked.log_probabilities([], []) == []
    assert asked.log_probabilities(["a", "b"], [[], [" c"]])[0] == []


def test_a_statement_too_long_to_score_has_no_probability() -> None:
    model = CausalModel(shared("gpt2"), TOKENIZER)
    assert model.log_probabilities(["x" * 600, "x"], [[" a", " b"]] * 2)[0] == [-math.inf, -math.inf]


TOKENS = st.lists(st.integers(0, 2), min_size=1, max_size=6).map(tuple)


@pytest.mark.parametrize("space", [" ", ""])
def test_beginnings_are_whole_tokens_in_the_words_of_the_option(space: str) -> None:
    names = ["Guinea", "Guinea-Bissau", "Gabon", "São Tomé", "São Paulo", "東京", "東北", "none"]
    options, model = [space + name for name in names], CausalModel(shared("llama"), TOKENIZER)
    begun = beginnings(model.encode, PROMPTS[0], options)
    assert begun[0] == options[0], "it is the beginning of another"
    assert len({*begun}) == len(begun)
    assert sum(map(len, begun)) < sum(map(len, options))
    assert all(text and option.startswith(text) for text, option in zip(begun, options, strict=True))


def test_a_space_is_no_beginning_of_a_name() -> None:
    assert beginnings(lambda texts: [tuple(map(ord, text)) for text in texts], "x:", [" Oslo", "Rome"]) == [
        " Oslo",
        "R",
    ]


@given(st.lists(st.lists(st.integers(0, 2), min_size=1, max_size=12).map(tuple), max_size=12), st.integers(1, 3))
def test_groups_share_what_their_members_begin_with(prompts: list[tuple[int, ...]], spare: int) -> None:
    found = groups(prompts, spare)
    assert sorted(member for group in found for member in group.members) == list(range(len(prompts)))
    for group in found:
        first = prompts[group.members[0]]
        for member in group.members:
            assert common(first, prompts[member]) >= group.shared
            assert group.shared <= max(len(prompts[member]) - spare, 0)
    encoded = sum(group.shared + sum(len(prompts[m]) - group.shared for m in group.members) for group in found)
    assert encoded <= sum(map(len, prompts))


def test_a_prompt_unlike_the_others_does_not_part_them() -> None:
    same = [(1, 2, 3, 4, *range(n, n + 9)) for n in range(20, 40, 5)]
    lone = [(1, 9, 9, 9), (0,), (2, 5, 5), (2, 7, 8, 8)]
    alone, together = groups([*lone[:2], *same, *lone[2:]]), groups(same)
    assert max(group.saved for group in alone) == together[0].saved == 4 * 3
    assert sum(group.saved for group in alone) == 4 * 3 + 1


def test_a_prefix_is_held_once_whatever_the_number_of_answers() -> None:
    model = shared("llama")
    with torch.inference_mode():
        branches = Ragged(model, PrefixCaches(model))
        prefix = tuple(range(1, 101))
        branches.read([(*prefix, 7), (*prefix, 8, 9)], [prefix, prefix])
        branches.fork(4)
        last = branches.step(range(8), range(10, 18))
        plain = model(torch.tensor([[*prefix, 8, 9, 17]])).logits[0, -1]
    assert torch.allclose(last[-1], plain, atol=1e-4)
    assert branches._cache.slots == 8
    assert branches._cache.room <= 2 + 32


def test_the_log_probabilities_of_what_was_drawn() -> None:
    model = CausalModel(shared("llama"), TOKENIZER)
    prompt = PROMPTS[0]
    how = Decoding(max_tokens=12, draws=2, temperature=0.5, logprobs=True)
    (found,) = dict(model.complete([prompt], how)).values()
    for draw in found:
        assert "".join(piece for piece, _ in draw.logprobs) == draw.text
        assert len(draw.logprobs) <= 12
    ((greedy,),) = dict(model.complete([prompt], Decoding(max_tokens=1, logprobs=True))).values()
    with torch.inference_mode():
        logs = model.model(**TOKENIZER(prompt, return_tensors="pt")).logits[0, -1].log_softmax(-1)
    assert greedy.logprobs[0][1] == pytest.approx(float(logs.max()), abs=1e-4)


def test_a_recipe_says_how_to_decode() -> None:
    assert Decoding.of(part("sampling"), ("\n",)) == Decoding(stops=("\n",))
    assert Decoding.of(part("sampling", samples=3), ()).temperature == 1.0
    told = part("sampling", temperature=0.5, stop=[";"], max_tokens=9, extra={"top_k": 5}, seed=3)
    assert Decoding.of(told, ("\n",)) == Decoding(max_tokens=9, temperature=0.5, top_k=5, seed=3, stops=(";",))


@pytest.mark.parametrize(
    "table",
    [
        {"max_tokens": 0},
        {"temperature": -1.0},
        {"top_p": 0.0},
        {"extra": {"repetition_penalty": 0.0}},
        {"extra": {"tempo": 1}},
        {"extra": {"top_k": -1}},
    ],
)
def test_senseless_sampling_is_refused(table: dict[str, Any]) -> None:
    name = next(iter(table.get("extra", table)))
    with pytest.raises(InputError, match=name):
        Decoding.of(part("sampling", **table), ())
