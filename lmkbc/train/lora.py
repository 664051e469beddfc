"""LoRA: a causal model learns to answer a recipe's prompts, on the train split or on facts, through low-rank weights.

The defaults follow LLM2KB (Nayak & Timmapathini 2023): rank 4, alpha 16, dropout 0.05, 3 epochs, batches of 2. The
learning rate is 2e-5, constant after a warm-up. There are three kinds of prompt: with retrieved context, without it,
and choices among the entities that a name may mean. Two things differ. Their 4-bit weights and paged optimiser, which
save memory, are left out. Gradients are clipped at 1, not 0.3.
"""

from __future__ import annotations

import inspect
import random
import warnings
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import asdict, replace
from itertools import chain
from pathlib import Path
from typing import Any, NamedTuple

import torch
from torch import Tensor
from torch.nn.functional import cross_entropy

from lmkbc.ask.builder import PromptBuilder
from lmkbc.ask.context import as_context, gathered
from lmkbc.ask.prompts import target
from lmkbc.errors import InputError, OptionError
from lmkbc.generate.access import local_model, source
from lmkbc.generate.language_model import LanguageModelSpec
from lmkbc.link.disambiguation import HitChoice, question
from lmkbc.link.search import open_search
from lmkbc.local.checkpoint import library_of_adapters
from lmkbc.local.model import CausalModel
from lmkbc.models.base import Message, Prompt
from lmkbc.models.prefixes import Tokens, common
from lmkbc.notes import Notes
from lmkbc.progress import Report, silent
from lmkbc.recipe import Recipe
from lmkbc.session.run import Run
from lmkbc.train.cloze_training import IGNORED
from lmkbc.train.corpus import Corpus, HeldOut, alias_groups, near
from lmkbc.train.loop import Trained
from lmkbc.train.loop import train as fit
from lmkbc.train.prompt_vectors import padded
from lmkbc.train.training import Lora, check_out, checkpoint_of, finish, saved
from lmkbc.tune.tuned_rules import split_sha256
from lmkbc.types import Example, GoldObject, Query


def train(
    run: Run,
    recipe: Recipe,
    out: Path,
    lora: Lora,
    *,
    corpus: Corpus | None = None,
    report: Report = silent,
) -> Trained:
    """Train an adapter with the prompts of the recipe's causal generator, and write it to `out`.

    corpus: facts to learn, each a worked example for others; default: the edition's train split. `lmkbc predict --model
    OUT` uses the adapter. A training that was killed resumes from its last checkpoint, beside `out`.
    """
    spec = _causal(recipe)
    check_out(out, source(spec, run))
    if corpus and lora.mixed:
        raise OptionError("mixed", "is of the train split alone: leave it out, or --facts")
    peft = library_of_adapters("training an adapter")
    local = local_model(spec, replace(run, in_memory={}), Notes())  # a model of its own: training changes it
    model, base = local.model, local.identity
    if corpus:
        proven: dict[str, Any] = {"proof": [*corpus.proof]}
        rows = of_facts(run, spec, model, corpus, lora.facts, lora.seed)
    else:
        rows = of_split(run, spec, model, mixed=lora.mixed)
        proven = {"held_out": len(run.train) - len(rows)}
    kept = [row for row in rows if len(row.tokens) <= lora.longest]
    torch.manual_seed(lora.seed)
    config = peft.LoraConfig(
        r=lora.rank,
        lora_alpha=lora.alpha,
        lora_dropout=lora.dropout,
        task_type="CAUSAL_LM",
        target_modules=list(lora.targets) or "all-linear",
    )
    with warnings.catch_warnings(action="ignore", category=FutureWarning):  # peft uses a name that transformers changed
        adapted: Any = peft.get_peft_model(model.model, config)
    done = fit(
        adapted,
        lambda batches: loss(model.model, [*chain.from_iterable(batches)]),
        alike(kept, lora.batch),
        lora.plan,
        name="lora",
        about=(base, lora),
        checkpoint=checkpoint_of(out),
        report=report,
    )
    about = {
        "base": Path(local.name).name,
        "identity": base,
        "edition": run.edition.name,
        "system": recipe.name,
        "train_sha256": split_sha256(run, "train"),
        "examples": sum(row.answers for row in kept),
        **proven,
        "left_out": sum(row.answers for row in rows) - sum(row.answers for row in kept),
        "lora": asdict(lora),
        "losses": done.losses,
        "steps": done.steps,
    }
    files = saved(adapted)
    finish(out, {name: files[name] for name in ("adapter_config.json", "adapter_model.safetensors")}, about)
    return done


