"""Notes in a text, one per line. Plain functions, which `python3 build.py test` runs in your own Python."""

import re

# The most characters of a note, and the fewest of a word that is compared.
NOTE = 300
WORD = 3


def in_text(text: str, keyword: str) -> list[str]:
    """The notes in a text: the rest of each line that begins with the keyword."""
    found = []
    for line in text.splitlines():
        first, _, rest = line.strip().partition(" ")
        note = " ".join(rest.split())[:NOTE]
        if note and first.rstrip(":,.!").lower() == keyword.lower():
            found.append(note)
    return found


def added(notes: str, new: list[str]) -> str | None:
    """The notes with new ones appended, or None if all are known already."""
    known = notes.splitlines()
    unknown = [note for note in dict.fromkeys(new) if note not in known]
    return "\n".join(known + unknown) + "\n" if unknown else None


def about(notes: str, question: str) -> list[str]:
    """Notes that share a word with the question. Most shared words first, then newest first."""
    wanted = _words(question)
    found = [(len(_words(note) & wanted), at, note) for at, note in enumerate(notes.splitlines())]
    return [note for shared, _, note in sorted(found, reverse=True) if shared]


def _words(text: str) -> set[str]:
    return {word for word in re.findall(r"\w+", text.lower()) if len(word) >= WORD}
