"""What a check is proof of: on a real bench, in a real sandbox, with code that wants out."""

from __future__ import annotations

import os
import shutil
import socket
import string
import subprocess
from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mngr.api import Mngr
from mngr.errors import MngrError
from mngr.settings.layers import Config
from mngr_tmr.verify import checkout
from mngr_tmr.verify.bench import Bench
from mngr_tmr.verify.checks import Check, Checked
from mngr_tmr.verify.forbidden import changed_judge
from tests.support import tmr_kit as kit
from tests.support.tmr_lab import Lab, lab_in

needs_bwrap = pytest.mark.skipif(shutil.which("bwrap") is None, reason="needs bubblewrap")
FILE = "tests/test_hostile.py"


@pytest.fixture(scope="module")
def lab(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lab]:
    made = lab_in(tmp_path_factory.mktemp("checkout"))
    made.bench.close()
    made.bench = bench(made)
    yield made
    made.close()


def bench(lab: Lab, **settings: object) -> Bench:
    """One worker, so that each check follows the one before in the same place."""
    project = replace(lab.project, **settings)  # type: ignore[arg-type]
    options = replace(lab.options, workers=1)
    api = Mngr(Config.load(str(lab.cli.home), str(lab.cli.repo), {}, []))
    name = f"run-{os.urandom(2).hex()}"
    return Bench(api, str(lab.cli.repo), name, lab.folder, project, options)


def check(lab: Lab, body: str, on: Bench | None = None, **options: object) -> Checked:
    """Run a check of a test with this body, in a separate commit."""
    lines = "".join(f"    {line}\n" for line in body.splitlines())
    source = f"import json, os, socket, subprocess, sys\n\n\ndef test_it(tmp_path):\n{lines}"
    commit = lab.commit({FILE: source, "tests/conftest.py": ""})
    asked = Check("hostile", commit, (f"{FILE}::test_it",), **options)  # type: ignore[arg-type]
    return (on or lab.bench).check(asked)


def passed(checked: Checked) -> bool:
    assert not checked.infrastructure, checked.infrastructure + checked.told
    return checked.passed([f"{FILE}::test_it"])


# nothing stays


def test_what_one_check_plants_does_not_reach_the_next(lab: Lab) -> None:
    """Settings, filters, hooks, ignored files and bytecode, wherever its git and its home lead."""
    plant = """
for path in (".git/config", os.path.expanduser("~/.gitconfig")):
    with open(path, "a") as file:
        file.write('[filter "x"]\\n\\tsmudge = echo planted\\n[core]\\n\\thooksPath = hooks\\n')
with open(".git/info-attributes", "w") as file:
    file.write("* filter=x\\n")
os.makedirs(".git/info", exist_ok=True)
with open(".git/info/attributes", "w") as file:
    file.write("* filter=x\\n")
os.makedirs("tests/__pycache__", exist_ok=True)
for path in ("planted", "tests/__pycache__/planted.pyc", "/tmp/planted"):
    with open(path, "w") as file:
        file.write("x")
"""
    assert passed(check(lab, plant))
    look = """
assert "planted" not in open("NOTES.md").read()
found = [os.path.join(a, b) for a, _, bs in os.walk(".") for b in bs if "planted" in b]
assert not found and not os.path.exists("/tmp/planted"), found
assert not os.path.exists(os.path.expanduser("~/.gitconfig"))
listed = subprocess.run(["git", "config", "--list"], capture_output=True, text=True).stdout
assert "filter" not in listed and "hooks" not in listed, listed
assert subprocess.run(["git", "status", "--porcelain"], capture_output=True).stdout == b""
"""
    seen = check(lab, look)
    assert passed(seen), seen.runs
    assert list(Path(lab.cli.home).glob("agents/*/check-*")) == []


# nothing is in reach


@needs_bwrap
def test_the_code_under_test_reaches_nothing_of_the_user(lab: Lab) -> None:
    secret = lab.cli.user_home / "secret"
    secret.write_text("x")
    home = os.path.expanduser("~")
    outside = lab.cli.base / "outside"
    body = f"""
seen = [p for p in ({str(secret)!r}, {str(lab.cli.home)!r} + "/settings.toml") if os.path.exists(p)]
assert not seen, seen
assert not set(os.listdir({home!r})) & {{".bashrc", ".profile", ".ssh", ".gitconfig"}}
variables = []
for each in filter(str.isdigit, os.listdir("/proc")):
    with open(f"/proc/{{each}}/environ") as file:
        variables.append(file.read())
assert len(variables) < 12 and not any("A_USERS_OWN" in each for each in variables)
for path in ({str(outside)!r}, "/usr/outside", "/etc/outside"):
    try:
        open(path, "w")
    except OSError:
        continue
    assert path == {str(outside)!r} and not os.path.exists("/etc/outside")
assert os.path.getsize("/etc/shadow") == 0 or os.getuid()
"""
    os.environ["A_USERS_OWN"] = "secret"
    try:
        seen = check(lab, body)
    finally:
        del os.environ["A_USERS_OWN"]
    assert passed(seen) and seen.proof.sandboxed and not seen.bare, seen.runs
    assert not outside.exists()


