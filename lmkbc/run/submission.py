"""Submissions: JSONL, its zip, the candidates, and the manifest.

The same inputs give the same bytes: no clock, no host name, fixed headers of zip and gzip. Duration and cost of a run
stand in `timing.json`, for which this does not hold, since a resumed run costs less.
"""

from __future__ import annotations

import gzip
import io
import json
import logging
import zipfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from json.encoder import encode_basestring
from pathlib import Path
from typing import Any

import msgspec

from lmkbc.edition import Edition, fault
from lmkbc.errors import UNDECODABLE, InputError, counted
from lmkbc.files.atomic import Content, pieces
from lmkbc.files.columns import Column, is_lone_none, log_lone_nones, read_column, respelled
from lmkbc.files.fact_rows import field_of
from lmkbc.files.reader import whole
from lmkbc.generate.recorded_rows import EXISTENCE
from lmkbc.notes import Replies
from lmkbc.relation import Relation
from lmkbc.types import Candidate, CandidateSet, Dropped, Nil, Pair, Prediction, Query, Source, State

log = logging.getLogger(__name__)
PREDICTIONS = "predictions.jsonl"
ARCHIVE = "predictions.zip"
CANDIDATES = "candidates.jsonl.gz"
MANIFEST = "manifest.json"
RETRIEVED = "retrieved.jsonl"
REPLIES = "replies.jsonl.gz"
MISSING = "missing.jsonl"
WITHHELD = "withheld.jsonl"
TIMING = "timing.json"
REPORT = "report.html"
DAY = (1980, 1, 1, 0, 0, 0)
"""Date of a zip's only file: the first that a zip can hold, so that the same predictions give the same bytes."""


def read_manifest(path: Path) -> dict[str, Any]:
    """Return a run's manifest. InputError for any other file."""
    try:
        return msgspec.json.decode(whole(path), type=dict[str, Any])
    except UNDECODABLE as error:
        raise InputError(f"{path} is no manifest of a run: {error}; make the run again") from None


def distinct(edition: Edition, values: Iterable[str]) -> list[str]:
    """Return the strings to submit for one query: stripped, not empty, each once under the edition's normal form.

    Scorers count a name of mere marks, such as "...", so it is submitted where nothing has cleaned it away.
    """
    kept: dict[str, str] = {}
    for value in filter(None, map(str.strip, values)):
        kept.setdefault(edition.metric.scorer.key(value), value)
    return list(kept.values())


def answers(edition: Edition, prediction: Prediction) -> list[str]:
    """Return the objects that a prediction submits, in the edition's form: QIDs and literals, or names."""
    return distinct(edition, (edition.value(candidate) for candidate in prediction.objects))


REASONS = {
    "closed": "outside of the relation's list",
    "integer": "not whole",
    "link": "without a QID",
    "maximum": "too large",
    "minimum": "too small",
    "placeholder": "a word such as 'country'",
    "stop": "on the relation's stop list",
    "subject": "the subject itself",
}
"""Why an object is dropped, in words; the other rules are words already."""


def losses(edition: Edition, candidates: CandidateSet) -> list[Dropped]:
    """Return named objects that cannot be submitted, each once: dropped by a rule, or without a link."""
    unlinked = [Dropped(candidate.text, "link") for candidate in candidates.candidates if not edition.value(candidate)]
    if not unlinked and not candidates.dropped:
        return []
    return list({(loss.text.casefold(), loss.rule): loss for loss in (*candidates.dropped, *unlinked)}.values())


def prediction_lines(edition: Edition, predictions: Iterable[Prediction]) -> bytes:
    """Return the bytes of the predictions file, one row per query, in the given order."""
    return json_lines(
        _row(prediction.query) | {edition.column: answers(edition, prediction)} for prediction in predictions
    )


def _row(query: Query) -> dict[str, Any]:
    row: dict[str, Any] = {"SubjectEntity": query.subject, "Relation": query.relation}
    if query.subject_id is not None:
        row["SubjectEntityID"] = query.subject_id
    return row


