"""The code of a folder is run once the user trusts it, as the bytes that were looked at."""

import os
import pty
import shutil
import subprocess
import sys
from importlib.util import cache_from_source
from pathlib import Path

import pytest
from command import Command

import lmkbc
from lmkbc import InputError, LmkbcError, Workspace

ROOT = Path(__file__).resolve().parents[2]
MODULE = """
from pathlib import Path
from lmkbc import EntityType, Relation
Path({ran!r}).touch()
THING = EntityType("thing", "Q1")
RELATION = Relation(
    name="thing", names=("thing",), property="P1", subject_type=THING, object_type=THING, kind="entity",
    may_be_empty=False, definition="d", clozes=("{{subject}} has {{mask}}.",), question="What of {{subject}}?",
    triple="has", statement="{{subject}} has {{object}}.",
)
"""


@pytest.fixture
def stranger(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A workspace that a stranger wrote; `ran` beside it appears when its module is run."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    folder = tmp_path / "stranger"
    (folder / "relations").mkdir(parents=True)
    (folder / "lmkbc.toml").touch()
    (folder / "relations" / "thing.py").write_text(MODULE.format(ran=str(tmp_path / "ran")))
    return folder


def ran(folder: Path) -> bool:
    """Return whether the module was run since the last call."""
    mark = folder.parent / "ran"
    was_run = mark.exists()
    mark.unlink(missing_ok=True)
    return was_run


def edit(folder: Path) -> None:
    with (folder / "relations" / "thing.py").open("a") as file:
        file.write("# changed\n")


def others(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Make a file or a link another user's."""
    if os.getuid() == 0:
        os.lchown(path, 4321, -1)
    else:
        monkeypatch.setattr(os, "getuid", lambda: 4321)


@pytest.mark.parametrize(
    "words",
    [
        "relations list",
        "relations check",
        "relations show thing",
        "relations new P36 --offline",
        "data list",
        "data make",
        "data fetch 2023",
        "systems compare 2026",
        "systems check embedded",
        "predict --split val --system prior",
        "ask Chad thing",
        "link --explain Chad --relation thing",
        "submit rows.jsonl --edition mini",
    ],
)
def test_no_command_runs_code_of_a_stranger_in_a_pipe(
    command: Command, stranger: Path, words: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(stranger)
    Path("rows.jsonl").touch()
    error = command.fails(*words.split())
    assert not ran(stranger)
    assert f"error: {stranger} holds code that this would run" in error, error
    assert error.endswith(
        f": relations/thing.py; read it, then give --trust (in Python, trust=True), or run 'lmkbc trust {stranger}', "
        f"or 'lmkbc trust --own {stranger}' if you wrote it, as after a move\n"
    )


def test_trust_is_remembered_by_path_and_content(command: Command, stranger: Path, tmp_path: Path) -> None:
    show = command.under("relations", "list", "--workspace")
    show.done(stranger, "--trust")
    assert ran(stranger)
    show.done(stranger)
    edit(stranger)
    (stranger / "relations" / "new.py").write_text("raise SystemExit(0)")
    assert "as it is now: relations/new.py, relations/thing.py;" in show.fails(stranger)
    assert not ran(stranger)
    (stranger / "relations" / "new.py").unlink()
    _, told = command.done("trust", stranger)
    assert told == f"{stranger}/relations/thing.py\n1 file of {stranger} trusted as they are now\n"
    show.done(os.path.relpath(stranger))
    show.fails(shutil.copytree(stranger, tmp_path / "copy"))


def test_ones_own_workspace_is_not_asked_about(command: Command, stranger: Path, tmp_path: Path) -> None:
    command.done("init", "mine", "--relation", "maker:entity")
    module = tmp_path / "mine" / "relations" / "maker.py"
    module.write_text(module.read_text() + "# filled in\n")
    show = command.under("relations", "list", "--workspace")
    show.done("mine")
    shutil.copy(stranger / "relations" / "thing.py", module.parent)
    show.done("mine")
    command.done("relations", "new", "P36", "--offline", "--workspace", "mine")
    command.done("trust", "--own", stranger)
    edit(stranger)
    show.done(stranger)
    (tmp_path / "mine").rename(tmp_path / "old")  # it keeps its number, which a deleted folder would free
    shutil.copytree(stranger, tmp_path / "mine")
    assert "holds code" in show.fails("mine")


def test_what_the_tool_wrote_is_trusted_as_it_wrote_it(command: Command, stranger: Path) -> None:
    (stranger / "relations" / "thing.py").unlink()
    command.done("relations", "new", "P36", "--offline", "--workspace", stranger)
    show = command.under("relations", "list", "--workspace", stranger)
    show.done()
    (stranger / "relations" / "p36.py").write_text("raise SystemExit(0)")
    assert "relations/p36.py" in show.fails()


def test_python_asks_for_trust_too(stranger: Path) -> None:
    with pytest.raises(LmkbcError, match="trust=True"):
        lmkbc.ask("Chad", "thing", workspace=stranger, system="prior")
    assert not ran(stranger)
    assert lmkbc.trust(stranger) == {stranger / "relations" / "thing.py": ""}
    assert "thing" in Workspace(stranger).own_relations


def test_without_a_place_to_remember_trust_holds_for_the_call(
    stranger: Path, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    (tmp_path / "state").touch()
    assert "thing" in Workspace(stranger, trust=True).own_relations
    assert "trust is not remembered" in caplog.text
    with pytest.raises(LmkbcError):
        _ = Workspace(stranger).own_relations


def test_a_planted_compiled_module_is_not_run(stranger: Path, tmp_path: Path) -> None:
    import py_compile

    module = stranger / "relations" / "thing.py"
    text, state = module.read_bytes(), module.stat()
    module.write_bytes(text.replace(b"ran", b"bad"))
    os.utime(module, ns=(state.st_atime_ns, state.st_mtime_ns))
    py_compile.compile(str(module), cfile=cache_from_source(str(module)))
    module.write_bytes(text)
    os.utime(module, ns=(state.st_atime_ns, state.st_mtime_ns))
    assert "thing" in Workspace(stranger, trust=True).own_relations
    assert ran(stranger)
    assert not (tmp_path / "bad").exists()


def test_names_are_shown_as_escapes(stranger: Path) -> None:
    (stranger / "relations" / "a\x1b[2J\nerror: b.py").touch()
    with pytest.raises(LmkbcError, match=r"relations/a\\x1b\[2J\\nerror: b\.py") as error:
        _ = Workspace(stranger).relations
    assert str(error.value).isprintable()


@pytest.mark.parametrize("place", [".", "lmkbc.toml", "relations", "relations/thing.py"])
def test_what_others_can_change_is_named_and_never_ones_own(
    command: Command, stranger: Path, place: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    show = command.under("relations", "list", "--workspace", stranger)
    command.done("trust", "--own", stranger)
    edit(stranger)
    show.done()
    (stranger / place).chmod((stranger / place).stat().st_mode | 0o002)
    error = show.fails("--trust")
    assert "every user of this machine can change" in error
    assert "run 'chmod o-w " in error
    (stranger / place).chmod((stranger / place).stat().st_mode & ~0o002)
    show.done()
    others(stranger / place, monkeypatch)
    edit(stranger)
    ran(stranger)
    assert f"{place} (another user's)" in show.fails()
    assert not ran(stranger)
    command.done("trust", stranger)
    show.done()


def test_a_link_to_ones_own_file_does_not_make_a_workspace(
    command: Command, stranger: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shared = tmp_path / "shared"
    shutil.copytree(stranger / "relations", shared / "relations")
    (shared / "lmkbc.toml").symlink_to(stranger / "lmkbc.toml")
    shared.chmod(0o777)
    others(shared / "lmkbc.toml", monkeypatch)
    monkeypatch.chdir(shared)
    _, told = command.done("relations", "list")
    assert f"{shared} is not used, since its lmkbc.toml is another user's" in told
    assert not ran(stranger)


def test_a_linked_folder_of_modules_is_looked_at_where_it_lies(
    stranger: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (stranger / "relations").rename(tmp_path / "elsewhere")
    (stranger / "relations").symlink_to(tmp_path / "elsewhere")
    lmkbc.trust(stranger, own=True)
    edit(stranger)
    assert "thing" in Workspace(stranger).own_relations
    (tmp_path / "elsewhere").chmod(0o777)
    with pytest.raises(InputError, match="every user of this machine"):
        _ = Workspace(stranger).own_relations


@pytest.mark.whole(but=["y-0"])
@pytest.mark.parametrize(("answer", "status"), [("y", 0), ("n", 2), ("", 2)])
def test_on_a_terminal_the_user_is_asked(stranger: Path, tmp_path: Path, answer: str, status: int) -> None:
    master, slave = pty.openpty()
    os.write(master, f"{answer}\n".encode())
    call = [sys.executable, "-m", "lmkbc", "relations", "list", "--workspace", str(stranger)]
    clean = os.environ | {"PYTHONPATH": str(ROOT), "XDG_STATE_HOME": str(tmp_path / "state")}
    done = subprocess.run(call, stdin=slave, stderr=slave, stdout=subprocess.DEVNULL, check=False, env=clean)
    written = os.read(master, 100_000).decode()
    os.close(slave)
    os.close(master)
    assert done.returncode == status, written
    assert "relations/thing.py" in written
    assert ran(stranger) == (status == 0)
    assert "[y/N]" in written


def test_a_shell_completes_nothing_below_a_stranger(stranger: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(stranger)
    call = {"_LMKBC_COMPLETE": "complete_bash", "COMP_WORDS": "lmkbc predict --edition ", "COMP_CWORD": "3"}
    clean = os.environ | {"PYTHONPATH": str(ROOT)} | call
    lines = "import sys; sys.argv = ['lmkbc']; from lmkbc.cli import main; main()"
    done = subprocess.run([sys.executable, "-c", lines], capture_output=True, text=True, check=False, env=clean)
    assert "Traceback" not in done.stderr
    assert not ran(stranger)


@pytest.mark.parametrize("text", ["raise SystemExit(0)", "import sys; sys.exit()", "raise GeneratorExit"])
@pytest.mark.parametrize("folder", ["relations", "eval"])
def test_a_module_that_ends_the_program_is_an_error(command: Command, stranger: Path, folder: str, text: str) -> None:
    (stranger / folder).mkdir(exist_ok=True)
    (stranger / folder / "ends.py").write_text(text)
    error = command.fails("data", "list", "--workspace", stranger, "--trust")
    assert f"{stranger}/{folder}/ends.py: {'GeneratorExit' if 'Generator' in text else 'SystemExit'}: " in error


def test_a_pipe_in_place_of_a_module_is_named_and_not_read(command: Command, stranger: Path) -> None:
    os.mkfifo(stranger / "relations" / "zz.py")
    assert "zz.py is no regular file" in command.fails("relations", "list", "--workspace", stranger)


@pytest.mark.parametrize("name", ["../../x", "a/b", ".hidden", "a b", "x\\ny", "/x"])
def test_a_name_that_is_no_part_of_a_file_name_is_refused(command: Command, stranger: Path, name: str) -> None:
    (stranger / "lmkbc.toml").write_text(f'name = "{name}"\n')
    error = command.fails("relations", "list", "--workspace", stranger, "--trust")
    assert f"{stranger}/lmkbc.toml: " in error
    assert "give letters, digits, '-', '_' and '.'" in error
    assert not ran(stranger)
