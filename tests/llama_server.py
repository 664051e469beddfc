"""A real llama.cpp server on loopback, in a process of its own: `python llama_server.py '{"model": "FILE.gguf"}'`.

The wheel xllamacpp carries it (lmkbc[llamacpp]).
"""

import json
import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any


def opened(
    model: str, context: int = 8192, slots: int = 2, threads: int = 1, port: int = 0, exact: bool = False
) -> Any:
    """The server, as llama.cpp would have it but for: tokens of context, shared by slots; requests at a time; threads.

    port: 0 takes a free one. exact: keep keys and values in float32, where llama.cpp would halve them.
    """
    import xllamacpp

    given = xllamacpp.CommonParams()
    given.model.path, given.n_ctx, given.n_parallel, given.warmup = model, context, slots, False
    given.cpuparams.n_threads = given.cpuparams_batch.n_threads = threads
    given.port = port
    if exact:
        given.cache_type_k = given.cache_type_v = xllamacpp.ggml_type.GGML_TYPE_F32
        given.flash_attn_type = xllamacpp.llama_flash_attn_type.LLAMA_FLASH_ATTN_TYPE_DISABLED
    return xllamacpp.Server(given)


@contextmanager
def serving(log: Path, model: Path, **settings: Any) -> Iterator[str]:
    """The base URL of a server that runs as long as it is needed. log: where its own words go."""
    own = {name: value for name, value in os.environ.items() if "proxy" not in name.lower()}
    threads = {"OMP_NUM_THREADS": str(settings.get("threads", 1))}
    command = [sys.executable, __file__, json.dumps({"model": str(model), **settings})]
    with (
        log.open("w") as errors,
        subprocess.Popen(command, stdout=subprocess.PIPE, stderr=errors, text=True, env=own | threads) as started,
    ):
        try:
            assert started.stdout is not None
            address = started.stdout.readline().strip()
            if not address:
                raise RuntimeError(f"llama.cpp did not come up: {log.read_text()[-300:]}")
            yield f"{address}/v1"
        finally:
            started.kill()


if __name__ == "__main__":
    server = opened(**json.loads(sys.argv[1]))
    print(server.listening_address, flush=True)
    threading.Event().wait()
