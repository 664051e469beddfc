"""One writer at a time: of commands that race for a directory one works, and the others hear of it first."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from command import Command

from lmkbc import InputError
from lmkbc.files.writable import writing_alone


def test_another_run_is_told_before_anything_is_asked(command: Command, tmp_path: Path) -> None:
    predict = ("predict", "--edition", "mini", "--split", "val", "--system", "bl22-empty", "--out", "runs/one")
    (tmp_path / "s.csv").write_text("name\nChad\n")
    build = ("build", "--subjects", "s.csv", "--edition", "mini", "--system", "prior", "--relation", "children")
    for argv in (predict, (*build, "--out", "runs/one")):
        with writing_alone(Path("runs/one")):
            status, _, told = command(*argv)
        assert (status, told.count("\n"), "another run is writing runs/one: wait" in told) == (2, 1, True), told
        assert not [*Path("runs").iterdir()]
    assert command(*predict)[0] == 0
    assert [path.name for path in Path("runs").iterdir()] == ["one"]


@pytest.mark.kill
def test_a_killed_process_locks_nothing(tmp_path: Path) -> None:
    code = (
        "import sys, time\nfrom pathlib import Path\nfrom lmkbc.files.writable import writing_alone\n"
        "with writing_alone(Path(sys.argv[1])):\n    print('held', flush=True)\n    time.sleep(600)\n"
    )
    with subprocess.Popen([sys.executable, "-c", code, tmp_path / "kb"], stdout=subprocess.PIPE) as child:
        assert child.stdout is not None
        assert child.stdout.readline() == b"held\n"
        with pytest.raises(InputError, match="another run is writing"), writing_alone(tmp_path / "kb"):
            pass
        os.kill(child.pid, signal.SIGKILL)
    with writing_alone(tmp_path / "kb"):
        pass
    assert [*tmp_path.iterdir()] == []
