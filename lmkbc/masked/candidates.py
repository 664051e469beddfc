"""Candidates from a masked model's scores, live or recorded: limits, cleaning, merged clozes, NIL probabilities.

Live and recorded scores are read in the same way. In a recorded row each source is a cloze. The object "" with the
source "veto" holds the preconditions' probability of no object. The other scores of the row do not include it. Clozes
are merged by mean, by maximum, or by number of votes (Ning and Celebi 2022).
"""

from __future__ import annotations

import math
import re
from collections.abc import Container, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import cache
from typing import cast

from msgspec import structs

from lmkbc.answer.clean import same_name, sifted
from lmkbc.edition import Edition
from lmkbc.errors import InputError
from lmkbc.generate.recorded_rows import CandidateRow, RecordedRow, is_linked
from lmkbc.masked.cloze_settings import TOP_K, Ensemble, ProbeSettings, for_relation
from lmkbc.names import folded_key
from lmkbc.relation import Relation
from lmkbc.types import Candidate, CandidateSet, Example, Query, Source, grouped

FUNCTION_WORDS = frozenset(
    """a about above across after again against all along also although always among an and another any anyone anything
    are around as at back be because been before behind being below between both but by came can come could did do does
    done down during each either else ever every everyone everything few for from further get go had has have he her
    here hers herself him himself his how however if in instead into is it its itself just later least less made many
    me more most much my myself near neither never next none nor not now of off often on once only onto or other
    others our ours out over own per same several shall she should since so some someone something still such than that
    the their theirs them themselves then there these they this those though through to together too toward towards
    under until up upon very was we well were what when where whether which while whom whose why with within without
    would yet you your yours""".split()
)
"""English function words, without those that are also names or numbers: who, us, may, will, one."""

_WORD = re.compile(r"[^\W\d_]{2,}")


Scores = Mapping[str, float]
Origins = Mapping[str, Mapping[str, Sequence[Query]]]
"""Relation -> object of its train rows -> queries with this object."""


def origins_of(train: Iterable[Example], edition: Edition) -> Origins:
    """Return the queries behind each object of a train split."""
    rows = grouped((row.query.relation, row) for row in train)
    return {
        relation: grouped((name, row.query) for row in rows[relation] for name in row.names)
        for relation in edition.relations
    }


