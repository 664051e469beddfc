"""A run of a part of a split is shown as such beside runs of whole splits."""

from command import Command


def test_the_table_of_runs_names_the_part_of_a_split(command: Command) -> None:
    words = ("--edition", "mini", "--split", "val", "--system", "bl22-empty", "--no-report")
    command.done("predict", *words, "--limit", 3, "--out", "all/part")
    command.done("predict", *words, "--out", "all/whole")
    shown = command.done("runs", "all")[0]
    part, whole = (next(line for line in shown.splitlines() if line.startswith(name)) for name in ("part", "whole"))
    assert "val; first 3" in part
    assert "first" not in whole
    assert "best published" not in command.done("evaluate", "all/part")[1]
