"""GGUF files from anywhere: cut, forged, of another kind, and disks, neighbours and kills while one is unpacked."""

from __future__ import annotations

import json
import os
import random
import resource
import signal
import struct
import subprocess
import sys
import tracemalloc
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import tiny_causal
import tiny_gguf
from small_disk import small_disk

from lmkbc.errors import InputError, LmkbcError
from lmkbc.models.gguf import convert, header
from lmkbc.models.gguf.convert import unpacked
from lmkbc.models.local.checkpoint import load

MEMORY = 200 << 20
"""Bytes that no forged header may take."""


@pytest.fixture(scope="module")
def tiny(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tiny_gguf.write(tmp_path_factory.mktemp("gguf") / "m.gguf")


def made(path: Path) -> list[Path]:
    """What the cache holds of unpacked models."""
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


def forged(version: int = 3, tensors: int = 0, keys: int = 1, rest: bytes = b"") -> bytes:
    return b"GGUF" + struct.pack("<IQQ", version, tensors, keys) + rest


def field(key: str, kind: int, value: bytes) -> bytes:
    return struct.pack("<Q", len(key)) + key.encode() + struct.pack("<I", kind) + value


def array(inner: int, count: int) -> bytes:
    return field("a", 9, struct.pack("<IQ", inner, count))


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"", "no GGUF file"),
        (b"GG", "no GGUF file"),
        (b"\x80\x04pickle of something", "no GGUF file"),
        (b"GGUF", "needs 4 bytes more"),
        (forged(version=1), "version 1"),
        (forged(version=3 << 24), "version 50331648"),
        (forged(keys=2**60), "which no model has"),
        (forged(tensors=2**60), "which no model has"),
        (forged(rest=struct.pack("<Q", 2**62)), "bytes more than it has"),
        (forged(rest=array(4, 2**61)), "bytes more than it has"),
        (forged(rest=array(8, 2**50)), "strings, which no model has"),
        (forged(rest=array(8, 2**19)), "needs 8 bytes more"),
        (forged(rest=array(9, 2**50)), "an array of the type 9"),
        (forged(rest=array(77, 1)), "an array of the type 77"),
        (forged(rest=field("a", 77, b"")), "unknown type 77"),
        (forged(rest=field("a", 8, struct.pack("<Q", 1) + b"\xff")), "no UTF-8"),
        (forged(keys=2, rest=field("a", 0, b"1") * 2), "the field a twice"),
        (forged(rest=field("general.alignment", 4, struct.pack("<I", 3))), "alignment 3"),
        (forged(rest=field("general.name", 4, struct.pack("<I", 3))), "general.architecture is missing"),
        (forged(keys=0, tensors=1, rest=struct.pack("<QI", 0, 2**31)), "2147483648 axes"),
    ],
)
def test_forged_headers_are_refused_in_little_memory(content: bytes, said: str, tmp_path: Path) -> None:
    path = tmp_path / "m.gguf"
    path.write_bytes(content)
    tracemalloc.start()
    try:
        assert said in refusal(path)
        assert tracemalloc.get_traced_memory()[1] < MEMORY
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize("share", [0.01, 0.3, 0.5, 0.9, 0.999])
def test_a_file_that_is_cut_short_is_refused(tiny: Path, share: float, tmp_path: Path) -> None:
    path = tmp_path / "m.gguf"
    content = tiny.read_bytes()
    path.write_bytes(content[: int(len(content) * share)])
    assert "cut short or damaged, fetch it again" in refusal(path)


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
        ({"fields": {"llama.rope.dimension_count": 4}}, "do not fit together"),
        ({"fields": {"llama.attention.head_count_kv": 3}}, "do not fit together"),
        ({"fields": {"llama.rope.freq_base": float("nan")}}, "do not fit together"),
        ({"fields": {"llama.embedding_length": 33}}, "do not fit together"),
        ({"fields": {"llama.embedding_length": 0}}, "which is no size"),
        ({"fields": {"llama.block_count": 2**24}}, "lacks tensors of its 16777216 layers"),
        ({"fields": {"llama.block_count": 3}}, "lacks the tensor blk.2"),
        ({"fields": {"llama.block_count": 1}}, "has a tensor blk.1"),
        ({"fields": {"llama.block_count": "2"}}, "llama.block_count is no int"),
        ({"fields": {"tokenizer.ggml.tokens": ["a", "a"]}}, "eos_token_id is 256, of 2 tokens"),
        ({"fields": {"tokenizer.ggml.tokens": ["a"] * tiny_causal.SIZE}}, "names a token twice"),
        ({"fields": {"tokenizer.ggml.merges": ["a"]}}, "merges no pairs"),
        ({"fields": {"tokenizer.ggml.merges": ["a b"]}}, "a tokenizer that cannot be used"),
        ({"without": ["tokenizer.ggml.tokens"]}, "tokenizer.ggml.tokens is missing"),
        ({"without": ["llama.attention.layer_norm_rms_epsilon"]}, "is missing"),
        ({"without": ["blk.1.attn_q.weight"]}, "lacks the tensor blk.1.attn_q.weight"),
    ],
)
def test_what_is_not_read_is_refused_by_name(change: dict[str, Any], said: str, tmp_path: Path) -> None:
    if "architecture" in change:
        change = change | {"fields": {"mamba.x": 1}}
    assert said in refusal(tiny_gguf.write(tmp_path / "m.gguf", **change))


