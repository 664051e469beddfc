"""Prompts from mined clozes: ranked by a masked model's train F1, and averaged as long as F1 rises.

Li T. et al. 2022, ablation. Scores are used as in the recipe `li22`. F1 is at the best cut-off on the same rows, so it
is in sample in every way.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from pathlib import Path

import numpy as np
import tomli_w

from lmkbc.edition import Edition
from lmkbc.errors import InputError, counted
from lmkbc.files.checksum import file_sha256
from lmkbc.masked.backbone import Backbone, load
from lmkbc.masked.candidates import Scores, combine
from lmkbc.masked.cloze_settings import FUNCTION_WORDS, RescaledProbe
from lmkbc.masked.masked import MaskedGenerator
from lmkbc.models.identity import model_name
from lmkbc.names import folded_key
from lmkbc.progress import Report, silent, tracked
from lmkbc.relation import Relation
from lmkbc.scoring.matchers import AliasScorer
from lmkbc.session.run import Run
from lmkbc.session.subset import Subset
from lmkbc.train.name_tree import NameTree
from lmkbc.train.text_lines import text_rows
from lmkbc.tune.outcomes import Curve, Outcomes, cutoff_steps
from lmkbc.types import Candidate, CandidateSet, Example, Query, grouped

IN_SAMPLE = (
    "F1 is in sample: the same train rows chose clozes and cut-offs; 'lmkbc evaluate' on val shows their real value"
)


@dataclass(frozen=True, slots=True)
class _RankedCloze:
    """A cloze, its count in the text, and its train F1."""

    cloze: str
    count: int
    f1: float


@dataclass(frozen=True, slots=True)
class MinedPrompts:
    """Mined prompts of a relation. own: train F1 of the relation's own first cloze, for comparison.

    pairs: number of adjacent subjects and objects. ranked: best first. f1: F1 of the averaged scores of the best 1, 2
    and so on. If `f1` is longer than `clozes`, its last value gained too little.
    """

    pairs: int
    own: float
    ranked: tuple[_RankedCloze, ...]
    f1: tuple[float, ...]
    clozes: tuple[str, ...]

    @property
    def best(self) -> float:
        """Return the train F1 of the chosen clozes."""
        return self.f1[len(self.clozes) - 1]


class TrainF1:
    """Train F1 of one relation's clozes with a masked model. rows: rows of the relation, by the edition's name.

    If an edition scores ids, answers are compared with names, since nothing is linked here.
    """

    def __init__(self, backbone: Backbone, edition: Edition, relation: Relation, rows: Sequence[Example]) -> None:
        self._backbone, self._relation, self._rows = backbone, relation, rows
        by_name = replace(edition.metric, scorer=AliasScorer())
        is_id = edition.target == "id"
        self._edition = replace(edition, target="string", column="ObjectEntities", metric=by_name) if is_id else edition

    def answers(self, cloze: str) -> list[Scores]:
        """Return the scores of objects for each row."""
        spelt = self._rows[0].query.relation
        probe = RescaledProbe(clozes={spelt: (cloze,)})
        generator = MaskedGenerator(self._backbone, self._edition, {spelt: self._relation}, self._rows, probe)
        scores = {
            candidates.query: {candidate.text: candidate.score for candidate in candidates.candidates}
            for candidates in generator.generate([row.query for row in self._rows])
        }
        return [scores[row.query] for row in self._rows]

    def of(self, *asked: Sequence[Scores]) -> float:
        """Return F1 of the averaged scores of several clozes, at the best cut-off."""
        sets = []
        for row, proposals in zip(self._rows, zip(*asked, strict=True), strict=True):
            merged = combine(proposals, "mean")
            sets.append(CandidateSet.proposing(row.query, [Candidate(name, score) for name, score in merged.items()]))
        every = np.ones(len(sets), dtype=np.bool_)
        _, total = Curve.of(cutoff_steps(Outcomes(sets, self._rows, self._edition)), every).best()
        return total / len(sets)


def choose(
    scored: TrainF1, manual: str, mined: Sequence[tuple[str, int]], pairs: int, gain: float, report: Report = silent
) -> MinedPrompts:
    """Rank mined clozes by F1, and average the best ones. A further one is added while F1 rises by more than `gain`.

    manual: the relation's own cloze, for comparison.
    """
    answers = {cloze: scored.answers(cloze) for cloze in tracked([cloze for cloze, _ in mined], "clozes", report)}
    alone = {cloze: scored.of(scores) for cloze, scores in answers.items()}
    ranked = sorted((_RankedCloze(cloze, count, alone[cloze]) for cloze, count in mined), key=lambda rank: -rank.f1)
    f1 = [ranked[0].f1]
    for number in range(2, len(ranked) + 1):
        f1.append(scored.of(*(answers[rank.cloze] for rank in ranked[:number])))
        if f1[-1] <= f1[-2] + gain:
            break
    kept = 1 + sum(after > before + gain for before, after in pairwise(f1))
    clozes = tuple(rank.cloze for rank in ranked[:kept])
    return MinedPrompts(pairs, scored.of(scored.answers(manual)), tuple(ranked), tuple(f1), clozes)


def mined_prompts(
    run: Run, model: str, corpus: Path, subset: Subset, *, most: int, gain: float, report: Report = silent
) -> tuple[dict[str, MinedPrompts], list[str]]:
    """Mine a text for prompts. Return them by the edition's names of relations, and a description in sentences.

    most: most clozes of a relation to rank. gain: least gain of train F1 for one more cloze.

    Train rows with the same question as in another split of the edition are left out. InputError for a text without
    clozes, and for a model that is not a masked LM.
    """
    rows, left_out = rows_of(run, subset)
    backbone = load(model, offline=run.offline)
    text = mine((line.text for line in text_rows(corpus)), (row for group in rows.values() for row in group), report)
    mined = {name: clozes for name in rows if (clozes := text.most(name, most))}
    if not mined:
        raise InputError(
            f"{corpus}: none of its {counted(text.sentences, 'sentence')} holds a train subject and one of its "
            "objects with telling words between them: give a text about them"
        )
    prompts = {}
    for name, clozes in mined.items():
        relation = run.relations[name]
        scored = TrainF1(backbone, run.edition, relation, rows[name])
        prompts[name] = choose(
            scored,
            relation.clozes[0],
            clozes,
            text.pairs[name],
            gain,
            lambda step, done, total, name=name: report(f"{name}: {step}", done, total),  # type: ignore[misc]
        )
    about = [
        f"corpus {corpus.name!r}: {counted(text.sentences, 'sentence')}, SHA-256 {file_sha256(corpus)}",
        f"{counted(sum(map(len, rows.values())), 'row')} of {run.edition.name}/train, without {left_out} that another "
        f"split asks too; model {model_name(backbone.name)}",
        f"the {most} most frequent spans of a relation, averaged while train F1 gains more than {gain:g}",
        IN_SAMPLE,
    ]
    if without := [name for name in rows if name not in mined]:
        about.append(f"nothing was found for {', '.join(without)}: a recipe uses its own clozes for these")
    return prompts, about


def written(prompts: Mapping[str, MinedPrompts], about: Iterable[str]) -> bytes:
    """Return a file of clozes by relation. Comments give their origin and the F1 of each step."""
    lines = ["# Mined prompts, for the setting `frames` of a masked generator.", *(f"# {line}" for line in about)]
    for name, mined in prompts.items():
        steps = ", ".join(f"{number}: {f1:.3f}" for number, f1 in enumerate(mined.f1, start=1))
        lines += [
            "",
            f"# {name}: {counted(mined.pairs, 'pair')}; train F1 of its own first cloze: {mined.own:.3f}",
            f"# train F1 of the best n: {steps}",
            *(f"# {rank.f1:.3f}, {counted(rank.count, 'time')}: {rank.cloze}" for rank in mined.ranked),
            tomli_w.dumps({name: {"clozes": list(mined.clozes)}}).rstrip("\n"),
        ]
    return ("\n".join(lines) + "\n").encode()


def rows_of(run: Run, subset: Subset) -> tuple[dict[str, list[Example]], int]:
    """Return the train rows by relation, and the number left out since another split has the same question."""
    edition, space = run.edition, run.workspace
    others = [split for split in edition.splits if split != "train" and space.has_data(edition, split)]
    asked = {_question(query) for split in others for query in space.queries(edition, split)}
    some = [row for row in run.train if subset.holds(row.query.relation)]
    kept = [row for row in some if _question(row.query) not in asked]
    return grouped((row.query.relation, row) for row in kept), len(some) - len(kept)


def _question(query: Query) -> tuple[str, str]:
    return query.relation, folded_key(query.subject)


LONGEST = 10
"""Most words of a span."""
MOST_SPANS = 100_000
"""Most distinct spans of a relation in memory. Beyond it, the rarer half is dropped."""
EVERY = 10_000
"""Sentences between two reports of progress."""

Words = tuple[str, ...]
"""A name in lower case, as words and punctuation marks."""
Place = tuple[int, int, bool]
"""Start and end of a name in a sentence, in tokens, and whether it is an object's."""