def _causal(recipe: Recipe) -> LanguageModelSpec:
    for spec in (spec for table in recipe.generate for spec in table.whole()):
        if isinstance(spec, LanguageModelSpec) and spec.component == "causal":
            return spec
    raise InputError(f"the recipe {recipe.name!r} has no 'causal' generator to train: name one that has, as llm2kb23")


MOST_HITS = 7
"""Most hits of a choice, as in LLM2KB."""


class _TaughtPrompt(NamedTuple):
    """Tokens of prompt and answers.

    golds: the token where it is learnt, -100 elsewhere. answers: number of answers that are learnt.
    """

    tokens: Tokens
    golds: Tokens
    answers: int = 1


def of_split(run: Run, spec: LanguageModelSpec, model: CausalModel, *, mixed: bool = False) -> list[_TaughtPrompt]:
    """Return a prompt for each train row.

    Rows about a subject that any edition holds out are left out, also from worked examples. mixed: whether to add the
    same prompts without context, and choices among hits.
    """
    held_out = HeldOut.of(run.workspace, alias_groups(run.train))
    examples = [example for example in run.train if not held_out.names(example.query.subject)]
    asking, finder = spec.asking(run, examples), spec.provider(run)
    asked = spec.asked(run)
    examples = [example for example in examples if example.query.relation in asked]
    queries = [example.query for example in examples]
    passages = gathered(finder, queries) if finder else {}
    contexts = [as_context(passages.get(query, ())) for query in queries]
    pairs = [
        (asking.prompt(example.query, context), answer(run, asking, example))
        for example, passage in zip(examples, contexts, strict=True)
        for context in ((passage, "") if mixed and passage else (passage,))
    ]
    chosen = choices(run, model, examples) if mixed else ()
    return [_taught(model, [pair]) for pair in (*pairs, *chosen)]


def choices(run: Run, model: CausalModel, examples: Sequence[Example]) -> Iterator[tuple[Prompt, str]]:
    """Yield a prompt for each object's name to choose among its hits, as in linking, and the number of the right hit.

    A name is left out if its search gives only one hit, or lacks the right one.
    """
    named = [
        (example.query, gold)
        for example in examples
        for gold in example.objects
        if gold.name and gold.id and run.relations[example.query.relation].has_entities()
    ]
    hits_of = open_search(run.search_table, offline=run.offline).search([gold.name for _, gold in named])
    chats = bool(model.tokenizer.chat_template)
    for query, gold in named:
        hits = hits_of[gold.name][:MOST_HITS]
        places = [hit.id for hit in hits]
        if len(hits) > 1 and gold.id in places:
            asked = question(HitChoice(query, gold.name, hits), run.relations[query.relation])
            prompt = Prompt((), (Message("user", asked),), "single" if chats else "completion")
            yield prompt, f"{'' if chats else ' '}{places.index(gold.id) + 1}"


