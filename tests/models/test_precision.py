"""Hardware is asked for what it has, not for what a library can emulate."""

from __future__ import annotations

import platform

import pytest
import torch

from lmkbc.models.precision import multiplies_bf16

CPU = torch.device("cpu")


@pytest.mark.parametrize(
    ("machine", "has", "library", "native"),
    [
        ("x86_64", {"avx512_f": True, "avx512_bf16": False, "amx_bf16": False}, True, False),  # emulated, and slower
        ("x86_64", {"avx512_f": True, "avx512_bf16": True}, True, True),
        ("AMD64", {"amx_bf16": True}, True, True),
        ("x86_64", {"amx_bf16": True}, False, False),  # the library was told to leave it
        ("x86_64", {"avx2": True}, False, False),
        ("aarch64", {}, True, True),
        ("aarch64", {}, False, False),
    ],
)
def test_bf16_is_native_where_there_are_instructions_for_it(
    machine: str, has: dict[str, bool], library: bool, native: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(platform, "machine", lambda: machine)
    monkeypatch.setattr(torch.cpu, "get_capabilities", lambda: has)
    monkeypatch.setattr(torch.ops.mkldnn, "_is_mkldnn_bf16_supported", lambda: library, raising=False)
    assert multiplies_bf16(CPU) is native
