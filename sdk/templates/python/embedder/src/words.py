"""Vectors from counted words. Plain functions, which `python3 build.py test` runs in your own Python."""

import math
import re

# Letters of a part of a word, and what a part counts. Words with a common part are a little similar: `ferry` and `ferries`.
PART, PART_WEIGHT = 4, 0.3


def vector(text: str, dimensions: int) -> list[float]:
    """A vector of length 1. Each word and each beginning of a word adds to one of its numbers."""
    numbers = [0.0] * dimensions
    for word in re.findall(r"[^\W_]+", text.lower()):
        numbers[place(word, dimensions)] += 1
        if len(word) > PART:
            numbers[place(word[:PART], dimensions)] += PART_WEIGHT
    length = math.hypot(*numbers)
    if length == 0:
        # A text without words: plugins that divide by the length must not divide by 0.
        return [1.0] + numbers[1:]
    return [number / length for number in numbers]


def place(word: str, dimensions: int) -> int:
    """FNV-1a: the same number on every machine and in every run, unlike `hash`."""
    found = 0x811C9DC5
    for byte in word.encode():
        found = (found ^ byte) * 0x01000193 & 0xFFFFFFFF
    return found % dimensions
