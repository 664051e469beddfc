"""The check of a submission as its receiver makes it."""

import io
import json
import re
import zipfile
from collections.abc import Sequence

from space import SPACE

from lmkbc import Edition
from lmkbc.testing import Query


def check(edition: Edition, queries: Sequence[Query], zipped: bytes) -> None:
    """Require every query once, in order, with distinct stripped strings, which are QIDs where ids are asked for."""
    with zipfile.ZipFile(io.BytesIO(zipped)) as opened:
        assert opened.namelist() == ["predictions.jsonl"]
        rows = [json.loads(line) for line in opened.read("predictions.jsonl").splitlines()]
    assert [(row["SubjectEntity"], row["Relation"]) for row in rows] == [(one.subject, one.relation) for one in queries]
    for row in rows:
        values = row[edition.column]
        assert len({edition.metric.scorer.key(value) for value in values}) == len(values)
        assert all(value == value.strip() != "" for value in values)
        has_ids = edition.target == "id" and SPACE.relations[row["Relation"]].has_entities()
        assert not has_ids or all(re.fullmatch("Q[1-9][0-9]*", value) for value in values)
