"""Files that survive a kill at any step, and directories in which nothing is replaced that is not ours."""

import hashlib
import json
import os
import shutil
import signal
import subprocess
import sys
import textwrap
import time
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from command import Command
from space import SPACE

from lmkbc import InputError, LmkbcError
from lmkbc.files.atomic import (
    DirectoryKind,
    settle,
    staged,
    with_record,
    write_bytes,
    write_directory,
    writing,
)

KIND = DirectoryKind("a run", "manifest.json", frozenset({"a", "b", "a.zip"}), beside=frozenset({"timing.json"}))
OLD = with_record(KIND, {"a": b"old", "a.zip": b"old zip", "b": b"stale", "timing.json": b"1"}, {})
NEW = with_record(KIND, {"a": b"new", "a.zip": b"new zip", "timing.json": b"2"}, {"n": 2})


def contents(directory: Path) -> dict[str, bytes]:
    return {
        path.relative_to(directory).as_posix(): path.read_bytes() for path in directory.rglob("*") if path.is_file()
    }


def test_a_run_replaces_a_run_and_leaves_what_else_is_there(tmp_path: Path) -> None:
    run = tmp_path / "deep" / "run"
    write_directory(run, OLD, KIND)
    assert contents(run) == OLD
    (run / "notes.txt").write_text("mine")
    (run / "figures").mkdir()
    (run / "figures" / "a").write_text("mine too")
    write_directory(run, NEW, KIND)
    assert contents(run) == NEW | {"notes.txt": b"mine", "figures/a": b"mine too"}
    assert [path.name for path in run.parent.iterdir()] == ["run"]


SHA = hashlib.sha256(b"").hexdigest()
FOREIGN: dict[str, dict[str, str]] = {
    "notes": {"notes.txt": "mine"},
    "a hidden file": {".env": "mine"},
    "files of the same names": {"a": "mine", "a.zip": "mine"},
    "an empty manifest": {"manifest.json": "{}"},
    "a web application's manifest": {"manifest.json": '{"name": "x", "icons": []}'},
    "a manifest that is no JSON": {"manifest.json": "\x00"},
    "a manifest nested too deep": {"manifest.json": "[" * 100_000},
    "a manifest of another program": {"manifest.json": json.dumps({"outputs": {"a": SHA}, "versions": {"x": "1"}})},
    "one that lists other files": {
        "manifest.json": json.dumps({"outputs": {"notes.txt": SHA}, "versions": {"lmkbc": "1"}})
    },
    "one without hashes": {"manifest.json": json.dumps({"outputs": {"a": "x"}, "versions": {"lmkbc": "1"}})},
}


@pytest.mark.parametrize("name", FOREIGN)
def test_a_directory_that_is_not_ours_is_left_alone(name: str, tmp_path: Path) -> None:
    run = tmp_path / "run"
    run.mkdir()
    for file, content in FOREIGN[name].items():
        (run / file).write_text(content)
    before = contents(run)
    with pytest.raises(InputError, match=r"run holds files that are not of a run, first '.*': name a directory that"):
        write_directory(run, NEW, KIND)
    assert contents(run) == before


@pytest.mark.parametrize("name", ["../x", "..", "a/b", "/etc/x", "a\\b", ""])
def test_a_record_cannot_name_what_lies_elsewhere(name: str, tmp_path: Path) -> None:
    kind = DirectoryKind("a model", "training.json")
    record = {"outputs": {name: SHA}, "versions": {"lmkbc": "1"}}
    (tmp_path / "training.json").write_text(json.dumps(record))
    assert kind.own(tmp_path) is None