@needs_bwrap
@pytest.mark.parametrize("network", [False, True])
def test_the_network_is_there_only_for_a_project_that_asks(lab: Lab, network: bool) -> None:
    asked = bench(lab, network=network)
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        body = f'socket.create_connection(("127.0.0.1", {port}), 5).close()'
        try:
            assert passed(check(lab, body, asked)) is network
        finally:
            asked.close()


def test_without_bubblewrap_the_check_runs_and_says_so(
    lab: Lab, monkeypatch: pytest.MonkeyPatch
) -> None:
    fake = lab.cli.base / "refusing"
    fake.mkdir()
    (fake / "bwrap").write_text("#!/bin/sh\necho 'bwrap: no namespaces here' >&2\nexit 1\n")
    (fake / "bwrap").chmod(0o755)
    monkeypatch.setenv("PATH", f"{fake}:{os.environ['PATH']}")
    asked = bench(lab)
    try:
        seen = check(lab, "assert 'MNGR_HOST_DIR' not in os.environ", asked)
    finally:
        asked.close()
    assert passed(seen) and not seen.proof.sandboxed
    assert seen.bare == "bwrap: no namespaces here"


@needs_bwrap
def test_nothing_is_checked_in_a_sandbox_that_leaks(
    lab: Lab, monkeypatch: pytest.MonkeyPatch
) -> None:
    fake = lab.cli.base / "open"
    fake.mkdir()
    leak = "#!/bin/sh\nfor each do\n  case $each in true) exit 0 ;; --) break ;; esac\ndone\n"
    leak += 'while [ "$1" != -- ]; do shift; done\nshift\nexec "$@"\n'
    (fake / "bwrap").write_text(leak)
    (fake / "bwrap").chmod(0o755)
    monkeypatch.setenv("PATH", f"{fake}:{os.environ['PATH']}")
    asked = bench(lab)
    ran = lab.cli.base / "ran"
    try:
        with pytest.raises(MngrError, match="the sandbox is not closed"):
            check(lab, f"open({str(ran)!r}, 'w')", asked)
    finally:
        asked.close()
    assert not ran.exists()


# verdicts


FORGED = """
line = {"test": "TEST", "stage": "call", "outcome": "passed", "seconds": 0.1, "part": False}
for name in os.listdir("/proc/self/fd"):
    for stage in ("call", "teardown"):
        told = json.dumps({**line, "stage": stage, "nonce": "0" * 32}) + "\\n"
        told += json.dumps({"finished": 0, "nonce": "0" * 32}) + "\\n"
        try:
            os.write(int(name), told.encode())
        except OSError:
            pass
""".replace("TEST", f"{FILE}::test_it")


@pytest.mark.parametrize(
    "body",
    [
        "os._exit(0)",
        f"{FORGED}os._exit(0)",
        "import pytest\npytest.exit('over', returncode=0)",
        "raise KeyboardInterrupt",
        "import atexit\natexit.register(os._exit, 0)\nassert False",
        "os.kill(os.getpid(), 9)",
    ],
)
def test_a_session_that_does_not_finish_is_no_verdict(lab: Lab, body: str) -> None:
    seen = check(lab, body)
    assert seen.infrastructure and not seen.finished, seen
    assert not seen.passed([f"{FILE}::test_it"]) and not seen.errors


def test_a_forged_line_counts_for_nothing(lab: Lab) -> None:
    assert not passed(check(lab, f"{FORGED}assert False"))


def test_a_report_made_by_the_test_itself_is_no_verdict(lab: Lab) -> None:
    body = """
import gc
from _pytest.config import Config
config = next(each for each in gc.get_objects() if isinstance(each, Config))
import pytest
report = pytest.TestReport("TEST", ("", 0, ""), {}, "passed", None, "call")
config.hook.pytest_runtest_logreport(report=report)
assert False
""".replace("TEST", f"{FILE}::test_it")
    seen = check(lab, body)
    assert "once for each stage" in seen.infrastructure


