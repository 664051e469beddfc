"""What a competitor types before a submission: a check that writes nothing."""

import shutil
from pathlib import Path

from command import Command


def test_check_reads_a_file_or_a_zip_and_writes_nothing(command: Command, tmp_path: Path) -> None:
    words = ("--edition", "mini", "--split", "val")
    command.done("predict", *words, "--system", "bl22-empty", "--out", tmp_path / "run", "--no-report")
    place = tmp_path / "alone"
    place.mkdir()
    for name in ("predictions.jsonl", "predictions.zip"):
        shutil.copy(tmp_path / "run" / name, place / name)
        told = command.done("submit", place / name, *words, "--check")[1]
        assert f"{name} can be submitted: 160 queries of mini val, each once; nothing was written" in told
        assert [path.name for path in place.iterdir()] == [name]
        (place / name).unlink()
    lines = (tmp_path / "run" / "predictions.jsonl").read_text().splitlines(keepends=True)
    (place / "less.jsonl").write_text("".join(lines[1:]))
    assert "lacks 1 of 160 queries" in command.fails("submit", place / "less.jsonl", *words, "--check")
