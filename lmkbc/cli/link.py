"""`lmkbc link`: strings to Wikidata QIDs, with the evidence for each; and the offline index for linking."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

from lmkbc.api.entity_linking import LinkSources, build_index, explain_link, link
from lmkbc.api.entity_linking import labels as labels_of
from lmkbc.commands.terminal import note, progress, show_json, show_table
from lmkbc.commands.typed import made_from
from lmkbc.errors import InputError, counted
from lmkbc.link.explained import LinkReport


class _DefaultGroup(TyperGroup):
    """A group with a default command: `lmkbc link FILE` means `lmkbc link file FILE`."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Insert the default command if none is named."""
        named = not args or args[0] in self.commands or args[0] in ("-h", "--help")
        return super().parse_args(ctx, args if named else ["file", *args])


app = typer.Typer(
    cls=_DefaultGroup, no_args_is_help=True, help="Link names to Wikidata, and explain links.", rich_markup_mode=None
)


@app.command("file", epilog="Example: lmkbc link predictions.jsonl --edition 2023 --search-table search.json")
@made_from(link)
def file(
    *,
    why: Annotated[
        str | None,
        typer.Option(
            "--explain", metavar="NAME", help="Explain how this name is linked, as in Germany; needs --relation."
        ),
    ] = None,
    subject: Annotated[str, typer.Option(help="With --explain: the subject that has this object.")] = "",
    json: bool = False,
    **given: Any,
) -> None:
    """Link a predictions file (the default), or explain one link. Every link has its evidence."""
    if (given["predictions"] is None) == (why is None) or (why is not None and len(given["relation"] or ()) != 1):
        raise InputError("give either a predictions file to link, or both --explain TEXT and --relation NAME")
    if why is not None:
        sources = {name: value for name, value in given.items() if name in LinkSources.__annotations__}
        _explain(why, given["relation"][0], subject, sources)
        return
    with progress() as report_progress:
        report = link(**given, progress=report_progress)
    if json:
        show_json([tally._asdict() for tally in report.tallies()])
    else:
        _print(report)
    note(f"{given['out']}: written; {counted(len(report.unlinked), 'text stays', 'texts stay')} unlinked")


def _explain(text: str, relation: str, subject: str, sources: dict[str, Any]) -> None:
    found, offers, searched = explain_link(text, relation, subject=subject, **sources)
    fits = {True: "yes", False: "no", None: "unknown"}
    rows = [
        ["*" if chosen else "", evidence, hit.id, hit.label, hit.description, fits[fit]]
        for evidence, hit, fit, chosen in offers
    ]
    show_table(["", "evidence", "id", "label", "description", "of the type"], rows)
    note(f"{text!r} -> {found.id or 'unlinked'} ({found.evidence}: {found.strategy})")
    if not searched:
        note(
            "linked by train objects and --index alone; --contact or LMKBC_CONTACT asks Wikidata too, --search-table "
            "asks a table"
        )


@app.command("build", epilog="Example: lmkbc link build aliases.sqlite --edition 2023 --dump latest-all.json.bz2")
@made_from(build_index)
def build(**given: Any) -> None:
    """Build an alias index from train splits, tables and a dump. A killed build can be resumed."""
    with progress() as report:
        built = build_index(**given, progress=report)
    path, dump = given["path"], given["dump"]
    for source, line, reason in built.broken:
        note(f"{_file(source, dump)}, line {line}: skipped, {reason}")
    note(
        f"{path}: {counted(built.entities, 'entity')}, {counted(built.names, 'name')}, "
        f"{counted(len(built.broken), 'broken line')}"
    )
    if not built.entities:
        note(f"{path} finds nothing: give train splits, a table of text and id, or a JSON dump of Wikidata")


def _file(source: str, dump: Path | None) -> str:
    """Return a source's name for messages. A dump's name in the index also has its size and filters."""
    return str(dump) if dump is not None and source.startswith(f"{dump.name} ") else source


@app.command("labels", epilog="Example: lmkbc link labels Q584 Q183 --index aliases.sqlite")
@made_from(labels_of)
def labels(**given: Any) -> None:
    """Show the label of each QID."""
    names = labels_of(**given)
    show_table(["id", "label"], [[qid, names.get(qid)] for qid in given["ids"]])


def _print(report: LinkReport) -> None:
    columns = ["relation", "evidence", "strategy", "linked", "unlinked", "ambiguous"]
    show_table(columns, [list(tally) for tally in report.tallies()])
    show_table(["relation", "linked", "unlinked", "ambiguous"], [[n, *c] for n, c in report.per_relation().items()])
