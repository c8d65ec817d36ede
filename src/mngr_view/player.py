"""asciinema's player, where it is installed: read as data out of another package's wheel."""

from __future__ import annotations

import json
from importlib import resources
from importlib.util import find_spec

from mngr_view.folder import Folder
from mngr_view.layout import asset, page
from mngr_view.markup import Html, el, link

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
    """The recording is inside the page: from a disk, a page may not fetch other files."""
    data = Html(json.dumps(cast).replace("<", "\\u003c"))
    body = (
        el("div", id="player"),
        el("noscript", "Playing needs JavaScript: ", link("the recording as a file", name)),
        el("script", data, type="application/json", id="cast"),
        el("script", src="../player/asciinema-player.min.js"),
        el("script", src="../player/start.js"),
    )
    style = el("link", rel="stylesheet", href="../player/asciinema-player.css")
    return page(title, *body, up="../", head=style, bare=True)
