"""asciinema's player, if installed: its files are read from another package's wheel."""

from __future__ import annotations

import json
from importlib import resources
from importlib.util import find_spec
from typing import TYPE_CHECKING

from mngr_view.markup import Html, asset, el, link, page

if TYPE_CHECKING:
    from mngr_view.writing import Folder

PACKAGE = "mkdocs_asciinema_player"
FILES = ("asciinema-player.min.js", "asciinema-player.css")


def is_installed() -> bool:
    return find_spec(PACKAGE) is not None


def install(folder: Folder) -> None:
    if all(folder.has(f"player/{name}") for name in FILES):
        return
    assets = resources.files(PACKAGE).joinpath("assets")
    for name in FILES:
        folder.file(f"player/{name}", assets.joinpath(name).read_bytes())
    folder.file("player/start.js", asset("player.js"))


def player_page(title: str, cast: str, name: str) -> str:
    """Return a page that contains the recording: a page on a disk cannot load other files."""
    data = Html(json.dumps(cast).replace("<", "\\u003c"))
    body = (
        el("div", id="player"),
        el("noscript", "The player requires JavaScript. ", link("Download the recording", name)),
        el("script", data, type="application/json", id="cast"),
        el("script", src="../player/asciinema-player.min.js"),
        el("script", src="../player/start.js"),
    )
    style = el("link", rel="stylesheet", href="../player/asciinema-player.css")
    return page(title, *body, up="../", head=style, bare=True)