def test_a_file_in_the_way_is_not_replaced(tmp_path: Path) -> None:
    run = tmp_path / "run"
    write_directory(run, NEW, KIND)  # which lists no "b"
    (run / "b").write_text("mine")
    with pytest.raises(InputError, match="b is not of a run but in its way"):
        write_directory(run, OLD, KIND)
    (run / "b").unlink()
    (run / "a").unlink()
    (run / "a").mkdir()
    with pytest.raises(InputError, match="a is not of a run but in its way"):
        write_directory(run, OLD, KIND)
    model = DirectoryKind("a model", "training.json")
    write_directory(tmp_path / "model", with_record(model, {"weights": b"1"}, {}), model)
    (tmp_path / "model" / "README.md").write_text("mine")
    with pytest.raises(InputError, match=r"README\.md is not of a model but in its way"):
        write_directory(tmp_path / "model", with_record(model, {"README.md": b"2"}, {}), model)
    assert contents(tmp_path / "model").keys() == {"weights", "training.json", "README.md"}


@pytest.mark.parametrize("given", [".", "", "/", "..", "x/..", "link", "file", "file/run"])
def test_what_is_no_name_for_a_new_directory_is_refused(
    given: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "empty").mkdir()
    (tmp_path / "link").symlink_to("empty")
    (tmp_path / "file").write_text("mine")
    with pytest.raises(InputError) as error:
        write_directory(Path(given), NEW, KIND)
    assert str(error.value).count("\n") == 0
    assert sorted(path.name for path in tmp_path.rglob("*")) == ["empty", "file", "link"]
    write_directory(tmp_path / "empty", NEW, KIND)


def test_a_place_that_may_not_be_written_to_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write_directory(tmp_path / "run", OLD, KIND)
    monkeypatch.setattr(os, "access", lambda *_: False)
    for name in ("run", "new", "new/run"):
        with pytest.raises(InputError, match="may not be written to"):
            write_directory(tmp_path / name, NEW, KIND)
    with pytest.raises(InputError, match="name another place"):
        write_directory(tmp_path / ("x" * 5000), NEW, KIND)


class _KilledError(BaseException):
    pass