def json_lines(rows: Iterable[dict[str, Any]]) -> bytes:
    """Return JSONL bytes, with keys in the given order, and without escapes for other scripts."""
    return "".join(_JSON.encode(row) + "\n" for row in rows).encode("utf-8", "backslashreplace")


_JSON = json.JSONEncoder(ensure_ascii=False)


def candidate_rows(sets: Iterable[CandidateSet]) -> bytes:
    """Return the rows of scored candidates, readable by `--from`. A failed query gets no row, so it stays failed.

    A run writes millions of candidates, so the JSON is formatted here, without dictionaries.
    """
    rows = []
    for item in (candidates for candidates in sets if not candidates.failed):
        head = _JSON.encode(_row(item.query))[:-1]
        spent = not item.candidates and State.DROPPED in item.draws and State.ABSTAINED not in item.draws
        tail = ', "pooled": true' + ', "dropped": true' * spent
        if item.dropped:
            tail += f', "dropped_objects": {_JSON.encode([*dict.fromkeys(item.dropped)])}'
        rows.append(f'{head}, "candidates": [{", ".join(_proposals(item))}]{tail}}}\n')
    return "".join(rows).encode("utf-8", "backslashreplace")


def candidate_lines(sets: Iterable[CandidateSet]) -> bytes:
    """Return `candidate_rows` with gzip: the bytes of a run's file."""
    return gzip.compress(candidate_rows(sets), mtime=0)


def missing_lines(sets: Iterable[CandidateSet]) -> bytes:
    """Return rows of the queries without an answer, with the states of their draws and faults of the reader.

    `completions` may be added to each.
    """
    return json_lines(
        _row(item.query)
        | {"reason": ", ".join(dict.fromkeys((*item.draws, *(loss.rule for loss in item.dropped)))) or "not asked"}
        for item in sets
        if item.failed
    )


def reply_rows(replies: Mapping[Query, Iterable[Replies]]) -> bytes:
    """Return the texts that models wrote about some queries, as rows of completions."""
    return json_lines(_row(query) | _replied(one) for query, own in replies.items() for one in own)


def _replied(own: Replies) -> dict[str, Any]:
    """Return the fields of a row of completions. Empty fields are left out."""
    draws = [reply for part in own.parts for reply in part]
    row: dict[str, Any] = {"model": own.model or own.source, "completions": [reply and reply.text for reply in draws]}
    ends = [reply.finish if reply else "" for reply in draws]
    log_probabilities = [reply and reply.logprobs for reply in draws]
    further = {
        "source": own.source if own.model not in ("", own.source) else None,
        "parts": len(own.parts) if len(own.parts) > 1 else None,
        "finish": ends if set(ends) - {"stop", ""} else None,
        "logprobs": log_probabilities if any(log_probabilities) else None,
        "nil_probabilities": own.nil_probabilities,
        "verification": own.verification,
    }
    return row | {name: value for name, value in further.items() if value}


def withheld_lines(predictions: Iterable[Prediction]) -> bytes:
    """Return rows of the queries whose empty answer does not mean "no object", with the reason."""
    return json_lines(_row(made.query) | {"reason": made.withheld} for made in predictions if made.withheld)


def _proposals(candidates: CandidateSet) -> Iterator[str]:
    """Yield the candidates as JSON, with "no object" at its rank by score, and NIL probabilities last."""
    proposals: list[Candidate | Nil] = [*candidates.candidates]
    for nil in candidates.nothing:
        rank = -nil.score, -len(nil.sources)
        worse = (place for place, proposal in enumerate(proposals) if (-proposal.score, -len(proposal.sources)) >= rank)
        proposals.insert(next(worse, len(proposals)), nil)
    for proposal in proposals:
        named = proposal if isinstance(proposal, Candidate) else None
        text = f'{{"object": {encode_basestring(named.text if named else "")}, "score": {round(proposal.score, 6)!r}'
        if named and named.id is not None:
            text += f', "id": {encode_basestring(named.id)}'
        if proposal.sources:
            text += f', "source": {_sources(proposal.sources)}'
        if named and named.verification is not None:
            text += f', "verification": {round(named.verification, 6)!r}'
        yield text + "}"
    for nil in candidates.nil_probabilities:
        sources = "; ".join(sorted(f"{source}{EXISTENCE}" for source in nil.sources))
        yield f'{{"object": "", "score": {round(nil.score, 6)!r}, "source": {encode_basestring(sources)}}}'