_TOKEN = re.compile(r"\w+|[^\w\s]")
_BRACKETS = frozenset("{}[]<>")


@dataclass(frozen=True, slots=True)
class _MinedText:
    """Counts of a text. pairs: relation -> number of adjacent subjects and objects.

    clozes: relation -> cloze -> count.
    """

    sentences: int
    pairs: Counter[str]
    clozes: dict[str, Counter[str]]

    def most(self, relation: str, number: int) -> list[tuple[str, int]]:
        """Return a relation's most frequent clozes with counts; equal counts in alphabetical order."""
        return sorted(self.clozes.get(relation, {}).items(), key=lambda item: (-item[1], item[0]))[:number]


class TrainFacts:
    """The facts of train rows, found by their names. Names match as whole words, in any case."""

    def __init__(self, rows: Iterable[Example]) -> None:
        self._names = NameTree()
        self._about: defaultdict[Words, list[tuple[str, frozenset[Words]]]] = defaultdict(list)
        for row in rows:
            subject = _words(row.query.subject)
            objects = frozenset(_words(name) for gold in row.objects for name in gold.names) - {()}
            if subject and objects:
                self._about[subject].append((row.query.relation, objects))
                for name in (subject, *objects):
                    self._names.add(name)

    def clozes_in(self, sentence: str) -> Iterator[tuple[str, str]]:
        """Yield (relation, cloze) for each adjacent subject and object of a fact. The cloze of a useless span is ""."""
        tokens = _words(sentence)
        places = grouped((tokens[start:end], (start, end)) for start, end in self._names.find(tokens))
        about = [(subject, *facts) for subject in places for facts in self._about.get(subject, ())]
        offsets = [token.span() for token in _TOKEN.finditer(sentence)] if about else []
        for subject, relation, objects in about:
            named = [(start, end, False) for start, end in places[subject]]
            named += [(start, end, True) for name in objects & places.keys() for start, end in places[name]]
            for (_, end, is_object), (start, _, is_other) in pairwise(_outermost(named)):
                if is_object != is_other and end <= start:
                    text = sentence[offsets[end - 1][1] : offsets[start][0]]
                    yield relation, _cloze(text, tokens[end:start], is_object)


