"""BEAR as a benchmark: the likeliest of a relation's sentences, one per option, for each of three templates.

Wiland, Ploner and Akbik, BEAR: A Unified Framework for Evaluating Relational Knowledge in Causal and Masked Language
Models, Findings of NAACL 2024.
"""

from __future__ import annotations

import random
import re
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import msgspec
import numpy as np
from msgspec import Meta

from lmkbc.errors import InputError, counted
from lmkbc.files import jsonl, reader
from lmkbc.models.base import Message, Prompt
from lmkbc.probe.benchmark import BenchmarkRun, Findings, Floats, Sheet, opened, percent, wanted_tables
from lmkbc.probe.lama.lama_data import as_cloze
from lmkbc.select.ranking import Mask
from lmkbc.settings import listed
from lmkbc.types import grouped

PUBLISHED: Mapping[str, tuple[float, float | None]] = {
    "Llama-3-8B": (68.6, 1.3),
    "Mistral-7B": (65.4, None),
    "Llama-3-8B-Instruct": (64.1, None),
    "gemma-7b": (63.7, None),
    "gemma-2b": (51.5, None),
    "opt-6.7b": (43.8, None),
    "SmolLM2-1.7B": (40.9, None),
    "opt-1.3b": (31.5, None),
    "SmolLM2-360M": (27.7, None),
    "gpt2-xl": (26.2, None),
    "gpt2-large": (22.2, None),
    "roberta-large": (21.5, None),
    "SmolLM2-135M": (19.9, 1.2),
    "bert-large-cased": (19.9, None),
    "SmolLM-135M": (19.4, None),
    "gpt2-medium": (19.0, None),
    "bert-base-cased": (18.4, 0.4),
    "roberta-base": (16.5, None),
    "opt-125m": (16.4, None),
    "gpt2": (13.5, 0.8),
    "xlm-roberta-base": (11.4, None),
}
"""Model -> accuracy in percent, mean over the three templates, and its standard error where it is known here.

The figures are those of the authors' library.
"""
FOLDS = 10
"""Folds of the floors; all items of a subject are in one."""
_FILE = re.compile(r"(?:^|/)(metadata_relations|relation_info|P\d+)\.jsonl?$")


class _Relation(msgspec.Struct):
    templates: tuple[str, str, str]
    answer_space_labels: list[str]


class BearItem(msgspec.Struct, frozen=True):
    """A subject, and the place of its object among the options."""

    sub_label: str
    answer_idx: int