def of_facts(
    run: Run, spec: LanguageModelSpec, model: CausalModel, corpus: Corpus, most: int, seed: int = 0
) -> list[_TaughtPrompt]:
    """Return prompts with several facts each: those of the train split, and at most `most` others per relation.

    A prompt has as many facts as the recipe shows and asks. Objects are in random order, so that an answer may begin
    with any of them.
    """
    spelt = {relation.name: name for name, relation in spec.asked(run).items()}
    by_relation: defaultdict[str, list[Example]] = defaultdict(list)
    for fact in (*corpus.challenge, *near(corpus, most, seed)):
        if fact.relation in spelt:
            objects = tuple(GoldObject((name,)) for name in fact.objects)
            by_relation[spelt[fact.relation]].append(Example(Query(fact.subject, spelt[fact.relation]), objects))
    asking = spec.asking(run, [])
    return [
        _taught(
            model,
            [  # each fact after those before it
                (asking.showing(example.query, examples[:place]), answer(run, asking, example))
                for place, example in enumerate(examples)
            ],
        )
        for name, group in sorted(by_relation.items())
        for examples in _together(asking, group, random.Random(repr((seed, name))))
    ]


def loss(model: Any, prompts: Sequence[_TaughtPrompt]) -> Tensor:
    """Return the mean cross-entropy of the answers' tokens. Tokens of prompts do not count."""
    device = next(model.parameters()).device
    ids, keep = padded([prompt.tokens for prompt in prompts], 0, device)
    golds, _ = padded([prompt.golds for prompt in prompts], IGNORED, device)
    places = (golds[:, 1:] != IGNORED).any(0).nonzero().flatten()  # logits are needed only here
    some = "logits_to_keep" in inspect.signature(model.forward).parameters
    logits = model(
        input_ids=ids, attention_mask=keep, use_cache=False, **({"logits_to_keep": places} if some else {})
    ).logits
    logits = logits if some else logits[:, places]
    return cross_entropy(logits.flatten(0, 1).float(), golds[:, places + 1].flatten(), ignore_index=IGNORED)


def alike(prompts: Sequence[_TaughtPrompt], size: int) -> list[list[_TaughtPrompt]]:
    """Return batches of prompts of similar length, so that there is little padding."""
    ordered = sorted(prompts, key=lambda prompt: len(prompt.tokens))
    return [ordered[start : start + size] for start in range(0, len(ordered), size)]


def answer(run: Run, asking: PromptBuilder, example: Example) -> str:
    """Return the right answer in the prompt's style, as in worked examples."""
    return target(asking.plan(example.query).style, run.relations, example, edition=run.edition.name)


def _together(asking: PromptBuilder, examples: Sequence[Example], draw: random.Random) -> Iterator[list[Example]]:
    """Yield groups of a relation's shuffled examples, each as large as a prompt shows and asks."""
    shots = asking.plan(examples[0].query).selector.shots
    shuffled = [
        replace(example, objects=tuple(draw.sample(example.objects, len(example.objects))[: shots.names]))
        for example in draw.sample(examples, len(examples))
    ]
    for start in range(0, len(shuffled), shots.k + 1):
        yield shuffled[start : start + shots.k + 1]


def _taught(model: CausalModel, pairs: Sequence[tuple[Prompt, str]]) -> _TaughtPrompt:
    """Return the last prompt and its answer. Earlier answers are learnt too if their prompts begin the last one."""
    asked = [prompt.text if prompt.form == "completion" else model.chat(prompt.messages()) for prompt, _ in pairs]
    starts = model.encode(asked)
    wholes = model.encode([text + reply for text, (_, reply) in zip(asked, pairs, strict=True)])
    end = model.tokenizer.eos_token_id
    tokens = (*wholes[-1], *([end] if isinstance(end, int) else []))
    golds, answers = [IGNORED] * len(tokens), 0
    for start, whole in zip(starts, wholes, strict=True):
        first = common(start, whole)
        if common(start, tokens) >= first:
            learnt = slice(first, common(whole, tokens) + 1)  # with one more token, which ends the answer
            golds[learnt] = tokens[learnt]
            answers += 1
    return _TaughtPrompt(tokens, tuple(golds), answers)
