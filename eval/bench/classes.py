"""Queries and facts of `lmkbc build` about 100 subjects of ten Wikidata classes, by class and relation.

    python eval/bench/classes.py [--edition 2023] [--system prior]...

A line for each class and relation: numbers of queries and facts, their mean confidence, and facts below 0.01. The last
column counts subjects with a second object, for relations with one object. The last lines count facts outside a class's
own relations. The table OWN below defines these.
"""

from __future__ import annotations

import argparse
import csv
from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryDirectory

import polars as pl

import lmkbc
from lmkbc.cli.terminal import error_status, progress
from lmkbc.workspace import Workspace

SUBJECTS = {
    "human": "Marie Curie, Johannes Brahms, Frida Kahlo, Alan Turing, Miles Davis, Toni Morrison, Nelson Mandela, "
    "Ada Lovelace, Akira Kurosawa, Pelé",
    "television series": "The Wire, Breaking Bad, Doctor Who, Fawlty Towers, Twin Peaks, Dark, Borgen, Firefly, "
    "The Sopranos, Tatort",
    "sovereign state": "Chad, Japan, Peru, Norway, Mongolia, Kenya, Iceland, Laos, Uruguay, Slovenia",
    "musical group": "Radiohead, The Beatles, Kraftwerk, Queen, Sigur Rós, ABBA, Nirvana, Portishead, Tinariwen, Can",
    "city": "Vienna, Lagos, Kyoto, Porto, Montreal, Cairo, Riga, Lima, Hanoi, Dresden",
    "river": "Rhine, Niger, Danube, Amazon, Mekong, Zambezi, Elbe, Volga, Orinoco, Tagus",
    "film": "Metropolis, Casablanca, Alien, Amélie, Seven Samurai, Jaws, Fargo, Persona, Stalker, Parasite",
    "business": "Siemens, Toyota, Nestlé, YouTube, Spotify, Lufthansa, Unilever, Pixar, Instagram, Tata Steel",
    "chemical compound": "caffeine, benzene, methane, ethanol, glucose, aspirin, ammonia, urea, sulfuric acid, acetone",
    "written work": "Faust, Ulysses, Dracula, Beloved, Dune, Emma, Hamlet, Don Quixote, The Trial, Walden",
}
"""Class -> subjects."""
OWN = {
    "human": "person",
    "television series": "series",
    "sovereign state": "country, place",
    "musical group": "band",
    "city": "city, place",
    "river": "river",
    "film": "",
    "business": "company",
    "chemical compound": "chemical compound",
    "written work": "",
}
"""Class -> types of subjects in relations to which the class belongs."""


def main(argv: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--edition", default="2023")
    parser.add_argument("--system", action="append", help="repeatable (default: prior and embedded)")
    given = parser.parse_args(argv)
    for system in given.system or ("prior", "embedded"):
        with TemporaryDirectory() as folder, progress() as report:
            file, out = Path(folder) / "subjects.csv", Path(folder) / "kb"
            rows = [(name, class_) for class_, names in SUBJECTS.items() for name in names.split(", ")]
            with file.open("w", encoding="utf-8", newline="") as opened:
                csv.writer(opened).writerows([("name", "class"), *rows])
            base = lmkbc.build(file, out, edition=given.edition, system=system, offline=True, progress=report)
            show(f"LM-KBC {given.edition}, {system}", base, [class_ for _, class_ in rows])


def show(title: str, base: lmkbc.KnowledgeBase, classes: Sequence[str]) -> None:
    """Print the table of a base. classes: class of each subject."""
    relations = {one.name: one for one in Workspace().relations.values()}
    of_row = pl.DataFrame({"subject_row": range(len(classes)), "class": classes})
    facts = base.facts.collect().join(of_row, on="subject_row")
    nothing = base.nothing.collect().join(of_row, on="subject_row")
    print(f"{title}: {len(classes)} subjects, {base.counts['queries']} queries, {len(facts)} facts")
    print(f"{'class':18} {'relation':20} queries  facts  confidence  < 0.01  second")
    outside = seconds = 0
    for class_ in dict.fromkeys(classes):
        own, empty = facts.filter(pl.col("class") == class_), nothing.filter(pl.col("class") == class_)
        names = sorted({*own["relation"], *empty["relation"]})
        for name in names or ["-"]:
            some = own.filter(pl.col("relation") == name)
            per_subject = some.group_by("subject_row").len()["len"]
            second = int((per_subject > 1).sum()) if name in relations and relations[name].has_one_object() else 0
            queries = len(per_subject) + len(empty.filter(pl.col("relation") == name))
            sure, low = some["confidence"].mean(), int((some["confidence"] < 0.01).sum())
            mean = f"{sure:10.3f}" if isinstance(sure, float) else " " * 10
            print(f"{class_:18} {name:20} {queries:7}  {len(some):5}  {mean}  {low:6}  {second:6}")
            seconds += second
            outside += len(some) * (
                name in relations and relations[name].subject_type.noun not in OWN[class_].split(", ")
            )
    print(f"outside of their classes: {outside}; second objects where there is one: {seconds}")
    below = int((facts["confidence"] < 0.01).sum())
    print(f"facts below 0.01: {below}", end="\n\n", flush=True)


if __name__ == "__main__":
    with error_status():
        main()
