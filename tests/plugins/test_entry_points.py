from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mngr.plugins import entry_points
from mngr.plugins.entry_points import EntryPoint, installed, scan
from tests.support.cli import ROOT
from tests.support.dists import install, remove, settle

OURS = "[mngr]\nhello = mngr_hello\n"


@pytest.fixture
def home(tmp_path: Path) -> Path:
    home = tmp_path / "home"
    home.mkdir()
    return home


@pytest.fixture
def site(tmp_path: Path) -> Path:
    site = tmp_path / "site"
    site.mkdir()
    return site


def names(home: Path, *path: Path | str) -> list[str]:
    return [point.name for point in installed(str(home), [str(each) for each in path])]


def index(home: Path) -> Path:
    return home / "cache" / "plugins"


def test_a_plugin_is_known_by_name_target_distribution_and_version(home: Path, site: Path) -> None:
    install(site, "mngr-hello", OURS, "0.3.1")
    install(site, "other", "[console_scripts]\nmngr = other\n")
    assert installed(str(home), [str(site)]) == [
        EntryPoint(name="hello", target="mngr_hello", distribution="mngr-hello", version="0.3.1")
    ]


def test_installs_and_removals_are_noticed_at_once(home: Path, site: Path) -> None:
    assert names(home, site) == []
    hello = install(site, "mngr-hello", OURS)
    assert names(home, site) == ["hello"]
    settle(site)
    assert names(home, site) == ["hello"]
    install(site, "mngr-more", "[mngr]\nmore = more\n")
    assert names(home, site) == ["hello", "more"]
    remove(hello)
    assert names(home, site) == ["more"]


