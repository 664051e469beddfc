"""How the time of a work grows with its text: no absolute time is asserted, since machines differ and are busy."""

import time
from collections.abc import Callable


def in_proportion(work: Callable[[str], object], text: str) -> bool:
    """Whether a text takes about as much longer as it is longer than its first eighth: 8 times; by the square, 64."""

    def seconds(part: str) -> float:
        start = time.process_time()
        work(part)
        return time.process_time() - start

    short = min(seconds(text[: len(text) // 8]) for _ in range(3))
    return any(seconds(text) < 32 * max(short, 0.005) for _ in range(3))