@lru_cache(1 << 14)
def _sources(sources: tuple[Source, ...]) -> str:
    """Return the JSON of sources. The results are cached, since a run repeats a few sources many times."""
    return encode_basestring("; ".join(sorted(map(str, sources))))


def archive(predictions: Content) -> bytes:
    """Return the zip that CodaLab and Codabench accept: only `predictions.jsonl`, at its root."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED, compresslevel=9) as zipped:
        entry = zipfile.ZipInfo(PREDICTIONS, date_time=DAY)
        entry.compress_type = zipfile.ZIP_DEFLATED
        entry.external_attr = 0o644 << 16
        with zipped.open(entry, "w") as file:
            for piece in pieces(predictions):
                file.write(piece)
    return buffer.getvalue()


def is_archive(path: Path) -> bool:
    """Return whether a file is a zip that `archive` made."""
    try:
        with zipfile.ZipFile(path) as zipped:
            return [(entry.filename, entry.date_time) for entry in zipped.infolist()] == [(PREDICTIONS, DAY)]
    except (OSError, ValueError, zipfile.BadZipFile):
        return False


def package(
    path: Path, edition: Edition, relations: Mapping[str, Relation], queries: Sequence[Query]
) -> tuple[bytes, int]:
    """Return a zip from any predictions file in the order of queries, and the number of rows without a query.

    InputError for a query that is missing or has two different answers. InputError also for a value that is not a
    string, and for one that the edition's scorer can only count as wrong.
    """
    read = read_column(path, edition, agree=True)
    answers, asked = read.values, dict.fromkeys((query.subject, query.relation) for query in queries)
    spelled = respelled(path, (pair for pair in asked if pair not in answers), answers.keys() - asked.keys())
    pairs = ((query.subject, query.relation) for query in queries)  # as rows of the split, which may hold one twice
    missing = [pair for pair in pairs if pair not in answers and pair not in spelled]
    if missing:
        other = next((relation for _, relation in answers if not edition.spelt(relation)), None)
        raise InputError(
            f"{path} lacks {len(missing)} of {len(queries)} queries, first {missing[0]}; "
            f"{'predict these too: a missing row is no empty answer' if other is None else edition.lacks(other)}"
        )
    rows, blank = [], 0
    wrong: list[tuple[Pair, Any, str]] = []
    for query in queries:
        pair = query.subject, query.relation
        pair = spelled.get(pair, pair)
        values = read.namesakes.get((pair, query.subject_id), answers[pair])
        row = _row(query)
        if isinstance(values, list) and all(isinstance(value, str) for value in values):
            row[edition.column] = distinct(edition, values)
            faults = (
                (value, fault(edition, query.relation, relations[query.relation], value))
                for value in row[edition.column]
            )
            wrong += [(pair, values, f"{value!r} {why}") for value, why in faults if why]
            blank += sum(not edition.metric.scorer.key(value.strip()) for value in values) if values != [""] else 0
        else:
            wrong.append((pair, values, "not a list of strings; write each object as one string"))
        rows.append(row)
    if wrong:
        (pair, values, why), *others = wrong
        numbered = Column(path, edition, Any).numbered()
        place = next(at for at, row in numbered if (row.SubjectEntity, row.Relation, row.objects) == (*pair, values))
        more = f" (and {counted(len(others), 'more value')} like it)" if others else ""
        raise InputError(f"{path}, {place}, {pair}, {field_of(path, edition.column)}: {why}{more}")
    zipped = archive(json_lines(rows))
    log_lone_nones(path, sum(map(is_lone_none, answers.values())))
    if blank:
        log.warning("%s: %s left out, which the scorer would count as wrong", path, counted(blank, "empty string"))
    return zipped, len(answers) - len(asked)
