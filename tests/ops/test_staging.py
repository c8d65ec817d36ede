"""An agent's archive is unpacked into one directory only, whatever it contains."""

from __future__ import annotations

import io
import os
import stat
import tarfile
from pathlib import Path

import pytest

from mngr.errors import MngrError, Refused
from mngr.ops.work.staging import unpack

Member = tarfile.TarInfo


def member(name: str, type: bytes = tarfile.REGTYPE, link: str = "", mode: int = 0o644) -> Member:
    info = tarfile.TarInfo(name)
    info.type, info.linkname, info.mode = type, link, mode
    return info


def archive(tmp_path: Path, *members: Member) -> str:
    path = tmp_path / "tar"
    with tarfile.open(path, "w") as file:
        for each in members:
            if each.isreg():
                each.size = 1
            file.addfile(each, io.BytesIO(b"x"))
    return str(path)


@pytest.mark.parametrize(
    "members",
    [
        [member("/etc/x")],
        [member("../x")],
        [member("a/../../x")],
        [member("a", tarfile.SYMTYPE, ".."), member("a/x")],
        [member("a", tarfile.SYMTYPE, "/"), member("a/b/x")],
        [member("a", tarfile.SYMTYPE, ".."), member("a", tarfile.DIRTYPE), member("a/x")],
        [member("x", tarfile.LNKTYPE, "../outside")],
        [member("a", tarfile.SYMTYPE, "../outside"), member("a")],
    ],
)
def test_nothing_is_written_outside(tmp_path: Path, members: list[Member]) -> None:
    root = tmp_path / "box/in"
    root.mkdir(parents=True)
    (tmp_path / "box/outside").write_text("mine")
    with pytest.raises((MngrError, OSError)):
        unpack(archive(tmp_path, *members), str(root))
    assert sorted(each.name for each in (tmp_path / "box").iterdir()) == ["in", "outside"]
    assert (tmp_path / "box/outside").read_text() == "mine"


def test_modes_links_and_what_is_left_out(tmp_path: Path) -> None:
    root = tmp_path / "in"
    root.mkdir()
    told = archive(
        tmp_path,
        member(".", tarfile.DIRTYPE, mode=0o755),
        member("./shut", tarfile.DIRTYPE, mode=0o555),
        member("./shut/run", mode=0o4755),
        member("./again", tarfile.LNKTYPE, "./shut/run"),
        member("./link", tarfile.SYMTYPE, "/anywhere"),
        member("./pipe", tarfile.FIFOTYPE),
        member("./device", tarfile.CHRTYPE),
    )
    arrived = unpack(told, str(root))
    assert arrived.is_directory and arrived.modes == {"": 0o755, "shut": 0o555}
    assert arrived.skipped == ["pipe", "device"]
    assert stat.S_IMODE((root / "shut/run").stat().st_mode) == 0o755, "no setuid bit"
    assert (root / "again").read_bytes() == b"x" and not (root / "again").is_symlink()
    assert os.readlink(root / "link") == "/anywhere"
    assert sorted(each.name for each in root.iterdir()) == ["again", "link", "shut"]


def test_a_git_repository_is_left_out_wherever_it_is(tmp_path: Path) -> None:
    root = tmp_path / "in"
    root.mkdir()
    hooks = ("./.git/hooks/pre-commit", "./lib/.git/config", "./lib/.GIT/config")
    folders = [member(each, tarfile.DIRTYPE) for each in (".", "./.git", "./lib", "./lib/.git")]
    members = [*folders, *map(member, hooks), member("./sub/.git"), member("./.gitignore")]
    arrived = unpack(archive(tmp_path, *members), str(root))
    assert arrived.skipped == [".git", "lib/.git", "sub/.git"]
    assert sorted(path.name for path in root.rglob("*")) == [".gitignore", "lib"]


def test_an_archive_that_was_cut_off_is_an_error(tmp_path: Path) -> None:
    path = archive(tmp_path, *(member(f"f{n}") for n in range(50)))
    os.truncate(path, 20_000)
    (tmp_path / "in").mkdir()
    with pytest.raises(MngrError, match="incomplete"):
        unpack(path, str(tmp_path / "in"))


def test_a_refusal_names_what_arrived(tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    with pytest.raises(Refused, match="through a link"):
        unpack(
            archive(tmp_path, member("a", tarfile.SYMTYPE, ".."), member("a/x")),
            str(tmp_path / "in"),
        )
