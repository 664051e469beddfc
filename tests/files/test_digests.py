"""Lists of digests: names and addresses with their SHA-256."""

from pathlib import Path

from lmkbc.files.checksum import read_digests


def test_digests_are_read_by_name_and_a_cut_line_is_left_out(tmp_path: Path) -> None:
    record = tmp_path / "sha256.txt"
    record.write_text("aa  frames.toml\nbb  https://example.org/a  b.txt\ncc", encoding="utf-8")
    assert read_digests(record) == {"frames.toml": "aa", "https://example.org/a  b.txt": "bb"}
    assert read_digests(tmp_path / "absent.txt") == {}
