"""Other processors, as far as one machine can stand for them: libraries are told to leave instructions unused.

python tests/processors.py sse4 -m pytest -m floats
"""

import os
import sys
from collections.abc import Mapping

PROCESSORS: Mapping[str, Mapping[str, str]] = {
    "as it is": {},
    "avx2": {
        "ATEN_CPU_CAPABILITY": "avx2",
        "ONEDNN_MAX_CPU_ISA": "AVX2",
        "MKL_ENABLE_INSTRUCTIONS": "AVX2",
        "OPENBLAS_CORETYPE": "Haswell",
    },
    "sse4": {
        "ATEN_CPU_CAPABILITY": "default",
        "ONEDNN_MAX_CPU_ISA": "SSE41",
        "MKL_ENABLE_INSTRUCTIONS": "SSE4_2",
        "MKL_CBWR": "COMPATIBLE",  # what MKL heeds on processors that are not Intel's
        "OPENBLAS_CORETYPE": "Nehalem",
        "NPY_DISABLE_CPU_FEATURES": "X86_V3",
        "GLIBC_TUNABLES": "glibc.cpu.hwcaps=-AVX2,-FMA,-AVX2_Usable,-FMA_Usable",
    },
}
"""Name -> environment. The last is the lowest that can be emulated on x86-64; elsewhere the settings do nothing."""


def main(name: str, *words: str) -> None:
    """Run Python with these words as on another processor."""
    os.execve(sys.executable, [sys.executable, *words], {**os.environ, **PROCESSORS[name]})


if __name__ == "__main__":
    main(*sys.argv[1:])
