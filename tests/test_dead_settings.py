"""Settings that have no effect: each is refused where the recipe shows it, and accepted beside what reads it."""

from contextlib import nullcontext
from pathlib import Path
from typing import Any

import pytest
from command import Command
from opened import CUTOFF, recipe_file, recipe_of

from lmkbc import InputError
from lmkbc.recipe import check_all_read
from lmkbc.select.selector import PerRelation
from tests.rules import rule_of

CHAT = {"component": "chat", "model": "m"}
RANKING = {"component": "causal", "model": "m"}
DEAD: list[tuple[dict[str, Any], dict[str, Any], dict[str, Any], str, str]] = [
    (CHAT, {"verify": {}}, {"select": {"rule": "verified", "inner": CUTOFF}}, "verify", "a rule such as 'verified'"),
    (CHAT, {"shots": {"k": 0, "names": 3}}, {"shots": {"k": 1}}, "shots.names", "k of"),
    (CHAT, {"shots": {"seed": 3}}, {"relations": {"area": {"shots": {"method": "log"}}}}, "shots.seed", "that draws"),
    (CHAT, {"shots": {"empty": 0.2}}, {"shots": {"method": "balanced"}}, "shots.empty", "'balanced'"),
    (
        CHAT,
        {"sampling": {"temperature": 0.7, "first_temperature": 0.0}},
        {"sampling": {"samples": 2}},
        "sampling.temperature",
        "a draw after the first",
    ),
    (
        RANKING,
        {"ranking": {}, "sampling": {"samples": 3}},
        {"ranking": None},
        "sampling.samples",
        "a model that writes",
    ),
    (
        CHAT,
        {"shots": {"component": "llmke23/shots", "rows": [1, 9], "k": 0, "names": 3}},
        {"shots": {"one_empty": True}},
        "shots.names",
        "k of",
    ),
    (
        CHAT,
        {
            "context": {
                "component": "llmke23/context",
                "path": "x.jsonl",
                "titles": {"area": "x"},
                "provider": "passages",
            }
        },
        {"context": {"provider": "titles"}},
        "context.titles",
        "provider 'titles'",
    ),
    (
        CHAT,
        {"context": {"words": 90}},
        {"context": {"provider": "titles", "path": "x.jsonl"}},
        "context.words",
        "provider 'titles'",
    ),
    (
        CHAT,
        {"verify": {"samples": 3}, "select": {"rule": "verified", "inner": CUTOFF}},
        {"verify": {"by": "text"}},
        "verify.samples",
        "a check that reads texts",
    ),
    (
        CHAT,
        {"prompt": {"ask": "{{ question }} {{ x }}", "steps": [{"name": "x", "ask": "{{ subject }}", "every": 5}]}},
        {
            "prompt": {
                "ask": "{{ x }}",
                "steps": [{"name": "x", "ask": "{{ subject }}", "every": 5, "parse_as": "span"}],
            }
        },
        "prompt.steps[0].every",
        "'span'",
    ),
    (
        CHAT,
        {"prompt": {"component": "jhh25/prompt", "retries": 1}, "sampling": {"temperature": 0.0}},
        {"sampling": {"temperature": 0.2}},
        "prompt.retries",
        "a temperature above 0",
    ),
    (
        CHAT,
        {"verify": {"placebos": 3, "by": "text"}, "select": {"rule": "verified", "inner": CUTOFF}},
        {"verify": {"by": "probability"}},
        "verify.placebos",
        "by probability",
    ),
    (CHAT, {"pool": {"per": "draw"}}, {"generate": [CHAT, {**CHAT, "name": "b"}]}, "per", "several generators"),
    (
        CHAT,
        {"link": {"evidence": ["train"], "typed": []}},
        {"link": {"evidence": ["search"]}},
        "typed",
        "evidence 'search'",
    ),
]
"""Generator, settings of which one has no effect, a change that gives it one, that setting, and what reads it."""


def merged(tables: Any, more: Any) -> Any:
    """Tables with what others set in them."""
    if not (isinstance(tables, dict) and isinstance(more, dict)):
        return more
    return tables | {name: merged(tables.get(name), own) for name, own in more.items()}


@pytest.mark.parametrize(("generator", "dead", "read", "setting", "reader"), DEAD, ids=[one[3] for one in DEAD])
def test_a_setting_without_effect_is_refused(
    generator: dict[str, Any],
    dead: dict[str, Any],
    read: dict[str, Any],
    setting: str,
    reader: str,
    command: Command,
    tmp_path: Path,
) -> None:
    def written(tables: dict[str, Any]) -> Path:
        parts = {name: tables[name] for name in ("pool", "link", "select") if name in tables}
        own = {name: value for name, value in tables.items() if name not in (*parts, "generate") and value is not None}
        return recipe_file(tmp_path / "r.toml", *tables.get("generate", [generator | own]), **parts)

    Path("x.jsonl").write_text('{"title": "Chad", "text": "A country."}\n')
    path = written(dead)
    for words in (("systems", "check"), ("predict", "-e", "mini", "-s", "val", "--offline", "--system")):
        told = command.fails(*words, path)
        assert f"setting {setting!r} has no effect: only " in told
        assert reader in told
    command.done("systems", "check", written(merged(dead, read)))


def weighing(**weights: float) -> Any:
    """A calibration of these weights."""
    return rule_of("calibrated", inner=rule_of("cutoff", threshold=0.5), weights=weights).calibration


def test_a_check_counts_where_a_rule_or_learned_thresholds_use_it() -> None:
    recipe = recipe_of(CHAT | {"verify": {}})
    judging = weighing(score=1.0, verification=0.5)
    judged = rule_of("calibrated", inner=rule_of("cutoff", threshold=0.5), weights=judging.weights)
    for selector, is_read in (
        (PerRelation(rule_of("cutoff", threshold=0.5)), False),
        (PerRelation(rule_of("quorum", models=2)), False),
        (PerRelation(rule_of("quorum", models=2, min_verification=0.5)), True),
        (
            PerRelation(
                rule_of("cutoff", threshold=0.5), {"x": rule_of("verified", inner=rule_of("cutoff", threshold=0.5))}
            ),
            True,
        ),
        (
            PerRelation(
                rule_of(
                    "abstention-threshold",
                    threshold=0.5,
                    inner=judged,
                )
            ),
            True,
        ),
        (PerRelation(rule_of("cutoff", threshold=0.5), calibrations={"x": judging}), True),
        (PerRelation(rule_of("cutoff", threshold=0.5), calibrations={"x": weighing(score=1.0)}), False),
    ):
        with nullcontext() if is_read else pytest.raises(InputError, match="'verify' has no effect"):
            check_all_read(recipe, selector)