def mine(sentences: Iterable[str], rows: Iterable[Example], report: Report = silent) -> _MinedText:
    """Count the clozes that sentences give for the facts of train rows."""
    facts, text, number = TrainFacts(rows), _MinedText(0, Counter(), defaultdict(Counter)), 0
    for number, sentence in enumerate(sentences, start=1):
        for relation, cloze in facts.clozes_in(sentence):
            text.pairs[relation] += 1
            if cloze:
                counts = text.clozes[relation]
                counts[cloze] += 1
                if len(counts) > MOST_SPANS:
                    text.clozes[relation] = Counter(dict(text.most(relation, MOST_SPANS // 2)))
        if number % EVERY == 0:
            report("sentences", number, None)
    return _MinedText(number, text.pairs, dict(text.clozes))


def _words(text: str) -> Words:
    return tuple(map(str.lower, _TOKEN.findall(text)))


def _outermost(places: Iterable[Place]) -> Iterator[Place]:
    """Yield places in order, without those inside another. Example: in "Paris Hilton", "Paris" is left out."""
    reached = 0
    for start, end, is_object in sorted(places, key=lambda place: (place[0], -place[1], place[2])):
        if end > reached:
            reached = end
            yield start, end, is_object


def _cloze(text: str, tokens: Sequence[str], object_first: bool) -> str:
    """Return the cloze of a span; "" for stop words only, a long span, or characters that a prompt may not hold.

    A single letter counts as a stop word, such as that of "'s".
    """
    text = re.sub(r"\s+", " ", text)
    spoken = [token for token in tokens if token[0].isalnum()]
    telling = any(len(word) > 1 and word not in FUNCTION_WORDS for word in spoken)
    if not telling or len(spoken) > LONGEST or not text.isprintable() or not _BRACKETS.isdisjoint(text):
        return ""
    return f"{{mask}}{text}{{subject}}." if object_first else f"{{subject}}{text}{{mask}}."
