"""Submissions: predictions to checked JSONL, a zip, the candidates behind them, and a manifest.

Same inputs give the same bytes: no clock, no host, fixed zip and gzip headers. How long a run took and what
it cost (a resumed run costs less) stand in `timing.json`, which is not part of that promise.
"""

from __future__ import annotations

import gzip
import hashlib
import io
import json
import zipfile
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import msgspec

from lmkbc import data
from lmkbc.errors import InputError, LmkbcError
from lmkbc.types import Candidate, CandidateSet, Edition, Prediction, Query

PREDICTIONS = "predictions.jsonl"
ARCHIVE = "predictions.zip"
CANDIDATES = "candidates.jsonl.gz"
MANIFEST = "manifest.json"
RETRIEVED = "retrieved.jsonl"
TIMING = "timing.json"


def sha256(content: bytes) -> str:
    """Hex digest of some bytes."""
    return hashlib.sha256(content).hexdigest()


def distinct(edition: Edition, values: Iterable[str]) -> list[str]:
    """The strings to submit for one query: stripped, none empty, each once under the edition's normal form."""
    kept: dict[str, str] = {}
    for value in map(str.strip, values):
        if key := edition.metric.scorer.key(value):
            kept.setdefault(key, value)
    return list(kept.values())


def answers(edition: Edition, prediction: Prediction) -> list[str]:
    """What a prediction submits, in the edition's own terms: QIDs and literals, or names."""
    return distinct(edition, (edition.value(candidate) for candidate in prediction.objects))


def prediction_lines(edition: Edition, predictions: Iterable[Prediction]) -> bytes:
    """The predictions file, one row per query, in the order given."""
    rows = []
    for prediction in predictions:
        row: dict[str, Any] = {"SubjectEntity": prediction.query.subject, "Relation": prediction.query.relation}
        if prediction.query.subject_id is not None:
            row["SubjectEntityID"] = prediction.query.subject_id
        row[edition.column] = answers(edition, prediction)
        rows.append(row)
    return json_lines(rows)


def json_lines(rows: Iterable[dict[str, Any]]) -> bytes:
    """JSONL bytes, keys in the order given, other scripts unescaped."""
    return "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows).encode("utf-8", "backslashreplace")


def candidate_lines(sets: Iterable[CandidateSet]) -> bytes:
    """The scored candidates of a run, gzipped, readable by `--from`; none of a failed query, which stays failed."""
    rows = []
    for found in (one for one in sets if not one.failed):
        row: dict[str, Any] = {"SubjectEntity": found.query.subject, "Relation": found.query.relation}
        if found.query.subject_id is not None:
            row["SubjectEntityID"] = found.query.subject_id
        row["candidates"] = [_candidate_row(candidate) for candidate in found.candidates]
        row["pooled"] = True
        rows.append(row)
    return gzip.compress(json_lines(rows), mtime=0)


def _candidate_row(candidate: Candidate) -> dict[str, Any]:
    row: dict[str, Any] = {"object": candidate.text, "score": round(candidate.score, 6)}
    if candidate.id is not None:
        row["id"] = candidate.id
    if candidate.sources:
        row["source"] = "; ".join(candidate.sources)
    if candidate.truth is not None:
        row["truth"] = round(candidate.truth, 6)
    return row


def archive(predictions: bytes) -> bytes:
    """The zip that CodaLab and Codabench take: `predictions.jsonl` at its root, nothing else."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED, compresslevel=9) as zipped:
        entry = zipfile.ZipInfo(PREDICTIONS, date_time=(1980, 1, 1, 0, 0, 0))
        entry.compress_type = zipfile.ZIP_DEFLATED
        entry.external_attr = 0o644 << 16
        zipped.writestr(entry, predictions)
    return buffer.getvalue()


def check(edition: Edition, queries: Sequence[Query], zipped: bytes) -> None:
    """Re-open a submission as its receiver does: every query once, in order, distinct stripped strings only."""
    with zipfile.ZipFile(io.BytesIO(zipped)) as opened:
        if opened.namelist() != [PREDICTIONS]:
            raise LmkbcError(f"the zip holds {opened.namelist()} instead of {PREDICTIONS} alone; report this as a bug")
        lines = opened.read(PREDICTIONS).splitlines()
    if len(lines) != len(queries):
        raise LmkbcError(f"the submission has {len(lines)} rows for {len(queries)} queries; report this as a bug")
    for number, (line, query) in enumerate(zip(lines, queries, strict=True), start=1):
        row = msgspec.json.decode(line)
        values = row[edition.column]
        keys = [edition.metric.scorer.key(value) for value in values]
        sound = all(isinstance(v, str) and v == v.strip() != "" for v in values) and len(set(keys)) == len(keys)
        if (row["SubjectEntity"], row["Relation"]) != (query.subject, query.relation) or not sound:
            raise LmkbcError(f"row {number} of the submission does not answer query {number}; report this as a bug")


def package(path: Path, edition: Edition, queries: Sequence[Query]) -> tuple[bytes, int]:
    """A checked zip from any predictions file, re-ordered to the queries; and how many rows it had for no query."""
    found, _, _ = data.read_column(path, edition.column, str)
    missing = [query for query in queries if (query.subject, query.relation) not in found]
    if missing:
        first = missing[0]
        raise InputError(
            f"{path} lacks {len(missing)} of {len(queries)} queries, first ({first.subject!r}, {first.relation!r}); "
            "predict these too: a missing row is no empty answer"
        )
    rows = []
    for query in queries:
        values = found[query.subject, query.relation]
        if not isinstance(values, list) or not all(isinstance(value, str) for value in values):
            where = f"{path}, ({query.subject!r}, {query.relation!r}), field {edition.column}"
            raise InputError(f"{where}: not a list of strings; write each object as one string")
        row: dict[str, Any] = {"SubjectEntity": query.subject, "Relation": query.relation}
        row[edition.column] = distinct(edition, values)
        rows.append(row)
    zipped = archive(json_lines(rows))
    check(edition, queries, zipped)
    return zipped, len(found) - len({(query.subject, query.relation) for query in queries})