@dataclass(frozen=True, slots=True)
class BearRelation:
    """A relation: clozes with {subject} and {mask}, options, items, and the domains that it belongs to."""

    name: str
    clozes: tuple[str, ...]
    options: tuple[str, ...]
    items: tuple[BearItem, ...]
    domains: tuple[str, ...] = ()

    @property
    def cardinality(self) -> str:
        """Return the name of its kind: whether an option is the answer of one item alone, or of several."""
        answers = [item.answer_idx for item in self.items]
        return "one item an option" if len(set(answers)) == len(answers) else "several items an option"

    def places(self, limit: int | None) -> list[int]:
        """Return the places of at most `limit` items, spread evenly: the file has them sorted by answer."""
        count = len(self.items)
        return [place * count // limit for place in range(limit)] if limit and limit < count else list(range(count))

    def sentence(self, cloze: str, subject: str, option: str) -> str:
        """Return a sentence that begins with a capital."""
        text = cloze.format(subject=subject, mask=option)
        return text[:1].upper() + text[1:]


def read_bear(path: Path, names: Collection[str] | None = None) -> list[BearRelation]:
    """Read the archive or its tree. names: relations to read; None for all.

    InputError for a missing relation, and for a relation whose files do not belong together.
    """
    files = {match[1]: raw for match, raw in reader.tree(path, _FILE, "BEAR's")}
    try:
        metadata = msgspec.json.decode(files.get("metadata_relations", b"{}"), type=dict[str, _Relation])
        info = msgspec.json.decode(files.get("relation_info", b"{}"), type=dict[str, dict[str, list[str]]])
    except msgspec.MsgspecError as error:
        raise InputError(f"{path}: the metadata cannot be read ({error}): unpack or fetch the archive again") from None
    wanted = sorted(metadata if names is None else set(names), key=lambda name: (len(name), name))
    if not wanted or (lacking := [name for name in wanted if name not in metadata or name not in files]):
        what = lacking[0] if wanted else "any relation"
        raise InputError(f"{path} holds no items of {what}: give BEAR.tar.xz or its tree, and relations as in P36")
    relations = []
    for name in wanted:
        items, about = jsonl.decoded(path, files[name], msgspec.json.Decoder(BearItem)), metadata[name]
        if not items or not all(0 <= item.answer_idx < len(about.answer_space_labels) for item in items):
            raise InputError(f"{path}: the items of {name} do not fit its options: unpack or fetch the archive again")
        clozes = tuple(as_cloze(template, f"{path}: {name}") for template in about.templates)
        domains = info.get(name, {}).get("domains", [])
        relations.append(BearRelation(name, clozes, tuple(about.answer_space_labels), tuple(items), tuple(domains)))
    return relations


FLOORS = ("chance", "class prior", "naive Bayes")


def floors(relation: BearRelation, places: Sequence[int]) -> Floats:
    """Return the probability that each floor answers each item right without a model, (floors, items).

    The class prior and naive Bayes learn from the items of other folds.
    """
    from lmkbc.train.random_controls import LearnedControls

    subjects = sorted({item.sub_label for item in relation.items})
    random.Random(relation.name).shuffle(subjects)
    fold_of = {subject: number % FOLDS for number, subject in enumerate(subjects)}
    facts = [(item.sub_label, relation.options[item.answer_idx]) for item in relation.items]
    learned = [
        LearnedControls((subject, "", answer) for subject, answer in facts if fold_of[subject] != fold)
        for fold in range(FOLDS)
    ]
    right = [
        (1 / len(relation.options), own.majority(subject, "") == answer, own.naive_bayes(subject, "") == answer)
        for subject, answer in (facts[place] for place in places)
        for own in [learned[fold_of[subject]]]
    ]
    return np.array(right, dtype=np.float64).T


TABLES = ("overall", "relation", "domain", "cardinality")
ITEMS = 32
"""Items whose sentences are scored together: where an option comes first, they share its beginning."""

Scorer = Callable[[Sequence[Sequence[str]]], Sequence[Sequence[float] | None]]
"""Function from groups of sentences to the log-probability of each; the sentences of a group begin alike."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BearBenchmark:
    """BEAR's items: whichever option makes the likeliest sentence is the answer of a causal or a masked model."""

    source: Annotated[
        Path, Meta(description="BEAR.tar.xz, or the directory that it unpacks to.", extra={"argument": True})
    ]
    model: Annotated[str, Meta(description="Causal or masked model: id on the hub, or directory.")]
    properties: Annotated[str | None, Meta(description="Only these relations, comma-separated.")] = None
    limit: Annotated[int | None, Meta(ge=1, description="At most N items per relation, spread over its options.")] = (
        None
    )
    table: Annotated[
        str | None, Meta(description=f"Print only these tables, comma-separated, of {', '.join(TABLES)}.")
    ] = None

    def run(self, run: BenchmarkRun) -> Findings:
        """Score every option of every item as a sentence."""
        tables = wanted_tables(self.table, TABLES, TABLES[:1])
        relations = read_bear(self.source, listed(self.properties))
        places = {relation.name: relation.places(self.limit) for relation in relations}
        score, right = scorer(self.model, run), dict[str, Mask]()
        total = sum(len(places[one.name]) * len(one.options) * len(one.clozes) for one in relations)
        start, done = time.process_time(), 0
        with run.progress() as report:
            report("sentences", done, total)
            for relation in relations:
                gold = np.array([relation.items[place].answer_idx for place in places[relation.name]])
                rows = []
                for cloze in relation.clozes:
                    scores = option_scores(relation, cloze, places[relation.name], score)
                    rows.append((scores.argmax(1) == gold) & np.isfinite(scores.max(1)))
                    report("sentences", done := done + len(gold) * len(relation.options), total)
                right[relation.name] = np.array(rows)
        seconds = time.process_time() - start
        run.note(
            f"{self.model}: {total} sentences of {counted(len(relations), 'relation')} in {seconds:.0f} CPU-seconds, "
            f"{1000 * seconds / total:.1f} ms each where none was kept"
        )
        below = {one.name: floors(one, places[one.name]) for one in relations}
        found = {
            name: {
                part: accuracy([right[one] for one in own], [below[one] for one in own])
                for part, own in parted(relations, name, self.model).items()
            }
            for name in tables
        }
        return Findings(found, [_sheet(name, found[name]) for name in tables])


def scorer(model: str, run: BenchmarkRun) -> Scorer:
    """Return a function that scores sentences: by log-likelihood, or by pseudo-log-likelihood of a masked model."""
    from lmkbc.probe.model_kinds import model_kind

    if model_kind(model, offline=run.offline) == "masked":
        from lmkbc.masked.backbone import load
        from lmkbc.probe.masked_answers import sentence_scores

        backbone = load(model, offline=run.offline)
        return lambda groups: sentence_scores(backbone, groups)
    causal, nothing = opened(model, run), Prompt((), (Message("user", ""),), "completion")
    return lambda groups: causal.score([nothing] * len(groups), groups)


def option_scores(relation: BearRelation, cloze: str, places: Sequence[int], score: Scorer) -> Floats:
    """Return the score of each option of some items in one template, (items, options); -inf if it is unknown.

    The sentences of a group share what comes first in the template: the subject, or the option.
    """
    by_subject = cloze.index("{subject}") < cloze.index("{mask}")
    rows: list[Floats] = []
    for start in range(0, len(places), ITEMS):
        subjects = [relation.items[place].sub_label for place in places[start : start + ITEMS]]
        table = [[relation.sentence(cloze, subject, option) for option in relation.options] for subject in subjects]
        groups = table if by_subject else [list(column) for column in zip(*table, strict=True)]
        scores = np.array([row or [-np.inf] * len(group) for row, group in zip(score(groups), groups, strict=True)])
        rows.append(scores if by_subject else scores.T)
    return np.concatenate(rows)


def parted(relations: Sequence[BearRelation], table: str, whole: str) -> Mapping[str, list[str]]:
    """Return part -> its relations, for a table. A relation of several domains is in each. whole: name of all."""
    tables = {
        one.name: {"relation": (one.name,), "domain": one.domains, "cardinality": (one.cardinality,)}
        for one in relations
    }
    return grouped((part, name) for name, parts in tables.items() for part in parts.get(table, (whole,)))


def accuracy(right: Sequence[Mask], below: Sequence[Floats]) -> dict[str, Any]:
    """Return the accuracy over all items of some relations: mean over templates, its standard error, and the floors.

    right: a table per relation, (templates, items). below: the same of its floors.
    """
    templates: Floats = np.concatenate(right, axis=1).mean(1)
    error = float(templates.std(ddof=1) / len(templates) ** 0.5) if len(templates) > 1 else None
    own = dict(zip(FLOORS, np.concatenate(below, axis=1).mean(1).tolist(), strict=True))
    items = sum(table.shape[1] for table in right)
    return {"accuracy": float(templates.mean()), "error": error, "templates": templates.tolist(), "items": items, **own}


def _sheet(name: str, parts: dict[str, dict[str, Any]]) -> Sheet:
    rows: list[list[Any]] = [
        [part, *percent(row["accuracy"], row["error"], *(row[floor] for floor in FLOORS)), row["items"]]
        for part, row in parts.items()
    ]
    if name == "overall":
        rows += ([f"published: {model}", *scores, *[None] * (len(FLOORS) + 1)] for model, scores in PUBLISHED.items())
    heads = ["model" if name == "overall" else name, "accuracy %", "+-", *(f"{floor} %" for floor in FLOORS), "items"]
    return Sheet(heads, rows, name)