class ClozeAnswers:
    """Reads scores as a recipe's table `probe` says, and keeps the answers that may be objects."""

    def __init__(
        self,
        probe: ProbeSettings,
        edition: Edition,
        relations: Mapping[str, Relation],
        origins: Origins,
    ) -> None:
        self._probe, self._edition, self._relations, self._origins = probe, edition, relations, origins
        self._stems = {
            relation.name: _stems(relation, number)
            for relation in relations.values()
            if (number := for_relation(probe.stems, relation, 0))
        }
        for relation in relations.values():
            if self._name_words(relation) is not None and not relation.shape.closed:
                raise InputError(f"probe.name_words names {relation.name}, whose shape lists no closed names")
        self._names = cache(self._looked_up)

    def kept(self, query: Query, scores: Scores, linked: Container[str] = ()) -> dict[str, float]:
        """Return the scores by object, "" for NIL. Names that only the query's own train row holds are left out.

        linked: names with an id, which are not cleaned.
        """
        relation, null = self._relations[query.relation], self._probe.null
        kept: dict[str, float] = {}
        for name, score in scores.items():
            forms: Iterable[str]
            if not name or name == null:
                forms = ("",) if relation.nullable(self._edition.name) else ()
            elif not self._known(name, query):
                forms = ()
            else:
                forms = self._cleaned(name, query) if self._probe.clean and name not in linked else (name,)
            for form in forms:
                kept[form] = kept.get(form, 0.0) + score
        if self._probe.rescale and kept:
            factor = sum(scores.values()) / sum(kept.values())
            kept = {name: min(score * factor, 1.0) for name, score in kept.items()}
        return kept

    def words(self, query: Query) -> tuple[str, ...]:
        """Return the words of the subject's name that are asked too; () without `name_words`, or for a single word."""
        if self._name_words(self._relations[query.relation]) is None:
            return ()
        words = tuple(dict.fromkeys(_WORD.findall(query.subject)))
        return words if len(words) > 1 else ()

    def named_in(self, query: Query) -> dict[str, float]:
        """Return the objects that words of the subject's name name, each with the score from `name_words`."""
        relation = self._relations[query.relation]
        score = self._name_words(relation)
        if not score:
            return {}
        return {name: score for word in _WORD.findall(query.subject) for name in self._names(word, query.relation)}

    def _name_words(self, relation: Relation) -> float | None:
        return cast(float | None, for_relation(self._probe.name_words, relation, None))

    def _cleaned(self, name: str, query: Query) -> list[str]:
        may_be = self._relations[query.relation].shape.may_be_subject
        return [form for form in self._names(name, query.relation) if may_be or not same_name(form, query.subject)]

    def _looked_up(self, word: str, spelling: str) -> tuple[str, ...]:
        """Return the names for which a word may stand, as an answer to a relation."""
        relation = self._relations[spelling]
        word = for_relation(self._probe.variants, relation, {}).get(word.casefold(), word)
        if word.casefold() in FUNCTION_WORDS and not (word.isupper() and len(word) > 1):
            return ()
        is_number = word.isascii() and word.isdecimal()
        largest = for_relation(self._probe.maximum, relation, math.inf)
        if (self._probe.digits and relation.has_numbers() and not is_number) or (is_number and int(word) > largest):
            return ()
        names, _ = sifted([word], relation, "")
        stem = folded_key(word)[: for_relation(self._probe.stems, relation, 0)]
        return names or tuple(filter(None, (self._stems.get(relation.name, {}).get(stem),)))

    def _known(self, name: str, query: Query) -> bool:
        """Return whether a name of the train vocabulary occurs with another subject."""
        if self._probe.vocabulary != "train":
            return True
        return any(not _same_subject(origin, query) for origin in self._origins[query.relation].get(name, ()))

    def best(self, relation: Relation, scores: Scores) -> dict[str, float]:
        """Return the answers of one cloze that pass `top_k` and `min_prob`. scores: best first."""
        least: float = for_relation(self._probe.min_prob, relation, 0.0)
        top_k: int = for_relation(self._probe.top_k, relation, TOP_K)
        return {name: score for name, score in list(scores.items())[:top_k] if score > least}

    def merged(self, query: Query, proposals: Mapping[str, Scores], vetoed: float, model: str) -> CandidateSet:
        """Return the candidates of a query, best first.

        proposals: cloze -> cleaned answers with their scores. vetoed: NIL probability of the preconditions; it scales
        all scores, and becomes the score of NIL.
        """
        scores = combine([*proposals.values()], self._probe.ensemble)
        named = self.named_in(query)
        candidates = []
        for name in {**scores, **named} if vetoed < 1 else ():
            score = min(max(scores.get(name, 0.0), named.get(name, 0.0)), 1.0)
            sources = [Source(model, cloze) for cloze, proposed in proposals.items() if name in proposed]
            sources += [Source(model, "name")] if name in named else []
            candidates.append(Candidate(name, score * (1 - vetoed), tuple(sources)))
        candidates.sort(key=lambda candidate: -candidate.score)
        if vetoed:
            candidates.append(Candidate("", vetoed, (Source(model, VETO),)))
        return CandidateSet.proposing(query, candidates)

    def of_row(self, query: Query, row: RecordedRow, model: str, relation: Relation) -> CandidateSet:
        """Return the candidates of a recorded row of scores. Names with an id are not cleaned, except numbers."""
        by_cloze: dict[str, dict[str, float]] = {}
        known: dict[str, CandidateRow] = {}
        vetoed = 0.0
        for given in sorted(row.candidates or (), key=lambda candidate: -candidate.score):
            if given.source == VETO and not given.object:
                vetoed = given.score
                continue
            by_cloze.setdefault(given.source or "", {}).setdefault(given.object, given.score)
            known.setdefault(given.object, given)
        linked = {name: given.id for name, given in known.items() if name and is_linked(given, relation)}
        proposals = {
            cloze: self.kept(query, self.best(relation, scores), linked=linked) for cloze, scores in by_cloze.items()
        }
        found = self.merged(query, proposals or {"": {}}, vetoed, model)
        judged = {name: given.verification for name, given in known.items()}
        candidates = (
            structs.replace(one, id=linked.get(one.text), verification=judged.get(one.text)) for one in found.candidates
        )
        return replace(found, candidates=tuple(candidates))


def _stems(relation: Relation, letters: int) -> dict[str, str]:
    """Return the first letters of names in a relation's closed list -> the name (Fang et al. 2022: elements, by four).

    For example, the model's "sulfide" and a variant "sulfuric" both give "sulfur". Of names with the same first
    letters, the first listed counts. Shorter names have no stem. Raise InputError without a closed list.
    """
    if not relation.shape.closed:
        raise InputError(f"probe.stems names {relation.name}, whose shape lists no closed names: leave it out")
    if letters < 1:
        raise InputError(f"probe.stems of {relation.name} is {letters}: give a number of letters, at least 1")
    names: dict[str, str] = {}
    for name, variants in relation.shape.closed.items():
        for key in map(folded_key, (name, *variants)):
            if len(key) >= letters:
                names.setdefault(key[:letters], name)
    return names


def _same_subject(query: Query, other: Query) -> bool:
    return query.subject == other.subject or (query.subject_id is not None and query.subject_id == other.subject_id)


VETO = "veto"
"""Source of the NIL probability from preconditions."""


def combine(proposals: Sequence[Scores], method: Ensemble) -> dict[str, float]:
    """Return object -> score in [0, 1], best first.

    proposals: one mapping of objects to probabilities per cloze. method: "mean", where a cloze without the object
    counts 0; "max", the best score; or "count", by number of clozes, then by best score: (number - 1 + best) / all.
    """
    merged: dict[str, float] = {}
    for name in dict.fromkeys(name for scores in proposals for name in scores):
        proposed = [scores[name] for scores in proposals if name in scores]
        if method == "mean":
            merged[name] = math.fsum(1 / len(proposals) * score for score in proposed)
        elif method == "max":
            merged[name] = max(proposed)
        else:
            merged[name] = (len(proposed) - 1 + max(proposed)) / len(proposals)
    return dict(sorted(merged.items(), key=lambda item: (-item[1], item[0])))
