"""The program in one file that `python3` runs; the same modules give the same bytes."""

from __future__ import annotations

import os

NAME = "mechanic.pyz"
PACKAGE = "mngr_mechanic/program"
BORROWED = "mngr_e2e/blocks.py"
"""A module of another package, which the program uses as well."""
MAIN = b"""import sys
if sys.version_info < (3, 9):
    sys.exit("mechanic: needs Python 3.9 or newer, this is %s" % sys.version.split()[0])
from mngr_mechanic.program.starting import main
sys.exit(main(sys.argv[1:]))
"""
EPOCH = (1980, 1, 1, 0, 0, 0)


def build() -> bytes:
    import io
    import zipfile

    held = io.BytesIO()
    with zipfile.ZipFile(held, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in sorted(_members().items()):
            # Fixed values, so that times and modes of files do not change the bytes.
            entry = zipfile.ZipInfo(name, EPOCH)
            entry.compress_type = zipfile.ZIP_DEFLATED
            entry.external_attr = 0o100644 << 16
            archive.writestr(entry, content)
    return held.getvalue()


def _members() -> dict[str, bytes]:
    """Return the program's own modules, the borrowed one, and empty packages above them."""
    top = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
    members = {"__main__.py": MAIN}
    for folder in ("mngr_mechanic", PACKAGE, f"{PACKAGE}/probe", os.path.dirname(BORROWED)):
        members[f"{folder}/__init__.py"] = b""
    for path in [BORROWED, *_modules(top)]:
        with open(os.path.join(top, path), "rb") as file:
            members[path] = file.read()
    return members


def _modules(top: str) -> list[str]:
    found: list[str] = []
    for base, folders, files in os.walk(os.path.join(top, PACKAGE)):
        folders[:] = [name for name in folders if name != "__pycache__"]
        paths = [os.path.join(base, name) for name in files if name.endswith(".py")]
        found += [os.path.relpath(path, top) for path in paths]
    return found
