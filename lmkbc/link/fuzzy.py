"""Finding keys one edit away without scanning: an index of keys with a third deleted.

Cut a key into thirds. One edit touches one third, so two thirds survive: each key is filed three times, under its
length, which third is gone, and what is left. A query tries the lengths that one edit can reach, nine look-ups in
all, against one per letter for an index of single-letter deletions, at a fifth of the size. A swap of two letters
across a cut touches two thirds; it is undone and tried as another query.
"""

from __future__ import annotations

from collections.abc import Iterator
from zlib import crc32

THIRDS = (0, 1, 2)


def filed_under(key: str) -> Iterator[int]:
    """Yield the three hashes under which a key is filed."""
    for third in THIRDS:
        yield _hash(key, len(key), third)


def looked_up(key: str) -> set[int]:
    """Return the hashes under which every key within one edit is filed."""
    hashes = {_hash(key, length, third) for length in range(max(0, len(key) - 1), len(key) + 2) for third in THIRDS}
    for cut in (len(key) // 3, len(key) * 2 // 3):
        if 0 < cut < len(key):
            swapped = key[: cut - 1] + key[cut] + key[cut - 1] + key[cut + 1 :]
            hashes.add(_hash(swapped, len(key), 0))
    return hashes


def _hash(key: str, length: int, third: int) -> int:
    """Hash of what `key` shares with keys of a length that differ from it in one third only.

    What stands before the third is counted from the left, what stands after it from the right.
    """
    cuts = (0, length // 3, length * 2 // 3, length)
    kept = key[: cuts[third]] + "\0" + key[max(0, len(key) - length + cuts[third + 1]) :]
    return crc32(f"{length}.{third}.{kept}".encode()) - (1 << 31)
