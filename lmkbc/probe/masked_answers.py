"""Answers of masked models to benchmarks: ranks of LAMA's objects, and KMIR's eight masks.

LAMA: the gold objects are ranked in the vocabulary that the models share.

KMIR (Gao et al. 2022): the mask of a question becomes eight masks, all filled at once. The answer is tokenised and
padded to eight tokens; the model is fine-tuned on the train split.
"""

from __future__ import annotations

import hashlib
import json
import math
import random
from collections.abc import Callable, Collection, Mapping, Sequence
from itertools import chain
from pathlib import Path
from typing import cast

import msgspec
import torch
from torch import Tensor, nn

from lmkbc.errors import InputError
from lmkbc.files.atomic import blank, settle
from lmkbc.masked.backbone import Backbone, Clozes, load
from lmkbc.masked.forward import Forward
from lmkbc.masked.vocabulary import Words
from lmkbc.probe.kmir.questions import MASK, Question
from lmkbc.probe.lama.lama_data import GUESSES, NAMES, SENTENCE, SENTENCE_MASK, Rank, RelationFacts
from lmkbc.progress import Report, silent
from lmkbc.train.loop import train
from lmkbc.train.prompt_vectors import at_masks, padded
from lmkbc.train.training import MODEL, TrainingPlan, checkpoint_of, write


class MaskedRanks:
    """Masked model over a vocabulary of whole words. ids: word -> its token in the model; each word is one token."""

    def __init__(self, backbone: Backbone, vocabulary: Sequence[str], ids: Mapping[str, int] | None = None) -> None:
        ids = known_words(backbone) if ids is None else ids
        self._clozes, self._forward = Clozes(backbone), Forward(backbone)
        self._places = {word: place for place, word in enumerate(vocabulary)}
        self._columns = torch.tensor([ids[word] for word in vocabulary])

    def ranks(self, relation: RelationFacts) -> list[Rank]:
        """Return the rank of each fact's object. Words of equal probability do not lower it."""
        inputs = self._inputs(relation)
        gold = torch.tensor([self._places[object_] for _, object_ in relation.facts])
        ranks: dict[int, Rank] = {}
        for indices, logits in self._forward.logits(inputs, self._columns):
            logs = logits[:, 0].log_softmax(-1).cpu()
            gold_logs = logs.gather(1, gold[indices][:, None])
            places = (logs > gold_logs).sum(1) + 1
            ranks |= zip(indices, zip(places.tolist(), gold_logs[:, 0].tolist(), strict=True), strict=True)
        return [ranks[index] for index in range(len(inputs))]

    def _inputs(self, relation: RelationFacts) -> list[list[int]]:
        subjects = [subject for subject, _ in relation.facts]
        if relation.cloze != SENTENCE:
            return self._clozes.fill(relation.cloze, subjects)
        parts = [sentence.replace("{", "{{").replace("}", "}}").split(SENTENCE_MASK) for sentence in subjects]
        return [self._clozes.fill(f"{before}{{subject}}{{mask}}{after}", [""])[0] for before, after in parts]

    def guesses(self, relations: Sequence[RelationFacts]) -> Callable[[str, str], Collection[str]]:
        """Return a function from relation and word of a person's name to the likeliest objects, for LAMA-UHN."""
        words, likeliest = list(self._places), dict[tuple[str, str], frozenset[str]]()
        for relation in relations:
            names = list(dict.fromkeys(chain.from_iterable(subject.split() for subject, _ in relation.facts)))
            inputs = self._clozes.fill(NAMES[relation.name], names) if relation.name in NAMES else []
            for indices, logits in self._forward.logits(inputs, self._columns):
                tops = logits[:, 0].topk(min(GUESSES, len(words))).indices.tolist()
                for index, top in zip(indices, tops, strict=True):
                    likeliest[relation.name, names[index]] = frozenset(words[place] for place in top)
        return lambda relation, name: likeliest.get((relation, name), frozenset())


def known_words(backbone: Backbone) -> Mapping[str, int]:
    """Return the whole words of a model's vocabulary with their ids. A word with several ids has the first."""
    ids: dict[str, int] = {}
    for index, word in Words(backbone.tokenizer).plain.items():
        ids.setdefault(word, index)
    return ids


def sentence_scores(backbone: Backbone, groups: Sequence[Sequence[str]]) -> list[list[float]]:
    """Return the pseudo-log-likelihood of each sentence of some groups; -inf if it exceeds the window.

    It is the sum over its tokens, each predicted behind a mask for it and for the rest of its word ("within word, left
    to right"; Kauf and Ivanova, ACL 2023). An input that several sentences share is read once.
    """
    encoded = backbone.tokenizer(list(chain(*groups)), return_special_tokens_mask=True, verbose=False)
    predicted: dict[tuple[int, ...], list[tuple[int, int, int]]] = {}  # -> sentence, token, and number of its mask
    scores = [0.0 if len(ids) <= backbone.longest else -math.inf for ids in encoded["input_ids"]]
    for number, ids in enumerate(encoded["input_ids"]):
        words, special = encoded.word_ids(number), encoded["special_tokens_mask"][number]
        for at, token in enumerate(ids) if math.isfinite(scores[number]) else ():
            if not special[at]:
                last = next((end for end in range(at + 1, len(ids)) if words[end] != words[at]), len(ids))
                masked = (*ids[:at], *[backbone.mask_id] * (last - at), *ids[last:])
                predicted.setdefault(masked, []).append((number, token, masked[:at].count(backbone.mask_id)))
    inputs = list(predicted)
    for indices, logits in Forward(backbone).logits(inputs):
        for index, logs in zip(indices, logits.log_softmax(-1).cpu(), strict=True):
            for number, token, place in predicted[inputs[index]]:
                scores[number] += float(logs[place, token])
    of_each = iter(scores)
    return [[next(of_each) for _ in group] for group in groups]