def test_a_settled_folder_is_not_read_again(
    home: Path, site: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    install(site, "mngr-hello", OURS)
    settle(site)
    first = names(home, site)
    monkeypatch.setattr(entry_points, "scan", None)
    assert names(home, site) == first == ["hello"]


def test_a_folder_that_just_changed_is_not_believed_for_good(home: Path, site: Path) -> None:
    """An installer makes the folder before the file in it, which the mtime does not show."""
    half = site / "mngr_hello-1.0.dist-info"
    half.mkdir()
    assert names(home, site) == []
    before = site.stat().st_mtime_ns
    (half / "entry_points.txt").write_text(OURS)
    assert site.stat().st_mtime_ns == before
    assert names(home, site) == ["hello"]


def test_the_first_of_two_versions_counts(home: Path, tmp_path: Path) -> None:
    for version, place in (("2.0", "a"), ("1.0", "b")):
        install(tmp_path / place, "Mngr.Hello", f"[mngr]\nv{version} = x\n", version)
    assert names(home, tmp_path / "a", tmp_path / "b") == ["v2.0"]
    assert names(home, tmp_path / "b", tmp_path / "a", tmp_path / "b") == ["v1.0"]


def test_what_pip_left_half_removed_and_what_is_no_folder_is_passed_over(
    home: Path, site: Path, tmp_path: Path
) -> None:
    install(site, "~ngr-hello", OURS)
    (site / "old.egg-info").write_text("Name: old\n")
    (site / "python.zip").write_bytes(b"PK")
    settle(site)
    places = (site, site / "python.zip", tmp_path / "absent", "nul\0", "")
    assert names(home, *places) == []
    assert names(home, *places) == []


def test_a_develop_install_with_egg_info_is_found(home: Path, site: Path) -> None:
    egg = site / "mngr_hello.egg-info"
    egg.mkdir()
    (egg / "PKG-INFO").write_text("Metadata-Version: 2.1\nName: mngr-hello\nVersion: 7\n")
    (egg / "entry_points.txt").write_text(OURS)
    (point,) = installed(str(home), [str(site)])
    assert (point.distribution, point.version) == ("mngr-hello", "7")


@pytest.mark.parametrize(
    "damage",
    [
        b"",
        b"{}",
        b"\xff\xfe",
        b"mngr plugins 1",
        b"mngr plugins 1\nend",
        b"mngr plugins 1\nx\t/somewhere\nend",
        b"mngr plugins 1\n\ta\tb\tc\td\nend",
        b"mngr plugins 1\n5\t/somewhere\n\ta\nend",
        b"mngr plugins 2\n5\t/somewhere\nend",
    ],
)
def test_a_damaged_index_is_made_anew(home: Path, site: Path, damage: bytes) -> None:
    install(site, "mngr-hello", OURS)
    settle(site)
    assert names(home, site) == ["hello"]
    whole = index(home).read_bytes()
    index(home).write_bytes(damage)
    assert names(home, site) == ["hello"]
    assert index(home).read_bytes() == whole


@given(st.binary(max_size=200))
def test_no_index_whatever_makes_it_fail(
    tmp_path_factory: pytest.TempPathFactory, data: bytes
) -> None:
    home = tmp_path_factory.mktemp("home")
    (home / "cache").mkdir()
    index(home).write_bytes(b"mngr plugins 1\n" + data + b"\nend")
    assert names(home, home) == []


def test_a_home_that_cannot_be_written_costs_only_time(home: Path, site: Path) -> None:
    install(site, "mngr-hello", OURS)
    settle(site)
    (home / "cache").write_text("in the way")
    assert names(home, site) == ["hello"]
    (home / "cache").unlink()
    index(home).mkdir(parents=True)  # rename onto a directory fails, also for root
    assert names(home, site) == ["hello"]
    assert os.listdir(home / "cache") == ["plugins"]


def test_looking_makes_no_home(tmp_path: Path, site: Path) -> None:
    settle(site)
    assert names(tmp_path / "absent", site) == []
    assert not (tmp_path / "absent").exists()


def test_the_index_does_not_grow_without_end(home: Path, tmp_path: Path) -> None:
    for number in range(entry_points.REMEMBERED + 10):
        place = tmp_path / f"place-{number}"
        place.mkdir()
        settle(place)
        names(home, place)
    assert index(home).read_text().count("\t") == entry_points.REMEMBERED


def test_folders_with_odd_names_are_read_but_not_remembered(home: Path, tmp_path: Path) -> None:
    odd = tmp_path / "a\tb\nc"
    install(odd, "mngr-hello", OURS)
    settle(odd)
    assert names(home, odd) == names(home, odd) == ["hello"]
    assert index(home).read_text() == "mngr plugins 1\nend"


def test_blanks_extras_comments_and_other_groups_are_not_part_of_a_target(site: Path) -> None:
    text = "[x]\na = b\n[mngr]\n# c = d\n\n  hello = mngr_hello : go [fast]\n[mngr.x]\ne = f\n"
    install(site, "mngr-hello", text)
    assert [(point.name, point.target) for point in scan(str(site))] == [("hello", "mngr_hello:go")]


@given(st.text(max_size=200) | st.binary(max_size=200))
def test_any_text_is_read_without_failing(
    tmp_path_factory: pytest.TempPathFactory, text: str | bytes
) -> None:
    place = tmp_path_factory.mktemp("site") / "odd-1.0.dist-info"
    place.mkdir()
    data = text.encode("utf-8", "surrogatepass") if isinstance(text, str) else text
    (place / "entry_points.txt").write_bytes(b"[mngr]\n" + data)
    (place / "METADATA").write_bytes(data)
    for point in scan(str(place.parent)):
        assert point.name and point.target


def test_later_starts_import_neither_importlib_metadata_nor_json(home: Path, site: Path) -> None:
    install(site, "mngr-hello", OURS, modules={"mngr_hello": "def register(r): pass\n"})
    settle(site)
    script = (
        "import sys; before = set(sys.modules)\n"
        "from mngr.settings.layers import Config; from mngr.plugins.registry import load_registry\n"
        "registry = load_registry(Config.load(sys.argv[1], '/', {}, []))\n"
        "assert 'hello' in [p.point.name for p in registry.plugins], registry.plugins\n"
        "print(*(set(sys.modules) - before))\n"
    )
    slow = {"importlib.metadata", "re", "pathlib"}
    for expected in (slow, set()):
        done = subprocess.run(
            [sys.executable, "-c", script, str(home)],
            env={"PYTHONPATH": f"{ROOT / 'src'}:{site}", "PYTHONDONTWRITEBYTECODE": "1"},
            capture_output=True,
            text=True,
            cwd="/",
        )
        assert done.returncode == 0, done.stderr
        assert (slow | {"json"}) & set(done.stdout.split()) == expected
    assert index(home).exists()
