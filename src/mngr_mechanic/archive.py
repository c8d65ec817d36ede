"""The program in one file that `python3` runs; the same modules give the same bytes."""

from __future__ import annotations

import os

NAME = "mechanic.pyz"
PACKAGE = "mngr_mechanic/program"
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
    """Return the program's own modules, and empty packages above them."""
    above = [PACKAGE.split("/")[:depth] for depth in (1, 2, 3)]
    members = {"__main__.py": MAIN, **{"/".join([*parts, "__init__.py"]): b"" for parts in above}}
    folder = os.path.join(os.path.dirname(os.path.abspath(__file__)), "program")
    for base, folders, files in os.walk(folder):
        folders[:] = [name for name in folders if name != "__pycache__"]
        for name in files:
            if name.endswith(".py"):
                path = os.path.join(base, name)
                with open(path, "rb") as file:
                    members[f"{PACKAGE}/{os.path.relpath(path, folder)}"] = file.read()
    return members
