"""Damage to every file that is read: a sentence, or the same result; no traceback, and not silently another."""

import random
import shutil
from pathlib import Path

import pytest
from artefacts import ARTEFACTS, asked, damage
from forge import Ended, Forge
from loopback import Loopback
from places import Places, tree

ASIDE = ("timing.json", "manifest.json")
_made: dict[str, Path] = {}
_read: dict[str, dict[str, bytes]] = {}


def made(name: str, forge: Forge, places: Places) -> tuple[Path, dict[str, bytes]]:
    """The artefact in a folder of its own, undamaged, and what reading it comes to."""
    if name not in _made:
        folder = places.root / f"artefact {name}"
        folder.mkdir()
        ARTEFACTS[name].make(forge, places, folder)
        once = copied(folder, places.root / f"reading {name}")
        ended = read(name, forge, places, once)
        assert ended.code == 0, ended.err
        _made[name], _read[name] = folder, tree(once / "out", ASIDE)
    return _made[name], _read[name]


def copied(folder: Path, to: Path) -> Path:
    """The same folder at another place; its files hold no path of it."""
    return Path(shutil.copytree(folder, to, symlinks=True))


def read(name: str, forge: Forge, places: Places, folder: Path) -> Ended:
    return forge.run(ARTEFACTS[name].read(places, folder), places.environment(folder), timeout=120)


@pytest.mark.whole
@pytest.mark.parametrize("artefact", ARTEFACTS)
def test_damage_to(forge: Forge, places: Places, tmp_path: Path, artefact: str, seed: int) -> None:
    folder, whole = made(artefact, forge, places)
    folder = copied(folder, tmp_path / "damaged")
    how = damage(folder, ARTEFACTS[artefact].files, random.Random(f"{artefact} {seed}"))
    print(how)
    ended = read(artefact, forge, places, folder)
    assert ended.code in (0, 1, 2), f"{how}: {ended}"
    assert "Traceback" not in ended.err, f"{how}: {ended.err}"
    if ended.code:
        assert "error: " in ended.err, f"{how}: {ended.err}"
    elif "thresholds" in how and how.endswith(": gone"):
        assert "untuned" in ended.err, "thresholds that are gone are told"
    else:
        assert tree(folder / "out", ASIDE) == whole, f"{how}: silently another result"


def test_damage_to_the_store(forge: Forge, places: Places, tmp_path: Path, seed: int) -> None:
    """An answer that cannot be read is asked again, or named."""
    with Loopback(keep=False) as server:
        command = asked(places, tmp_path, server.url)
        ended = forge.run(command, places.environment(tmp_path))
        assert ended.code == 0, ended.err
        whole = tree(tmp_path / "out", ASIDE)
        shutil.rmtree(tmp_path / "out")
        how = damage(tmp_path, ["answers.sqlite"], random.Random(seed))
        ended = forge.run(command, places.environment(tmp_path))
        assert "Traceback" not in ended.err, f"{how}: {ended.err}"
        named = ended.code in (1, 2) and "error: " in ended.err and "answers.sqlite" in ended.err
        assert named or tree(tmp_path / "out", ASIDE) == whole, f"{how}: {ended}"
