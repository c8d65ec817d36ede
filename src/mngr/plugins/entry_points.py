"""Plugins that pip or uv installed: the entry points of the group `mngr`.

importlib.metadata takes as long as a start of Python. So the plugins in each folder of sys.path
are kept with the folder's modification time, which every install and removal changes.
"""

from __future__ import annotations

import os
import time

from mngr.model.struct import Struct

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from typing import TypeAlias

    Found: TypeAlias = tuple["EntryPoint", ...]
    Folders: TypeAlias = dict[str, tuple[int, Found]]
    """Folders with their modification time, and the plugins they had at that time."""

GROUP = "mngr"
HEAD, END = "mngr plugins 1", "end"
# An installer creates the folder first and its files later, so the plugins in a folder are cached
# only if it has not changed for this long.
SETTLED = 5_000_000_000
# The index is shared by every Python that uses this home, and by every folder it is run in.
REMEMBERED = 64


class EntryPoint(Struct):
    """`target` is a module with `register`, or `module:function`."""

    name: str
    target: str
    distribution: str = ""
    version: str = ""

    @property
    def module(self) -> str:
        return self.target.partition(":")[0]


def installed(home: str, path: Iterable[str]) -> list[EntryPoint]:
    """Return every plugin on `path`; of a distribution that is found twice, the first."""
    index = os.path.join(home, "cache", "plugins")
    known = _read(index)
    current, news = _look(path, known)
    if news:
        _write(home, index, {**known, **news})
    seen: dict[str, str] = {}
    return [
        point
        for folder, points in current.items()
        for point in points
        if seen.setdefault(_normal(point.distribution), folder) == folder
    ]


def _look(path: Iterable[str], known: Folders) -> tuple[dict[str, Found], Folders]:
    """Return the plugins in each folder, and those that may be cached."""
    current: dict[str, Found] = {}
    news: Folders = {}
    now = time.time_ns()
    for folder in dict.fromkeys(each or "." for each in path):
        try:
            modified = os.stat(folder).st_mtime_ns
        except (OSError, ValueError):
            continue
        before = known.get(folder)
        if before is not None and before[0] == modified:
            current[folder] = before[1]
            continue
        current[folder] = tuple(scan(folder))
        if now - modified > SETTLED and os.path.isabs(folder):
            news[folder] = (modified, current[folder])
    return current, news


def scan(folder: str) -> Iterator[EntryPoint]:
    """Yield the plugins in a folder, except of distributions that pip removed only half (~name)."""
    try:
        names = os.listdir(folder)
    except OSError:  # a zip file, or not readable
        return
    for name in sorted(names):
        place = os.path.join(folder, name)
        is_whole = name.endswith((".dist-info", ".egg-info")) and name[0] != "~"
        if is_whole and _mentions_us(os.path.join(place, "entry_points.txt")):
            yield from _offered(place)


def _mentions_us(path: str) -> bool:
    """Return whether a file names mngr's group, so that no other file has to be parsed."""
    try:
        with open(path, "rb") as file:
            return GROUP.encode() in file.read()
    except OSError:
        return False


def _offered(place: str) -> Iterator[EntryPoint]:
    from importlib.metadata import Distribution

    found = Distribution.at(place)
    name, _, version = os.path.basename(place).rpartition(".")[0].partition("-")
    try:
        points = list(found.entry_points.select(group=GROUP))
        name, version = found.metadata["Name"] or name, found.metadata["Version"] or version
    except (TypeError, ValueError):  # a damaged file
        return
    for point in points:
        target = "".join(point.value.partition("[")[0].split())  # without [extras]
        if point.name and target:
            yield EntryPoint(name=point.name, target=target, distribution=name, version=version)


def _normal(distribution: str) -> str:
    return distribution.lower().replace("-", "_").replace(".", "_")


# The index has a line per folder, then one per plugin in it. Without it a scan takes a millisecond,
# so no problem with it is an error. It is not JSON: importing json takes longer than a scan.


def _read(index: str) -> Folders:
    try:
        with open(index, encoding="utf-8", errors="surrogateescape") as file:
            head, *lines, end = file.read().split("\n")
        return _decoded(lines) if (head, end) == (HEAD, END) else {}
    except (OSError, ValueError, KeyError):
        return {}


def _decoded(lines: list[str]) -> Folders:
    folders: Folders = {}
    folder = ""
    for line in lines:
        first, *rest = line.split("\t")
        if first:
            (folder,) = rest
            folders[folder] = (int(first), ())
        else:
            name, target, distribution, version = rest
            point = EntryPoint(name=name, target=target, distribution=distribution, version=version)
            modified, points = folders[folder]
            folders[folder] = (modified, (*points, point))
    return folders


def _encoded(folders: Folders) -> Iterator[str]:
    for folder, (modified, points) in folders.items():
        lines = [(str(modified), folder), *(("", *map(str, p.to_json().values())) for p in points)]
        # What the format has no way to write is scanned each time.
        if all(word.isprintable() for line in lines for word in line):
            yield from map("\t".join, lines)


def _write(home: str, index: str, folders: Folders) -> None:
    if not os.path.isdir(home):
        return  # a read does not create a home
    from mngr import files  # most commands write nothing

    kept = dict(list(folders.items())[-REMEMBERED:])
    try:
        files.replace(index, "\n".join((HEAD, *_encoded(kept), END)).encode())
    except OSError:
        pass  # the folders are read again next time
