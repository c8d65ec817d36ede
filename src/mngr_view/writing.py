"""Write the report of a run: one static folder that opens from disk."""

from __future__ import annotations

from html import escape
from pathlib import Path

from mngr_tmr import ranking, runs


def write(folder: Path, out: Path) -> Path:
    run = runs.load(folder)
    out.mkdir(parents=True, exist_ok=True)
    counts = "".join(f"<li>{n} {escape(word)}</li>" for word, n in ranking.counts(run).items())
    page = out / "index.html"
    page.write_text(
        f"<!doctype html><meta charset=utf-8><h1>{escape(run.name)}</h1><ul>{counts}</ul>"
    )
    return page
