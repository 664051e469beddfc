"""From a server that verifies, over a file of candidates, to thresholds that prediction obeys."""

from __future__ import annotations

import gzip
import json
import tomllib
from pathlib import Path
from typing import Any

from command import Command
from loopback import Loopback, prompt_of
from space import MINI, SPACE

ASKED = ("CountryBordersCountry", "PersonPlaysInstrument")


def test_from_a_server_to_thresholds_that_prediction_obeys(command: Command, tmp_path: Path) -> None:
    examples = SPACE.examples(MINI, "val")
    gold = {example.query.subject: [one.names[0] for one in example.objects] for example in examples}
    relation = {example.query.subject: example.query.relation for example in examples}
    known = {one.names[0]: one.id or "" for example in examples for one in example.objects}
    ids = {name: qid for name, qid in known.items() if qid.startswith("Q")}
    wrong = {subject: f"Wrongland {place}" for place, subject in enumerate(gold)}
    ids |= {name: f"Q99{place}" for place, name in enumerate(wrong.values(), start=1000)}

    def answer(body: dict[str, Any]) -> str:
        """Proposes what is right and one thing that is not; judges well, but holds nothing true of one relation."""
        last = prompt_of(body).rstrip().split("\n")[-2 if "Statement:" in prompt_of(body) else -1]
        subject = max((name for name in gold if name in last), key=len)
        if "Statement:" not in last:
            return json.dumps([*gold[subject], *([wrong[subject]] if relation[subject] in ASKED else [])])
        return "False" if "Wrongland" in last or relation[subject] == ASKED[1] else "True"

    for name in ("relations", "eval"):
        (tmp_path / name).symlink_to(Path(__file__).parents[2] / name)
    (tmp_path / "thresholds").mkdir()
    (tmp_path / "search.json").write_text(json.dumps(ids))
    (tmp_path / "checked.toml").write_text(
        'description = "x"\n[[generate]]\ncomponent = "chat"\nmodel = "m"\nshots = { k = 0 }\n'
        'prompt = { ask = "{subject}: {question}" }\nverify = { by = "text", shots = 0 }\n'
        '[select]\nrule = "verified"\ninner = { rule = "cutoff", threshold = 0.5 }\n'
    )
    common = ["--split", "val", "--edition", "mini", "--workspace", tmp_path, "--search-table", "search.json"]
    recipe = ["--system", "checked.toml", "--store", "store.sqlite"]
    with Loopback(answer) as server:
        recipe += ["--base-url", server.url]
        assert command("predict", *common, *recipe, "--out", "on")[0] == 0
        asked = server.served
        assert command("tune", *common, *recipe, "--trials", "0", "--folds", "2", "--json")[0] == 0
        assert server.served == asked
        assert command("predict", *common, *recipe, "--out", "tuned")[0] == 0
    kept = Path("on/candidates.jsonl.gz")
    told = [json.loads(line) for line in gzip.decompress(kept.read_bytes()).splitlines()]
    assert {one["verification"] for row in told for one in row["candidates"] if one["object"]} == {0.0, 1.0}
    assert command("tune", *common, "--from", kept, "--trials", "0", "--folds", "2")[0] == 0
    assert command("predict", *common, "--from", kept, "--out", "replayed")[0] == 0

    def answers(run: str) -> dict[str, dict[str, list[str]]]:
        lines = map(json.loads, Path(run, "predictions.jsonl").read_text().splitlines())
        found: dict[str, dict[str, list[str]]] = {}
        for row in lines:
            found.setdefault(row["Relation"], {})[row["SubjectEntity"]] = row["ObjectEntitiesID"]
        return found

    for name in ("checked", "recorded"):
        select = tomllib.loads(Path(f"thresholds/mini/{name}--m.toml").read_text())["relations"]
        assert select[ASKED[0]]["select"]["rule"] == "verified"
        assert select[ASKED[1]]["select"]["rule"] != "verified"
    falsehoods = {ids[name] for name in wrong.values()}
    assert all(falsehoods.isdisjoint(one) for one in answers("on")[ASKED[0]].values())
    assert not any(answers("on")[ASKED[1]].values())
    for run in ("tuned", "replayed"):
        assert all(falsehoods.isdisjoint(one) for one in answers(run)[ASKED[0]].values())
        assert sum(len({*one} - falsehoods) for one in answers(run)[ASKED[1]].values()) > 20
        manifest = json.loads(Path(run, "manifest.json").read_text())
        assert "thresholds/mini/" in manifest["selection"]["how"]
