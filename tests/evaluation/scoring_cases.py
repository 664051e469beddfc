"""Random rows, odd ones included, and what the literal reading of the published scripts says of each."""

import io
import json
import random
import sys
from collections.abc import Iterator
from contextlib import redirect_stderr, redirect_stdout
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from literal_scorers import COLUMNS, ROWS, harmonic

from lmkbc.cli import main

WORDS = (
    "|...|a|A|a.|á|None|null|none|O'Neil|O\u2019Neil|ß|SS|a b| a  b |c+|c|Q1|Q2|12|12.5|1,250|1250|0|-3|nan|1e3|\u2122"
    "|TM|\u012f|\u0000|."
).split("|")
ODD: tuple[Any, ...] = (None, None, None, 0, 1, 5, True, False, 1.5, [], ["a"], ["Q1", "a"], [None], [[]], {}, {"a": 1})
WHOLE: tuple[Any, ...] = (None, "", "a", "Paris", 0, 7, True, 0.5, {}, {"a": 1, "Q1": 2}, [[["a"]]])
RELATIONS = ("hasArea", "awardWonBy", "hasCapacity", "PersonHasSpouse")
"""Values that are no list of strings: as an object, and as the whole value of a column."""


@dataclass(frozen=True, slots=True)
class Case:
    """One row; `expected` is precision and recall, None where the published script stops with an error."""

    subject: str
    relation: str
    predicted: Any
    gold: list[Any]
    expected: tuple[float, float] | None


def cases(edition: str, count: int, seed: int = 0) -> list[Case]:
    """As many rows, a third of them odd; the same for the same seed."""
    drawn = random.Random(f"{edition} {seed}")
    return [_case(edition, f"s{number}", drawn) for number in range(count)]


def _case(edition: str, subject: str, drawn: random.Random) -> Case:
    relation, gold = drawn.choice(RELATIONS), _gold(edition, drawn)
    objects: list[Any] = [drawn.choice(WORDS) for _ in range(drawn.randint(0, 5))]
    objects += [name if isinstance(name, str) else drawn.choice(name) for name in gold if drawn.random() < 0.3]
    if drawn.random() < 0.3:
        objects += drawn.choices(ODD, k=drawn.randint(1, 2))
    drawn.shuffle(objects)
    predicted = drawn.choice(WHOLE) if drawn.random() < 0.05 else objects
    try:
        return Case(subject, relation, predicted, gold, ROWS[edition](predicted, gold, relation))
    except (TypeError, AttributeError):
        return Case(subject, relation, predicted, gold, None)


def _gold(edition: str, drawn: random.Random) -> list[Any]:
    if edition == "2023" and drawn.random() < 0.2:
        return [""]
    kept = WORDS if edition in ("2022", "2026") else [word for word in WORDS if word not in ("", "0")]
    if edition in ("2022", "2026"):
        return [drawn.choices(kept, k=drawn.randint(1, 4)) for _ in range(drawn.randint(0, 4))]
    return drawn.choices(kept, k=drawn.randint(0, 4))


def written(folder: Path, edition: str, rows: list[Case]) -> tuple[Path, Path]:
    """The rows as a file of predictions, in another order, and one of gold."""
    folder.mkdir(parents=True, exist_ok=True)
    paths, column = (folder / "predictions.jsonl", folder / "gold.jsonl"), COLUMNS.get(edition, "ObjectEntities")
    mixed = random.Random(0).sample(rows, len(rows)) if len(rows) % 2 else rows
    for path, chosen, values in (
        (paths[0], mixed, [row.predicted for row in mixed]),
        (paths[1], rows, [row.gold for row in rows]),
    ):
        lines = (
            {"SubjectEntity": row.subject, "Relation": row.relation, column: value}
            for row, value in zip(chosen, values, strict=True)
        )
        path.write_text("\n".join(map(json.dumps, lines)), encoding="utf-8")
    return paths


def disagreements(folder: Path, edition: str, rows: list[Case], stops: int = 30) -> Iterator[str]:
    """Where the command and the literal reading differ: scores of every row, and refusal of `stops` of the others."""
    scored, crashing = [row for row in rows if row.expected], [row for row in rows if not row.expected]
    code, output, error = evaluated(folder, edition, scored, "--json", "--rows")
    if code:
        yield f"exit {code}: {error}"
        return
    found = {(row["SubjectEntity"], row["Relation"]): row for row in json.loads(output)["rows"]}
    for row in scored:
        said = found[row.subject, row.relation]
        assert row.expected
        for name, value in zip(("p", "r", "f1"), (*row.expected, harmonic(*row.expected)), strict=True):
            if abs(said[name] - value) > 1e-9:
                yield f"{row}: {name} is {said[name]}"
    for row in crashing[:stops]:
        code, output, error = evaluated(folder, edition, [row])
        if code != 2 or output or "official script of edition" not in error or repr(row.subject) not in error:
            yield f"{row}: exit {code}: {error}"


def evaluated(folder: Path, edition: str, rows: list[Case], *options: str) -> tuple[int, str, str]:
    """Exit status, stdout and stderr of `lmkbc evaluate` on the rows, in this process."""
    predictions, gold = written(folder, edition, rows)
    arguments = ["evaluate", str(predictions), "--gold", str(gold), "--edition", edition, *options]
    output, error, before = io.StringIO(), io.StringIO(), sys.argv
    sys.argv = ["lmkbc", *arguments]
    try:
        with redirect_stdout(output), redirect_stderr(error):
            main()
    except SystemExit as end:
        return int(end.code or 0), output.getvalue(), " ".join(error.getvalue().split())
    finally:
        sys.argv = before
    return 0, output.getvalue(), error.getvalue()
