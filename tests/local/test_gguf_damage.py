"""GGUF files that are cut, or of another kind, and disks, neighbours and kills while one is unpacked."""

import json
import os
import signal
import struct
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import tiny_gguf
from small_disk import small_disk

from lmkbc import InputError, LmkbcError
from lmkbc.local.checkpoint import load
from lmkbc.local.gguf.convert import unpacked

GEMMA = {"architecture": "gemma3"}


@pytest.fixture(scope="module")
def tiny(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tiny_gguf.write(tmp_path_factory.mktemp("gguf") / "m.gguf")


def made(path: Path) -> list[Path]:
    """List what the cache holds of unpacked models."""
    return [one for one in path.parent.glob("cache/lmkbc/models/*") if not one.name.endswith(".lock")]


def refusal(path: Path) -> str:
    """The one sentence that a file is refused with."""
    with pytest.raises(InputError) as caught:
        unpacked(path)
    sentence = str(caught.value)
    assert sentence.startswith(str(path))
    assert "\n" not in sentence
    assert not made(path)
    return sentence


@pytest.mark.parametrize(
    ("spoil", "said"),
    [
        (lambda content: b"", "no GGUF file"),
        (lambda content: b"\x80\x04pickle of something", "no GGUF file"),
        (lambda content: content[:4] + struct.pack("<I", 1) + content[8:], "version 1"),
        *(
            (lambda content, share=share: content[: int(len(content) * share)], "cut short or damaged, fetch it again")
            for share in (0.01, 0.3, 0.5, 0.9, 0.999)
        ),
    ],
)
def test_a_file_of_another_kind_or_that_is_cut_short_is_refused(
    tiny: Path, spoil: Callable[[bytes], bytes], said: str, tmp_path: Path
) -> None:
    path = tmp_path / "m.gguf"
    path.write_bytes(spoil(tiny.read_bytes()))
    assert said in refusal(path)


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (
            {"architecture": "mamba"},
            "of the architecture 'mamba', and llama, qwen2, qwen3, gemma3 are read: serve it with",
        ),
        ({"fields": {"tokenizer.ggml.model": "llama"}}, "a tokenizer of the kind 'llama'"),
        ({"fields": {"tokenizer.ggml.pre": "default"}}, "'default'"),
        ({"fields": {"llama.rope.scaling.type": "yarn"}}, "stretches its positions"),
        ({"fields": {"llama.rope.dimension_count": 4}}, "heads of other sizes than 8"),
        ({"fields": {"llama.block_count": 3}}, "lacks the tensor blk.2"),
        ({"fields": {"llama.block_count": 1}}, "has a tensor blk.1"),
        ({"fields": {"llama.block_count": "2"}}, "llama.block_count is no int"),
        ({"fields": {"tokenizer.ggml.merges": ["a b"]}}, "cut short or damaged"),
        ({"without": ["tokenizer.ggml.tokens"]}, "tokenizer.ggml.tokens is missing"),
        ({"without": ["llama.attention.layer_norm_rms_epsilon"]}, "is missing"),
        ({"without": ["blk.1.attn_q.weight"]}, "lacks the tensor blk.1.attn_q.weight"),
        (
            {"architecture": "gemma3", "fields": {"tokenizer.ggml.model": "gpt2"}},
            "a tokenizer of the kind 'gpt2', 'default'",
        ),
        (
            {"architecture": "gemma3", "fields": {"tokenizer.ggml.add_space_prefix": True}},
            "a tokenizer of the kind 'llama'",
        ),
        (GEMMA | {"fields": {"gemma3.rope.scaling.type": "linear"}}, "stretches its positions"),
        ({"fields": {"llama.block_count": 2**32 - 1}}, "its fields say 4294967295 layers"),
        (GEMMA | {"fields": {"gemma3.attention.sliding_window_pattern": 4}}, "every 4th layer"),
        (GEMMA | {"fields": {"gemma3.attention.value_length": 4}}, "heads of other sizes than 8"),
        (
            {"architecture": "gemma3", "without": ["gemma3.attention.sliding_window"]},
            "gemma3.attention.sliding_window is missing",
        ),
        (
            {"architecture": "gemma3", "without": ["blk.5.post_ffw_norm.weight"]},
            "lacks the tensor blk.5.post_ffw_norm.weight",
        ),
    ],
)
def test_what_is_not_read_is_refused_by_name(change: dict[str, Any], said: str, tmp_path: Path) -> None:
    if change.get("architecture") == "mamba":
        change = change | {"fields": {"mamba.x": 1}}
    assert said in refusal(tiny_gguf.write(tmp_path / "m.gguf", **change))


