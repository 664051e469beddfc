"""What every generator's table may say: `each`, `only` and `name` work alike, whatever the component."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
import tiny_causal
import tiny_masked
from loopback import Loopback
from opened import generators, recipe_of

from lmkbc.generate.spec import GENERATORS
from lmkbc.pipeline import propose
from lmkbc.run import Run, Servers
from lmkbc.types import CandidateSet, Query
from lmkbc.workspace import Workspace

SPACE = Workspace()
EDITION = SPACE.edition("mini")
BORDERS, DEATH = Query("Utopia", "CountryBordersCountry"), Query("Ada", "PersonHasPlaceOfDeath")
ASKED = [BORDERS, DEATH]


@pytest.fixture(scope="module")
def tables(tmp_path_factory: pytest.TempPathFactory) -> dict[str, dict[str, Any]]:
    """The least that each generator needs."""
    root = tmp_path_factory.mktemp("models")
    tiny_masked.save(root / "masked", ["France", "Spain"], seed=3)
    tiny_causal.model("gpt2", seed=3).save_pretrained(root / "causal")
    tiny_causal.tokenizer().save_pretrained(root / "causal")
    short = {"sampling": {"max_tokens": 3}, "shots": {"k": 1}}
    return {
        "causal": {"model": str(root / "causal"), "prompt": {"form": "completion"}} | short,
        "chat": {"model": "m"} | short,
        "embedded": {"encoder": False},
        "masked": {"model": str(root / "masked"), "probe": {"clozes": 1, "vocabulary": ["France", "Spain"]}},
        "naive-bayes": {},
        "nothing": {},
        "prior": {},
        "recorded": {},
    }


@pytest.mark.parametrize("component", sorted(GENERATORS))
def test_every_generator_takes_each_only_and_name(
    tables: dict[str, dict[str, Any]], tmp_path: Path, component: str
) -> None:
    read = recipe_of({"component": component, "name": "w", "only": ["country-borders"], "each": [{}, {"name": "b"}]})
    assert [(spec.name, spec.only) for spec in read.generate] == [
        ("w 1", ("country-borders",)), ("b", ("country-borders",)),
    ]  # fmt: skip
    if component == "entity-masked":
        return  # it needs a trained model, and shares how it is opened with all others
    own = {"component": component, **tables[component]}
    answers = tmp_path / "answers.jsonl"
    rows = ({"SubjectEntity": one.subject, "Relation": one.relation, "completions": ['["Spain"]']} for one in ASKED)
    answers.write_text("".join(json.dumps(row) + "\n" for row in rows))
    (table := tmp_path / "table.json").write_text("{}")
    with Loopback(lambda _: '["Spain"]') as server:
        servers = Servers(base_url=server.url, store=tmp_path / "store.sqlite")
        files = (answers,) if component == "recorded" else ()
        run = Run(
            workspace=SPACE,
            edition=EDITION,
            servers=servers,
            files=files,
            search_table=table,
            offline=component != "chat",
        )
        recipe = recipe_of(own | {"name": "w", "each": [{"only": ["country-borders"]}, {"name": "b"}]})
        found = {name: sets(list(one.generate(ASKED))) for name, one in generators(run, recipe)}
        assert [*found] == ["w 1", "b"]
        assert found["w 1"][DEATH] == CandidateSet(DEATH, (), ())
        for name, query in (("w 1", BORDERS), ("b", BORDERS), ("b", DEATH)):
            voices = {voice for one in found[name][query].candidates for voice in one.sources}
            assert all(voice.split("#")[0].removesuffix("?existence") == name for voice in voices), voices
            assert component == "causal" or voices
        ((plain, _),) = generators(run, recipe_of(own))
        assert plain == component
        if component not in ("causal", "masked"):  # these may have nothing to say
            weighed = propose(run, recipe_of(own | {"name": "w"}), [DEATH]).sets[0]
            assert {model for one in weighed.candidates for model, _ in one.by_model} == {"w"}


def sets(found: Sequence[CandidateSet]) -> dict[Query, CandidateSet]:
    return {one.query: one for one in found}
