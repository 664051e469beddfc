"""The wheel: carries relations, editions and the bundled data, and predicts outside the checkout."""

import os
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent


@pytest.mark.slow
def test_a_wheel_predicts_outside_the_checkout(tmp_path: Path) -> None:
    build = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(tmp_path)]
    subprocess.run(build, cwd=ROOT, check=True, capture_output=True)
    (wheel,) = tmp_path.glob("*.whl")
    site = tmp_path / "site"
    with zipfile.ZipFile(wheel) as opened:
        opened.extractall(site)
    assert not list(site.glob("lmkbc/_*/__init__.py"))
    assert not (site / "lmkbc" / "_eval" / "bench").exists()
    assert (site / "lmkbc" / "py.typed").is_file()
    systems, bundled = (
        {path.relative_to(root) for path in (root / "lmkbc/systems").rglob("*.*") if path.suffix != ".pyc"}
        for root in (ROOT, site)
    )
    assert systems == bundled
    clean = {name: value for name, value in os.environ.items() if not name.startswith("LMKBC_")}
    command = "import lmkbc, sys; assert 'site' in lmkbc.__file__; from lmkbc.cli import main; main()"
    result = subprocess.run(
        [sys.executable, "-P", "-c", command, "predict", "--system", "prior", "--split", "test"],
        cwd=tmp_path,
        env=clean | {"PYTHONPATH": str(site), "XDG_CACHE_HOME": str(tmp_path / "cache")},
        capture_output=True,
        text=True,
        check=False,
    )
    assert result.returncode == 0, result.stderr
    assert (tmp_path / "submissions" / "mini-test-prior" / "predictions.zip").is_file()