def test_a_kill_at_any_step_leaves_no_file_of_another_run_than_the_manifest(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each step that changes the disk is the last one in turn; after it nothing is done any more, not even tidying."""
    steps, last = 0, 0

    def dying(name: str, module: Any) -> None:
        original = getattr(module, name)

        def step(*arguments: Any, **settings: Any) -> Any:
            nonlocal steps
            steps += 1
            if steps > last:
                raise _KilledError
            return original(*arguments, **settings)

        monkeypatch.setattr(module, name, step)

    for name, module in (("replace", os), ("fsync", os), ("rename", Path), ("unlink", Path), ("rmdir", Path)):
        dying(name, module)
    for name, module in (("rmtree", shutil), ("token_hex", sys.modules[write_directory.__module__])):
        dying(name, module)
    seen, finished = set[str](), False
    while not finished:
        run = tmp_path / str(last)
        run.mkdir()
        for name, content in (OLD | {"notes.txt": b"mine"}).items():
            (run / name).write_bytes(content)
        steps = 0
        try:
            write_directory(run, NEW, KIND)
            finished = True
        except _KilledError:
            pass
        seen.add(_state(run))
        allowed, last = last, 10**6
        settle(run, KIND)
        assert _state(run) in ("all of the old", "all of the new")
        write_directory(run, NEW, KIND)
        assert contents(run) == NEW | {"notes.txt": b"mine"}
        last = allowed + 1
    assert seen == {"all of the old", "some of the old", "some of the new", "all of the new"}


def _state(run: Path) -> str:
    """Which run is there, all of it or some: never two."""
    here = {name: content for name, content in contents(run).items() if not name.startswith(".lmkbc")}
    assert here.pop("notes.txt") == b"mine"
    for name, files in (("old", OLD), ("new", NEW)):
        if here["manifest.json"] == files["manifest.json"]:
            assert here.items() <= files.items()
            return f"{'all' if here == files else 'some'} of the {name}"
    raise AssertionError(here["manifest.json"])


@pytest.mark.kill
def test_a_real_kill_leaves_the_old_run_or_the_new_one(tmp_path: Path) -> None:
    run = tmp_path / "run"
    writer = textwrap.dedent("""
        import sys
        from pathlib import Path
        from lmkbc.files.atomic import DirectoryKind, with_record, write_directory
        kind = DirectoryKind("a run", "manifest.json")
        print("ready", flush=True)
        for number in range(10**6):
            files = {name: str(number).encode() * 1000 for name in "abc"}
            write_directory(Path(sys.argv[1]), with_record(kind, files, {}), kind)
    """)
    kind = DirectoryKind("a run", "manifest.json")
    for attempt in range(5):
        process = subprocess.Popen([sys.executable, "-c", writer, str(run)], stdout=subprocess.PIPE)
        assert process.stdout is not None
        process.stdout.readline()
        time.sleep(0.05 + 0.013 * attempt)
        process.send_signal(signal.SIGKILL)
        process.wait()
        process.stdout.close()
        settle(run, kind)
        if run.is_dir() and [*run.glob("[!.]*")]:  # it may be killed before it wrote one
            files = {name: content for name, content in contents(run).items() if not name.startswith(".lmkbc")}
            outputs = json.loads(files.pop("manifest.json"))["outputs"]
            assert {name: hashlib.sha256(content).hexdigest() for name, content in files.items()} == outputs


def test_a_full_disk_is_one_sentence_and_leaves_what_was_there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run, single = tmp_path / "run", tmp_path / "file"
    write_directory(run, OLD, KIND)
    write_bytes(single, b"old")

    def no_space(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", no_space)
    for directory in (run, tmp_path / "new"):
        with pytest.raises(LmkbcError, match="No space left on device") as error:
            write_directory(directory, NEW, KIND)
        assert error.value.exit_code == 1
    with pytest.raises(LmkbcError, match="No space left on device"):
        write_bytes(single, b"new")
    assert contents(run) == OLD
    assert single.read_bytes() == b"old"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["file", "run"]


def test_a_result_does_not_replace_its_input_nor_a_device(tmp_path: Path, command: Command) -> None:
    read, link = tmp_path / "read", tmp_path / "link"
    read.write_bytes(SPACE.split_path(SPACE.edition("mini"), "val").read_bytes())
    link.symlink_to(read)
    (tmp_path / "x").mkdir()
    submit = command.under("submit", read, "--edition", "mini", "--split", "val", "--out")
    for out in (read, link, "read", tmp_path / "x" / ".." / "read"):
        assert "is what is read: name another file" in submit.fails(out)
    assert "no regular file" in submit.fails(os.devnull)
    submit.done(tmp_path / "new")


def test_what_a_link_points_to_is_written_and_the_link_stays(tmp_path: Path) -> None:
    (tmp_path / "target").write_text("old")
    (tmp_path / "link").symlink_to("target")
    write_bytes(tmp_path / "link", b"new")
    assert (tmp_path / "link").is_symlink()
    assert (tmp_path / "target").read_bytes() == b"new"


@pytest.mark.parametrize("made", [staged, partial(writing, new=True)], ids=["a folder", "a file"])
def test_what_appears_meanwhile_stays(made: Any, tmp_path: Path) -> None:
    block = made(tmp_path / "x")
    block.__enter__()
    (tmp_path / "x").mkdir()
    (tmp_path / "x" / "mine").write_text("mine")
    with pytest.raises(LmkbcError, match="what was there before is untouched"):
        block.__exit__(None, None, None)
    assert contents(tmp_path) == {"x/mine": b"mine"}
    assert [path.name for path in tmp_path.iterdir()] == ["x"]


def test_a_new_file_is_written_where_files_have_no_second_names(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def link(*_: object) -> None:
        raise PermissionError(1, "Operation not permitted")

    monkeypatch.setattr(os, "link", link)
    write_bytes(tmp_path / "x", b"new", new=True)
    with pytest.raises(LmkbcError, match="appeared meanwhile"):
        write_bytes(tmp_path / "x", b"newer", new=True)
    assert contents(tmp_path) == {"x": b"new"}
