"""Candidates from a masked LM: clozes are filled, their answers cleaned and merged, and vetoes applied."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from lmkbc.clean import clean, same_name
from lmkbc.errors import InputError
from lmkbc.generate.masked.answers import Answering, Scores, answering
from lmkbc.generate.masked.backbone import Backbone
from lmkbc.generate.masked.clozes import Clozes
from lmkbc.generate.masked.ensemble import combine
from lmkbc.generate.masked.entity_space import mapped
from lmkbc.generate.masked.forward import Forward
from lmkbc.generate.masked.lexicon import Lexicon, train_names
from lmkbc.generate.masked.preconditions import prepare
from lmkbc.generate.masked.probe import Probe
from lmkbc.generate.masked.vocabulary import expand, piece_counts
from lmkbc.generate.masked.words import Words
from lmkbc.types import Candidate, CandidateSet, Edition, Example, Query, Relation

CHUNK = 256
"""Queries answered at a time: enough for full batches, few enough to show progress."""


class _Job(NamedTuple):
    """A cloze of a query, by their indices."""

    query: int
    cloze: int
    template: str


class MaskedGenerator:
    """Asks a masked LM every query's clozes. Scores are probabilities; sources are "model#cloze".

    relations: by the edition's spelling. train: what the closed vocabularies come from; an object that only the
    query's own row names is not proposed. A declared veto scales all scores and proposes to answer nothing.
    """

    def __init__(
        self,
        backbone: Backbone,
        edition: Edition,
        relations: Mapping[str, Relation],
        train: Sequence[Example],
        probe: Probe,
    ) -> None:
        self._relations, self._probe = relations, probe
        self._origins = {
            name: train_names([row for row in train if row.query.relation == name]) for name in edition.relations
        }
        if probe.objects == "expand":
            backbone = self._expanded(backbone)
        self._name = Path(backbone.name).name.replace("#", "_")
        self._words, self._clozes = Words(backbone.tokenizer), Clozes(backbone)
        self._forward = Forward(backbone, probe.precision)
        self._answering: dict[str, Answering] = {}
        self._without: list[str] = []
        self._cleaned: dict[tuple[str, str], tuple[str, ...]] = {}

    @property
    def remarks(self) -> tuple[str, ...]:
        """What the user should know of the last run."""
        cut, without = self._clozes.cut, ", ".join(self._without)
        remarks = [f"{cut} clozes were cut to the longest input of {self._name}"] if cut else []
        if without:
            remarks.append(f"no train object of {without} is in {self._name}'s vocabulary: nothing is proposed there")
        return tuple(remarks)

    def generate(self, queries: Sequence[Query]) -> Iterator[CandidateSet]:
        """Yield one candidate set per query, best first, in the order of the queries' relations."""
        ordered = sorted(queries, key=lambda query: query.relation)
        for start in range(0, len(ordered), CHUNK):
            yield from self._answered(ordered[start : start + CHUNK])

    def _answered(self, queries: Sequence[Query]) -> Iterator[CandidateSet]:
        jobs: defaultdict[str, list[_Job]] = defaultdict(list)
        clozes, vetoes = [0] * len(queries), [0.0] * len(queries)
        for name, indices in _by_relation(queries).items():
            relation = self._relations[name]
            subjects = [queries[index].subject for index in indices]
            own: list[tuple[str, ...]] = [()] * len(indices)
            vetoed = [0.0] * len(indices)
            if self._probe.preconditions:
                own, vetoed = prepare(relation, subjects, self._forward, self._clozes, self._words)
            for index, templates, share in zip(indices, own, vetoed, strict=True):
                asked = templates or self._probe.templates(relation)
                clozes[index], vetoes[index] = len(asked), share
                vocabulary = name if self._probe.vocabulary == "train" else ""
                jobs[vocabulary] += [_Job(index, place, template) for place, template in enumerate(asked)]
        proposals: list[list[Scores]] = [[{}] * number for number in clozes]
        for vocabulary, group in jobs.items():
            for job, scores in self._filled(vocabulary, group, queries):
                proposals[job.query][job.cloze] = self._accepted(queries[job.query], scores)
        for query, proposed, share in zip(queries, proposals, vetoes, strict=True):
            yield self._set(query, proposed, share)

    def _filled(self, vocabulary: str, jobs: Sequence[_Job], queries: Sequence[Query]) -> Iterator[tuple[_Job, Scores]]:
        if vocabulary not in self._answering:
            lexicon = None if self._probe.objects == "masks" else self._lexicon(vocabulary)
            if lexicon is not None and not lexicon.names:
                self._without.append(vocabulary)
            self._answering[vocabulary] = answering(self._probe, self._forward, self._clozes, self._words, lexicon)
        answer = self._answering[vocabulary]
        relations = [self._relations[queries[job.query].relation] for job in jobs]
        subjects = [queries[job.query].subject for job in jobs]
        asked = list(zip([job.template for job in jobs], subjects, relations, strict=True))
        for job, relation, scores in zip(jobs, relations, answer(asked), strict=True):
            best = list(scores.items())[: self._probe.most(relation)]
            yield job, {name: score for name, score in best if score > self._probe.least(relation)}

    def _lexicon(self, relation: str) -> Lexicon:
        if self._probe.vocabulary == "all":
            return Lexicon.of_words(self._words)
        origins = self._origins.get(relation, {})
        names = origins if self._probe.vocabulary == "train" else self._probe.vocabulary
        multi = self._probe.objects == "pll"
        lexicon = Lexicon.of_names(self._words, names, several=multi)
        if not lexicon.names and self._probe.vocabulary != "train":
            raise InputError(
                f"no name of probe.vocabulary is in the vocabulary of {self._name}: nothing is left to propose; list "
                'others, or set probe.objects to "expand" or "pll"'
            )
        return lexicon

    def _accepted(self, query: Query, scores: Scores) -> dict[str, float]:
        """The answers in the relation's shape, those known from the query itself left out."""
        relation = self._relations[query.relation]
        if not self._probe.clean:
            return {name: score for name, score in scores.items() if self._known(name, query)}
        kept: dict[str, float] = {}
        for name, score in scores.items():
            for cleaned in self._clean(name, relation) if self._known(name, query) else ():
                if relation.shape.may_be_subject or not same_name(cleaned, query.subject):
                    kept[cleaned] = kept.get(cleaned, 0.0) + score
        if self._probe.rescale and kept:
            factor = sum(scores.values()) / sum(kept.values())
            kept = {name: min(score * factor, 1.0) for name, score in kept.items()}
        return kept

    def _known(self, name: str, query: Query) -> bool:
        """Whether a name of a vocabulary that train gave is known from another subject."""
        if self._probe.vocabulary != "train":
            return True
        return any(not _same_subject(origin, query) for origin in self._origins[query.relation].get(name, ()))

    def _clean(self, name: str, relation: Relation) -> tuple[str, ...]:
        key = relation.name, name
        if key not in self._cleaned:
            self._cleaned[key] = clean([name], relation, "")
        return self._cleaned[key]

    def _set(self, query: Query, proposals: Sequence[Scores], vetoed: float) -> CandidateSet:
        relation = self._relations[query.relation]
        rewritten = self._probe.preconditions and any(one.clozes for one in relation.preconditions)
        weights = () if rewritten else self._probe.cloze_weights(relation, len(proposals))
        found = []
        for name, score in combine(proposals, self._probe.ensemble, weights).items():
            voices = tuple(f"{self._name}#{place}" for place, scores in enumerate(proposals) if name in scores)
            found.append(Candidate(name, min(score, 1.0) * (1 - vetoed), voices))
        if vetoed:
            found.append(Candidate("", vetoed, (f"{self._name}#veto",)))
        return CandidateSet(query, tuple(found))

    def _expanded(self, backbone: Backbone) -> Backbone:
        probe = self._probe
        listed = [] if isinstance(probe.vocabulary, str) else probe.vocabulary
        names = {*listed, *(name for origins in self._origins.values() for name in origins)}
        vectors = mapped(Path(probe.vectors), backbone, names, probe.vector_map) if probe.vectors else None
        return expand(backbone, names, probe.compose, piece_counts(backbone, names), vectors)


def _by_relation(queries: Sequence[Query]) -> dict[str, list[int]]:
    groups: dict[str, list[int]] = {}
    for index, query in enumerate(queries):
        groups.setdefault(query.relation, []).append(index)
    return groups


def _same_subject(one: Query, other: Query) -> bool:
    return one.subject == other.subject or (one.subject_id is not None and one.subject_id == other.subject_id)
