"""The controls table: official scores side by side, and what makes a query hard."""

from __future__ import annotations

import pytest

from lmkbc.components import Context
from lmkbc.probe.controls import CONTROLS, Selection, compare, controls
from lmkbc.tune.outcomes import gold_column
from lmkbc.types import Candidate, Example, Prediction
from lmkbc.workspace import Workspace

SPACE = Workspace()
EDITION = SPACE.edition("mini")
CONTEXT = Context(workspace=SPACE, edition=EDITION, offline=True)
VAL = SPACE.examples(EDITION, EDITION.held_out)


def right(example: Example) -> Prediction:
    return Prediction(
        example.query, tuple(Candidate(gold.names[0] if gold.names else "", id=gold.id) for gold in example.objects)
    )


def wrong(example: Example) -> Prediction:
    return Prediction(example.query, (Candidate("no such thing", id="Q0"),))


def test_a_query_is_hard_when_no_control_answers_it() -> None:
    half = len(VAL) // 2
    knows_first = [right(x) if i < half else wrong(x) for i, x in enumerate(VAL)]
    knows_last = [wrong(x) if i < half else right(x) for i, x in enumerate(VAL)]
    table = compare(CONTEXT, "s", VAL, knows_last, {"a": knows_first})
    assert table.overall.hard == sum(row.hard for row in table.relations.values()) == len(VAL) - half
    assert table.overall.hard_f1 == 1.0
    table = compare(CONTEXT, "s", VAL, knows_first, {"a": knows_first})
    assert table.overall.hard_f1 == pytest.approx(0.0)
    assert table.overall.system == table.overall.controls["a"]
    table = compare(CONTEXT, "s", VAL, knows_first, {"a": knows_first, "b": knows_last})
    assert (table.overall.hard, table.overall.hard_f1) == (0, None)
    assert all(row.hard_f1 is None for row in table.relations.values())


def test_a_failed_query_is_wrong_even_where_nothing_is_to_be_found() -> None:
    failed = [Prediction(x.query, failed=True) for x in VAL]
    assert any(not gold_column(x, EDITION) for x in VAL)
    table = compare(CONTEXT, "s", VAL, failed, {})
    assert (table.failed, table.overall.system) == (len(VAL), 0.0)


@pytest.mark.parametrize("tuned", [True, False])
def test_a_system_is_no_control_of_itself(tuned: bool) -> None:
    table = controls(CONTEXT, SPACE.system("prior"), VAL, Selection(tuned=tuned))
    assert set(table.overall.controls) == set(CONTROLS) - {"prior"}
    assert table.overall.queries == len(VAL)
    assert set(table.relations) == {x.query.relation for x in VAL}
