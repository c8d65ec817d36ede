"""Archives between here and a host, against the real tar and Python's own reader."""

from __future__ import annotations

import io
import subprocess
import tarfile
from pathlib import Path

import pytest

from mngr.errors import Unreachable
from mngr.hosts.shell import _pack, _unpack

# The first does not fit into a header, and what stands there instead looks like one; the second
# does, in two parts.
LONG = "signals/" + "1" * 150 + ".json"
DEEP = "signals/" + "d" * 60 + "/" + "f" * 60
FILES = {
    "started": b"{}",
    "signals/Stop.json": b"x" * 513,
    "exit": b"",
    "agent.1.json": b"y" * 512,
    "\udcffodd": b"bytes",
}


def archive(folder: Path, files: dict[str, bytes], kind: str, link: bool = False) -> bytes:
    for name, content in files.items():
        path = folder / "agent-1" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
    if link:  # it is left to tarfile, with everything else
        (folder / "agent-1" / "link").symlink_to("started")
    words = ["tar", f"--format={kind}", "-cf", "-", "./agent-1"]
    return subprocess.run(words, cwd=folder, check=True, capture_output=True).stdout


@pytest.mark.parametrize("kind", ["gnu", "ustar", "pax", "v7"])
@pytest.mark.parametrize("more", ["", LONG, DEEP], ids=["usual", "long names", "deep names"])
@pytest.mark.parametrize("link", [False, True], ids=["files", "a link"])
def test_what_any_tar_packs_is_read(tmp_path: Path, kind: str, more: str, link: bool) -> None:
    names = {"v7": [], "ustar": [DEEP]}.get(kind, [LONG, DEEP])  # the older have no longer ones
    files = {**FILES, **({more: b"long"} if more in names else {})}
    assert _unpack(archive(tmp_path, files, kind, link)) == {"agent-1": files}


def test_a_torn_archive_is_told(tmp_path: Path) -> None:
    data = archive(tmp_path, {"large": b"z" * 9000}, "gnu")
    with pytest.raises(Unreachable, match="incomplete"):
        _unpack(data[:5000])
    assert _unpack(b"") == {}


def test_what_is_packed_is_what_tar_unpacks(tmp_path: Path) -> None:
    files = {"/a": (b"one", 0o600), "/b": (b"x" * 1024, 0o755), "/c": (b"", 0o640)}
    packed = _pack(files)
    subprocess.run(["tar", "-xpf", "-"], cwd=tmp_path, input=packed, check=True)
    for number, (content, mode) in enumerate(files.values()):
        path = tmp_path / str(number)
        assert (path.read_bytes(), path.stat().st_mode & 0o777) == (content, mode)
    with tarfile.open(fileobj=io.BytesIO(packed)) as checked:
        assert checked.getnames() == ["0", "1", "2"]