# what a test can find out about the check


def test_no_name_of_ours_is_in_the_environment(lab: Lab) -> None:
    body = """
names = [n for n in os.environ if n.startswith("MNGR") or n == "PYTEST_CURRENT_TEST"]
told = subprocess.run(["env"], capture_output=True, text=True).stdout
assert not names and "MNGR" not in told and "PYTEST_CURRENT_TEST" not in told, (names, told)
assert "nonce" not in " ".join(sys.argv)
with open("/proc/self/environ") as file:
    assert "MNGR_" not in file.read()
"""
    for noop in (False, True):
        seen = check(lab, body, noop=noop)
        assert passed(seen), seen.runs


E2E = """
import os

from mngr_e2e import E2eSession


def test_it(e2e: E2eSession) -> None:
    result = e2e.run("env; kit fine")
    names = {*os.environ, *(each.split("=")[0] for each in result.stdout.split("\\n"))}
    files = [p.read_text() for p in e2e.artifacts.rglob("*") if p.is_file()]
    told = [each for each in files if '"noop": true' in each]
    assert not told and not [n for n in names if n.startswith(("MNGR", "PYTEST_CURRENT"))], names
    assert "fine works" in result.stdout
"""


def test_commands_that_do_nothing_are_told_neither_by_a_variable_nor_by_a_file(lab: Lab) -> None:
    commit = lab.commit({FILE: E2E})
    test = f"{FILE}::test_it"
    real = lab.bench.check(Check("real", commit, (test,)))
    assert real.passed([test]), real.told
    idle = lab.bench.check(Check("no-op", commit, (test,), noop=True, keep="idle"))
    assert idle.outcome(test) == "failed" and "fine works" in idle.runs[test].message
    kept = list((lab.folder / "idle").rglob("result.json"))
    assert len(kept) == 1 and '"noop": true' in kept[0].read_text()


# other ways to run pytest


def test_reports_come_from_workers_of_xdist_too(lab: Lab) -> None:
    words = kit.PYTEST.replace("-p mngr_e2e.plugin", "-p mngr_e2e.plugin -p xdist -n 2")
    asked = bench(lab, pytest=words)
    try:
        commit = lab.commit({FILE: E2E + "\n\ndef test_other():\n    assert False\n"})
        tests = (f"{FILE}::test_it", f"{FILE}::test_other")
        seen = asked.check(Check("xdist", commit, tests))
        assert not seen.infrastructure, seen.infrastructure + seen.told
        assert [seen.outcome(each) for each in tests] == ["passed", "failed"]
        assert seen.runs[tests[1]].exception == "AssertionError" and len(seen.tests) >= 2
        idle = asked.check(Check("xdist", commit, tests[:1], noop=True))
        assert idle.outcome(tests[0]) == "failed"
    finally:
        asked.close()


# what is installed


def test_a_module_may_not_stand_in_the_place_of_an_installed_one(lab: Lab) -> None:
    asked = bench(lab)
    try:
        judged = partial(changed_judge, installed=asked.modules)
        assert "shadows iniconfig" in judged("iniconfig.py", None, "")
        assert not judged("src/no_such_module.py", None, "")
        assert not judged("src/iniconfig.py", "", "x = 1")
    finally:
        asked.close()


# pure


VALUES = st.text(st.characters(exclude_characters="\0\r", codec="utf-8"), max_size=30)
KEYS = st.tuples(st.sampled_from(["user", "core"]), st.text(string.ascii_lowercase, min_size=1))


@given(st.lists(st.tuples(KEYS.map(".".join), VALUES), max_size=4))
def test_git_reads_back_what_we_write(settings: list[tuple[str, str]]) -> None:
    text = checkout.git_config(settings).encode()
    found = subprocess.run(
        ["git", "config", "-z", "--list", "-f", "-"], input=text, capture_output=True, check=True
    ).stdout.decode()
    read = [tuple(entry.split("\n", 1)) for entry in found.split("\0") if entry]
    assert read == settings


def test_a_set_up_that_fails_is_named_with_its_setting(lab: Lab) -> None:
    broken = bench(lab, setup="false")
    try:
        with pytest.raises(
            MngrError, match=r"`false` failed in a checkout of .*: it printed nothing"
        ) as error:
            check(lab, "pass", on=broken)
        assert "[tool.mngr_tmr]" in error.value.hint
    finally:
        broken.close()
