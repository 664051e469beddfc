"""One writer at a time: of commands that race for a directory one works, and the others hear of it first."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from command import Command

from lmkbc.errors import InputError
from lmkbc.files.lock import writing_alone


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


def test_one_of_many_threads_has_it(tmp_path: Path) -> None:
    """Each has a turn or is refused; no two at once, and nothing is left."""
    inside, most, refused, turns = 0, 0, 0, 0
    count = threading.Lock()

    def race() -> None:
        nonlocal inside, most, refused, turns
        for _ in range(40):
            try:
                with writing_alone(tmp_path / "deep" / "kb"):
                    with count:
                        inside, turns = inside + 1, turns + 1
                        most = max(most, inside)
                    with count:
                        inside -= 1
            except InputError as error:
                with count:
                    refused += "another run is writing" in str(error)

    with ThreadPoolExecutor(6) as racers:
        list(racers.map(lambda _: race(), range(6)))
    assert (most, turns + refused) == (1, 240)
    assert turns > 0
    assert not [path for path in tmp_path.rglob("*") if path.is_file()]


@pytest.mark.kill
def test_a_killed_process_locks_nothing(tmp_path: Path) -> None:
    code = (
        "import sys, time\nfrom pathlib import Path\nfrom lmkbc.files.lock import writing_alone\n"
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
