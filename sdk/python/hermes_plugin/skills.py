"""Skills from folders that become part of the component.

Each folder contains a `SKILL.md` with `name` and `description` between two lines `---`, and files that it mentions. The folders are read
during the build, so put them below `src/`.
"""

from pathlib import Path

from wit_world import exports
from wit_world.exports.skills import Document, Skill

from .errors import invalid
from .records import record

__all__ = ["Document", "Skill", "from_folder"]


def from_folder(folder: Path, category: str) -> type:
    """The class to export: `Skills = from_folder(Path(__file__).parent / "skills", "household")`."""
    index: list[Skill] = []
    documents: dict[str, dict[str, str]] = {}
    for skill in sorted(path for path in folder.iterdir() if path.is_dir()):
        files = {
            path.relative_to(skill).as_posix(): path.read_text(encoding="utf-8")
            for path in sorted(skill.rglob("*"))
            if path.is_file()
        }
        fields = _front_matter(files.get("SKILL.md", ""))
        missing = [key for key in ("name", "description") if not fields.get(key)]
        if missing:
            raise ValueError(f"{skill / 'SKILL.md'} has no {' and no '.join(missing)}")
        index.append(record(Skill, name=fields["name"], description=fields["description"], category=category))
        documents[fields["name"]] = files

    class Skills(exports.Skills):
        def index(self) -> list[Skill]:
            return index

        def view(self, name: str, path: str | None) -> Document:
            files = documents.get(name)
            if files is None:
                raise invalid(f"there is no such skill; available skills: {', '.join(documents)}")
            others = [other for other in files if other != "SKILL.md"]
            if path is None:
                return record(Document, content=files["SKILL.md"], files=others)
            # Paths are only compared, never opened, so they cannot lead outside.
            if path not in others:
                raise invalid(f"`{name}` has no such file; available files: {', '.join(others)}")
            return record(Document, content=files[path])

    return Skills


def _front_matter(text: str) -> dict[str, str]:
    lines = text.splitlines()
    if not lines or lines[0] != "---" or "---" not in lines[1:]:
        return {}
    pairs = (line.partition(":") for line in lines[1 : lines.index("---", 1)])
    return {key.strip(): value.strip().strip("\"'") for key, colon, value in pairs if colon}