MASKS = 8
HELD_OUT = 1000
"""Most questions of dev for early stopping."""

Pair = tuple[Sequence[int], Sequence[int]]
"""Token ids of a question, and those of its answer."""


def inputs(backbone: Backbone, questions: Sequence[Question]) -> list[list[int]]:
    """Return token ids of each question with eight masks.

    A long question is cut around them to the model's input length.

    InputError for a question without exactly one mask.
    """
    tokenizer, mask = backbone.tokenizer, backbone.mask_id
    special = set(tokenizer.all_special_tokens) - {MASK}
    rows = []
    for question in questions:
        text = question.question
        for token in special:
            text = text.replace(token, " ")
        ids = list(tokenizer(text.replace(MASK, tokenizer.mask_token), verbose=False)["input_ids"])
        if text.count(MASK) != 1 or ids.count(mask) != 1:
            raise InputError(f"question {question.id!r} needs {MASK} exactly once: {question.question!r}")
        rows.append(_widened(ids, mask, backbone.longest))
    return rows


def _widened(ids: list[int], mask: int, longest: int) -> list[int]:
    at = ids.index(mask)
    ids = [*ids[:at], *[mask] * MASKS, *ids[at + 1 :]]
    if len(ids) <= longest:
        return ids
    first, body, last = ids[:1], ids[1:-1], ids[-1:]  # special tokens at both ends are kept
    room = longest - 2
    start = max(0, min(len(body) - room, at - 1 - (room - MASKS) // 2))
    return [*first, *body[start : start + room], *last]


def labels(backbone: Backbone, questions: Sequence[Question], seed: int) -> list[list[int]]:
    """Return eight token ids per question: one of its accepted answers, cut or padded."""
    words, fill = Words(backbone.tokenizer), _padding(backbone)
    chosen = [random.Random(f"{seed} {question.id}").choice(question.answer) for question in questions]
    return [[*words.ids(answer)[:MASKS], *[fill] * MASKS][:MASKS] for answer in chosen]


def _padding(backbone: Backbone) -> int:
    tokenizer = backbone.tokenizer
    return cast(int, tokenizer.sep_token_id if tokenizer.pad_token_id is None else tokenizer.pad_token_id)


def finetuned(
    backbone: Backbone,
    questions: Sequence[Question],
    dev: Sequence[Question],
    plan: TrainingPlan,
    out: Path,
    identity: str,
    report: Report = silent,
) -> Backbone:
    """Return the model after training on questions. It is saved to a directory, and loaded from there the next time.

    A killed training resumes from its checkpoint. dev: questions for early stopping. identity: identity of the initial
    weights. InputError if the directory holds something else.
    """
    mark = hashlib.sha256(repr((identity, plan)).encode() + msgspec.json.encode([questions, dev])).hexdigest()
    if out.is_dir():
        settle(out, MODEL)
    record = out / "training.json"
    if record.is_file() and json.loads(record.read_bytes()).get("training") == mark:
        return load(out, offline=True)
    if out.exists() and not blank(out):
        raise InputError(f"{out} holds something other than this training: name another directory, or remove it")
    learned, held_out = (
        [*zip(inputs(backbone, part), labels(backbone, part, plan.seed), strict=True)]
        for part in (questions, dev[:HELD_OUT])
    )

    def loss(part: Sequence[Pair]) -> Tensor:
        ids, keep = padded([row for row, _ in part], _padding(backbone), backbone.device)
        logits = at_masks(backbone.model, ids == backbone.mask_id, input_ids=ids, attention_mask=keep)
        wanted = torch.tensor([answer for _, answer in part], device=backbone.device)
        return nn.functional.cross_entropy(logits.float(), wanted.flatten())

    trained = train(
        backbone.model,
        loss,
        learned,
        plan,
        name="fine-tuning",
        held_out=held_out,
        checkpoint=checkpoint_of(out),
        report=report,
    )
    facts = {"training": mark, "losses": trained.losses, "held_out_losses": trained.held_out, "steps": trained.steps}
    write(out, backbone.model, backbone.tokenizer, None, facts)
    return backbone


def guesses(backbone: Backbone, questions: Sequence[Question], report: Report = silent) -> list[str]:
    """Return the model's answers: the likeliest token at each of the eight masks, up to the first padding."""
    words, fill = Words(backbone.tokenizer), _padding(backbone)
    barred = torch.tensor(sorted(set(backbone.tokenizer.all_special_ids) - {fill}))
    texts, done = [""] * len(questions), 0
    for indices, logits in Forward(backbone).logits(inputs(backbone, questions)):
        logits[..., barred.to(logits.device)] = -torch.inf
        for index, tokens in zip(indices, logits.argmax(-1).tolist(), strict=True):
            texts[index] = words.text(tokens[: tokens.index(fill)] if fill in tokens else tokens)
        done += len(indices)
        report("questions", done, len(questions))
    return texts
