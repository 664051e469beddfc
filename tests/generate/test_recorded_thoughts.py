"""Real replies with their reasoning, as a server gave them: a rule applied to what is read equals its authors' own."""

from __future__ import annotations

import json
from pathlib import Path

from command import Command

RELATIONS = ("hasArea", "hasCapacity", "personHasCityOfDeath", "companyTradesAtStockExchange")


def _objects(path: Path) -> dict[tuple[str, str], list[str]]:
    rows = map(json.loads, path.read_text(encoding="utf-8").splitlines())
    return {(row["SubjectEntity"], row["Relation"]): sorted(row["ObjectEntities"]) for row in rows}


def test_twelve_draws_with_reasoning_give_what_their_authors_keep(
    command: Command, data_dir: Path, tmp_path: Path
) -> None:
    recorded = data_dir / "recorded" / "2026-test"
    files = [word for path in sorted(recorded.glob("muse__*.jsonl.gz")) for word in ("--from", path)]
    asked = [word for name in RELATIONS for word in ("--relation", name)]
    out = tmp_path / "run"
    options = ("--untuned", "--offline", "--no-report", "--failed-as-empty", "--data", data_dir, "--out", out)
    command.done(
        "predict", "--edition", "2026", "--split", "test", "--system", "duke26-plain", *files, *asked, *options
    )
    expected, kept = _objects(recorded / "muse__direct12.expected.jsonl"), _objects(out / "predictions.jsonl")
    equal = [query for query, objects in expected.items() if kept[query] == objects]
    assert (len(expected), len(equal)) == (398, 396)
