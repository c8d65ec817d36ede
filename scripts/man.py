"""Write all manual pages to a folder: `python scripts/man.py FOLDER`."""

from __future__ import annotations

import sys
from pathlib import Path

from mngr.cli.app.manual import pages
from mngr.cli.app.rendering import as_roff
from mngr.plugins.registry import own_registry


def write(folder: Path) -> None:
    """Write every page, and remove those of commands that no longer exist."""
    folder.mkdir(parents=True, exist_ok=True)
    for old in folder.glob("mngr*.1"):
        old.unlink()
    for page in pages(own_registry()):
        (folder / f"{page.name}.1").write_text(as_roff(page), encoding="utf-8")


if __name__ == "__main__":
    write(Path(sys.argv[1]))
