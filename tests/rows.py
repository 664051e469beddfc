"""Rows as JSON lines, where a test wants them."""

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any


def jsonl(path: Path, rows: Iterable[Any]) -> Path:
    """Write a file, and the folders that it lies in; return its path. A text is a line as it stands."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(
        "".join((row if isinstance(row, str) else json.dumps(row)) + "\n" for row in rows), encoding="utf-8"
    )
    return path
