"""`lmkbc compare`: which run is better on the same queries, and whether the difference is noise."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from lmkbc.cli.options import AsJson, Data, EditionName, Root, chosen_edition
from lmkbc.cli.screen import note, plain, show_json
from lmkbc.cli.tables import show_table
from lmkbc.files.atomic import check_file, write_bytes
from lmkbc.workspace import Workspace

if TYPE_CHECKING:
    from lmkbc.compare import Comparison, Difference

EXAMPLE = "Example: lmkbc compare submissions/2023-val-prior submissions/2023-val-embedded --html compare.html"
COLUMNS = ("relation", "rows", "first", "second", "difference", "low", "high", "p", "p (Holm)", "won", "lost", "")


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("compare", epilog=EXAMPLE)(compare)


def compare(
    runs: Annotated[list[Path], typer.Argument(metavar="RUN...", help="Run directories, zips or predictions files.")],
    split: Annotated[str | None, typer.Option("--split", "-s", help="train or val (or dev); else the runs'.")] = None,
    edition: EditionName = None,
    gold: Annotated[Path | None, typer.Option(help="Gold file, in place of the split's.")] = None,
    html: Annotated[Path | None, typer.Option(help="Write a page of it too: one file that needs no network.")] = None,
    json: AsJson = False,
    data: Data = None,
    workspace: Root = None,
) -> None:
    """Compare runs with the first one: difference of macro-F1, its 95 % interval and p-value, rows won and lost."""
    from lmkbc.compare import compare as compared  # which computes, and loads numpy
    from lmkbc.finished import Finished, edition_of, read_gold

    check_file(html, *runs, *filter(None, (gold,)))
    space = Workspace(workspace, data)
    finished = [Finished.at(path) for path in runs]
    chosen = edition_of(space, finished, edition) or chosen_edition(space, None)
    told = next(filter(None, (run.said("split") for run in finished)), "val")
    path = gold if gold is not None else space.gold_path(chosen, split or told)
    made = compared(chosen, read_gold(path, chosen), finished)
    if html is not None:
        from lmkbc.report.comparison import page

        write_bytes(html, page(chosen, made).encode())
        note(f"{html}: written; open it in a browser")
    if json:
        show_json({"edition": chosen.name, "comparisons": [_json(one) for one in made]})
        return
    for one in made:
        _print(chosen.name, one)


def _json(one: Comparison) -> dict[str, Any]:
    relations = {name: _values(part) for name, part in one.relations.items()}
    head = {"first": one.first, "second": one.second, "subjects": one.subjects, "verdict": one.verdict}
    return head | {"overall": _values(one.overall), "relations": relations}


def _values(part: Difference) -> dict[str, Any]:
    return asdict(part) | {"noise": part.is_noise}


def _print(edition: str, one: Comparison) -> None:
    lines = [_line(name, part) for name, part in one.relations.items()]
    lines.append(_line("*** Average ***", one.overall))
    show_table(COLUMNS, lines, title=f"LM-KBC {edition}: {one.second} (second) beside {one.first} (first)")
    sys.stdout.write(plain(one.verdict) + "\n")


def _line(name: str, part: Difference) -> Sequence[Any]:
    numbers = (part.first, part.second, part.difference, part.low, part.high, part.p, part.corrected)
    return [name, part.rows, *numbers, part.won, part.lost, "noise" if part.is_noise else "differs"]
