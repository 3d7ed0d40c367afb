"""Sets of nodes as bit masks of slots. The plain twin of `masks.pyx`."""

from __future__ import annotations


def covers(mask: int, part: int) -> bool:
    """Tell whether all bits of `part` are in `mask`."""
    return part & ~mask == 0


def count_of(mask: int) -> int:
    """Return how many bits a mask has."""
    return mask.bit_count()


def unconfirmed(owners: int, members: int, unknown: int, confirmed: int) -> int:
    """Return the owners but this node (bit 0) that are members or not known yet, and have not confirmed."""
    return owners & (members | unknown) & ~confirmed & ~1
