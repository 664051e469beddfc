"""What a table of scores says of itself."""

from dataclasses import replace

from lmkbc.scoring.table import Summary, Table

PERFECT = Summary(1.0, 1.0, 1.0, 1.0, 1.0, 1.0, average_predictions=1.0, empty_predictions=0, rows=2)


def test_scores_above_one_are_explained_and_one_is_not() -> None:
    above = replace(PERFECT, micro_r=1.5)
    assert Table(PERFECT, {"a": PERFECT}).beyond == ""
    assert Table(PERFECT, {"a": PERFECT, "b": above}).beyond.startswith("above 1 in b: ")
