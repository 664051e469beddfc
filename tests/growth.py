"""How the time of a work grows with its text: no absolute time is asserted, since machines differ and are busy."""

import time
from collections.abc import Callable


def in_proportion(work: Callable[[str], object], part: str, length: int = 10_000) -> bool:
    """Whether a long text takes about as much longer as it is longer than its first eighth: 8 times; by the square, 64.

    Each try measures both, one after the other: a machine that becomes busy is slower at both, or is tried again.

    part: what the text repeats.
    """
    text = part * (length // len(part))

    def seconds(text: str) -> float:
        start = time.process_time()
        work(text)
        return time.process_time() - start

    return any((taken := seconds(text)) < 0.02 or taken < 24 * seconds(text[: len(text) // 8]) for _ in range(5))