@pytest.mark.parametrize("size", [2**32, 2**40, 2**63 - 1, 2**64 - 1])
def test_lengths_beyond_the_end_of_the_file_take_no_memory(size: int, tiny: Path, tmp_path: Path) -> None:
    content, path = tiny.read_bytes(), tmp_path / "m.gguf"
    architecture = content.index(b"llama") - 8
    tokens = content.index(b"tokenizer.ggml.tokens") + len(b"tokenizer.ggml.tokens") + 8
    for place in (8, 16, 24, architecture, tokens):  # tensors, fields, the first key, a text, an array
        path.write_bytes(content[:place] + struct.pack("<Q", size) + content[place + 8 :])
        assert "cut short or damaged, fetch it again" in refusal(path)


def test_a_quantisation_that_is_not_read_is_refused(tmp_path: Path) -> None:
    path = tiny_gguf.write(tmp_path / "m.gguf", kind="F16")
    content, name = path.read_bytes(), b"blk.0.attn_q.weight"
    kind = content.index(name) + len(name) + 4 + 16
    assert struct.unpack_from("<I", content, kind) == (1,)
    for number, said in ((24, "quantised as I8, which cannot be unpacked"), (4, "numbers of the unknown type 4")):
        path.write_bytes(content[:kind] + struct.pack("<I", number) + content[kind + 4 :])
        assert said in refusal(path)


@pytest.mark.parametrize("most", [10, 3000, 60_000])
def test_a_full_disk_leaves_nothing_and_the_next_try_succeeds(most: int, tiny: Path, tmp_path: Path) -> None:
    path = tmp_path / "m.gguf"
    path.write_bytes(tiny.read_bytes())
    with small_disk(most), pytest.raises(LmkbcError, match=r"cannot be written: .*File too large") as caught:
        unpacked(path)
    assert "\n" not in str(caught.value)
    assert not made(path)
    assert load(str(path))


def test_a_cache_that_may_not_be_written_is_named(tiny: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "file"))
    with pytest.raises(LmkbcError, match=r"cannot be written: Not a directory; .* XDG_CACHE_HOME"):
        unpacked(tiny)


@pytest.mark.parametrize("name", ["model.safetensors", "config.json", "tokenizer.json", "unpacked.json"])
@pytest.mark.parametrize("damage", [Path.unlink, lambda path: path.write_bytes(path.read_bytes()[:-9] + b"\0" * 9)])
def test_a_damaged_directory_is_made_anew(name: str, damage: Callable[[Path], Any], tiny: Path) -> None:
    place = unpacked(tiny)
    before = {one.name: one.read_bytes() for one in place.iterdir()}
    damage(place / name)
    assert unpacked(tiny) == place
    assert {one.name: one.read_bytes() for one in place.iterdir()} == before


SLOW = """
import os, signal, sys, time
from pathlib import Path
from lmkbc.local.gguf import convert
values, count = convert._values, 0
def slow(*asked):
    global count
    count += 1
    if count == int(sys.argv[2]):
        os.kill(os.getpid(), signal.SIGKILL)
    time.sleep(0.05)
    return values(*asked)
convert._values = slow
print(convert.unpacked(Path(sys.argv[1])), count)
"""


def start(path: Path, kill: int) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-c", SLOW, str(path), str(kill)], env=dict(os.environ), stdout=subprocess.PIPE, text=True
    )


@pytest.mark.whole
def test_two_at_once_and_a_kill(tiny: Path, tmp_path: Path) -> None:
    path = tmp_path / "m.gguf"
    path.write_bytes(tiny.read_bytes())
    with start(path, kill=7) as killed:
        assert killed.wait(timeout=120) == -signal.SIGKILL
    (left,) = made(path)
    with start(path, 0) as one, start(path, 0) as other:
        done = [process.communicate(timeout=120)[0].split() for process in (one, other)]
    assert sorted(int(count) > 0 for _, count in done) == [False, True]
    assert made(path) == [Path(done[0][0])]
    assert Path(done[0][0]) != left
    assert json.loads((Path(done[0][0]) / "unpacked.json").read_text())