PIECES = tiny_gguf.PIECES


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"fields": {"tokenizer.ggml.model": "gpt2"}}, "a tokenizer of the kind 'gpt2', 'default'"),
        ({"fields": {"tokenizer.ggml.add_space_prefix": True}}, "a tokenizer of the kind 'llama'"),
        ({"fields": {"tokenizer.ggml.tokens": [*PIECES[:-1], "a" * 129]}}, "a token of more than 128 characters"),
        ({"fields": {"tokenizer.ggml.tokens": [*PIECES[:-1], PIECES[5]]}}, "names a token twice"),
        ({"fields": {"gemma3.rope.scaling.type": "linear"}}, "stretches its positions"),
        ({"fields": {"gemma3.attention.sliding_window_pattern": 4}}, "do not fit together"),
        ({"fields": {"gemma3.attention.value_length": 4}}, "do not fit together"),
        ({"without": ["gemma3.attention.sliding_window"]}, "gemma3.attention.sliding_window is missing"),
        ({"without": ["blk.5.post_ffw_norm.weight"]}, "lacks the tensor blk.5.post_ffw_norm.weight"),
    ],
)
def test_a_gemma_that_is_not_read_is_refused_by_name(change: dict[str, Any], said: str, tmp_path: Path) -> None:
    assert said in refusal(tiny_gguf.write(tmp_path / "m.gguf", architecture="gemma3", **change))


def test_a_vocabulary_that_would_make_merges_without_end_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("lmkbc.models.gguf.vocabulary.MOST_MERGES", 20)
    tokens = [*PIECES[:-100], *("x" * length for length in range(2, 102))]
    fields = {"tokenizer.ggml.tokens": tokens}
    assert "more than 20 merges" in refusal(tiny_gguf.write(tmp_path / "m.gguf", architecture="gemma3", fields=fields))


def test_a_quantisation_that_is_not_read_is_refused(tmp_path: Path) -> None:
    path = tiny_gguf.write(tmp_path / "m.gguf", kind="F16")
    content, name = path.read_bytes(), b"blk.0.attn_q.weight"
    kind = content.index(name) + len(name) + 4 + 16
    assert struct.unpack_from("<I", content, kind) == (1,)
    for number, said in ((24, "quantised as I8, which cannot be unpacked"), (4, "numbers of the unknown type 4")):
        path.write_bytes(content[:kind] + struct.pack("<I", number) + content[kind + 4 :])
        assert said in refusal(path)


def test_no_mutated_header_does_more_than_be_refused(tiny: Path, tmp_path: Path) -> None:
    paths = tiny, tiny_gguf.write(tmp_path / "gemma.gguf", architecture="gemma3")
    sound = [(path.read_bytes(), tiny_gguf.header_size(path)) for path in paths]
    draw = random.Random(0)
    extremes = [struct.pack("<Q", one) for one in (0, 1, 255, 2**16, 2**31, 2**32 - 1, 2**40, 2**63, 2**64 - 1)]
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    refusals = []
    for number in range(300):
        content, size = sound[number % 2]
        changed = bytearray(content)
        for _ in range(draw.choice((1, 1, 2, 8))):
            place = draw.randrange(4, size)
            new = draw.choice((draw.randbytes(1), draw.choice(extremes)[: draw.choice((4, 8))]))
            changed[place : place + len(new)] = new
        path = tmp_path / f"{number}.gguf"
        path.write_bytes(changed)
        try:
            load(str(path)) if number % 10 == 0 else convert.plan(path)
        except InputError as error:
            refusals.append(str(error))
        path.unlink()
    assert len(refusals) > 100
    assert not any("\n" in one for one in refusals)
    grown = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before
    assert grown << 10 < MEMORY


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


@pytest.mark.parametrize("name", ["model.safetensors", "config.json", "tokenizer.json", convert.RECORD])
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
from lmkbc.models.gguf import convert
values, count = convert._values, 0
def slow(path, placed):
    global count
    count += 1
    if count == int(sys.argv[2]):
        os.kill(os.getpid(), signal.SIGKILL)
    time.sleep(0.05)
    return values(path, placed)
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
    assert json.loads((Path(done[0][0]) / convert.RECORD).read_text())


def test_a_header_is_read_once_its_file_is_there(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="cannot be read: Is a directory"):
        header.read(tmp_path)
    with pytest.raises(InputError, match="is no file: name a GGUF file"):
        load(str(tmp_path / "absent.gguf"))
