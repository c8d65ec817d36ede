"""`mngr plugin`, hooks, and the example plugin installed by pip as its users would."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import sysconfig
from pathlib import Path

import pytest

from tests.support.cli import ROOT, Cli
from tests.support.dists import install, remove

EXAMPLE = ROOT / "examples" / "mngr-hello"
KITE = """\
def register(registry):
    registry.command("kite", "kite_command", "fly")
    registry.agent_type("glider", "kite:Glider")
"""
KITE_COMMAND = """\
def configure(parser):
    pass
def run(args):
    print("up")
"""


@pytest.fixture
def site(local: Cli, tmp_path: Path) -> Path:
    """A folder that `local` imports from, as it would from site-packages."""
    site = tmp_path / "site"
    site.mkdir()
    local.env["PYTHONPATH"] += f":{site}"
    return site


@pytest.fixture
def kite(site: Path) -> Path:
    modules = {"kite": KITE, "kite_command": KITE_COMMAND}
    return install(site, "mngr-kite", "[mngr]\nkite = kite\n", "2.1", modules)


def plugins(cli: Cli) -> dict[str, dict[str, object]]:
    """Return the third-party plugins, without those that are part of mngr."""
    listed = cli("plugin", "list", "--format", "json").ok().json()
    assert listed["errors"] == []
    return {row["name"]: row for row in listed["plugins"] if row["distribution"] != "mngr"}


def test_without_other_plugins_only_those_of_mngr_itself_are_listed(local: Cli) -> None:
    listed = local("plugin", "list", "--format", "json").ok().json()["plugins"]
    assert {row["distribution"] for row in listed} == {"mngr"}
    (tutorial,) = [row for row in listed if row["name"] == "tutorial"]
    assert (tutorial["enabled"], tutorial["problem"]) == (True, "")
    assert tutorial["registers"]["commands"] == ["tutorial"]


def test_a_plugin_of_mngr_itself_can_be_disabled_too(local: Cli) -> None:
    local("plugin", "disable", "tutorial").ok()
    local("tutorial", "check").fails(2, "unknown command 'tutorial'")
    assert "tutorial" not in local("help").ok().out
    assert "check" not in local("__complete", "--", "tutorial", "").out
    local("plugin", "enable", "tutorial").ok()
    assert "check" in local("tutorial", "--help").ok().out
    assert "check" in local("__complete", "--", "tutorial", "").ok().out.split()


def test_list_says_what_each_plugin_is_and_adds(local: Cli, kite: Path) -> None:
    head, row = local("plugin", "list").ok().out.splitlines()[:2]
    assert head.split() == ["NAME", "VERSION", "ENABLED", "REGISTERS"]
    assert row.split(maxsplit=3) == ["kite", "2.1", "true", "agent type glider, command kite"]
    assert plugins(local)["kite"] == {
        "name": "kite",
        "version": "2.1",
        "enabled": True,
        "registers": {
            "agent_types": ["glider"],
            "providers": [],
            "commands": ["kite"],
            "events": [],
        },
        "problem": "",
        "distribution": "mngr-kite",
        "module": "kite",
    }
    assert local("kite").ok().out == "up\n"
    assert "kite" in local("help").ok().out


def test_a_removed_plugin_is_gone_with_the_next_command(local: Cli, kite: Path) -> None:
    local("kite").ok()
    remove(kite)
    local("kite").fails(2, "unknown command 'kite'")
    assert plugins(local) == {}


def test_an_entry_point_may_name_a_function_and_settings_a_module(local: Cli, site: Path) -> None:
    source = "def add(registry):\n    registry.command('kite', 'kite_command', 'fly')\n"
    modules = {"wind": source, "kite_command": KITE_COMMAND, "plain": "def register(r): pass\n"}
    install(site, "mngr-wind", "[mngr]\nwind = wind:add\n", modules=modules)
    # Named in the settings as well, it is still loaded once.
    local.env["MNGR__PLUGINS__MODULES"] = '["plain", "wind"]'
    found = plugins(local)
    assert list(found) == ["wind", "plain"]  # the installed ones first
    assert found["plain"]["version"] == ""
    assert local("kite").ok().err == ""


def test_a_disabled_plugin_is_not_even_imported(local: Cli, kite: Path, site: Path) -> None:
    done = local("plugin", "disable", "kite").ok()
    assert (done.out, done.err) == ("kite is disabled\n", "")
    (site / "kite.py").write_text("raise SystemExit('must not be imported')")
    assert local("kite").fails(2, "unknown command 'kite'").err.count("\n") == 1
    row = plugins(local)["kite"]
    assert (row["enabled"], row["registers"], row["problem"]) == (False, {}, "")
    (site / "kite.py").write_text(KITE)
    assert local("plugin", "enable", "kite").ok().out == "kite is enabled\n"
    assert local("kite").ok().out == "up\n"


def test_disable_and_enable_change_one_list_and_keep_comments(local: Cli, kite: Path) -> None:
    settings = local.controller_home / "settings.toml"
    settings.parent.mkdir(exist_ok=True)
    settings.write_text('# mine\n[plugins]\ndisabled = ["rename"] # never used\n')
    local("plugin", "disable", "kite", "kite").ok()
    text = '# mine\n[plugins]\ndisabled = ["rename", "kite"] # never used\n'
    assert settings.read_text() == text
    local("plugin", "disable", "kite").ok()
    assert settings.read_text() == text
    local("plugin", "enable", "kite").ok()
    local("plugin", "enable", "kite").ok()
    assert settings.read_text() == '# mine\n[plugins]\ndisabled = ["rename"] # never used\n'


def test_a_project_may_do_without_a_plugin_and_keeps_what_the_user_disabled(
    local: Cli, kite: Path
) -> None:
    local("config", "set", "plugins.disabled", '["rename"]').ok()
    local("plugin", "disable", "kite", "--scope", "project").ok()
    found = local("config", "get", "plugins.disabled", "--format", "json").ok().json()
    assert found["value"] == ["rename", "kite"]
    assert found["origin"] == str(local.repo / ".mngr" / "settings.toml")
    local("kite").fails(2)
    local("kite", cwd=local.user_home).ok()
    # The user's own list has no say while the project's stands above it.
    local("plugin", "enable", "kite").fails(1, "kite is still disabled", str(local.repo))
    local("plugin", "enable", "kite", "--scope", "project").ok()
    local("kite").ok()


def test_disabling_what_a_variable_enables_is_no_success(local: Cli, kite: Path) -> None:
    local.env["MNGR__PLUGINS__DISABLED"] = "[]"
    done = local("plugin", "disable", "kite").fails(1, "kite is still enabled")
    assert "MNGR__PLUGINS__DISABLED" in done.err


def test_a_dry_run_changes_nothing(local: Cli, kite: Path) -> None:
    done = local("plugin", "disable", "kite", "--dry-run").ok()
    assert done.out.startswith("Would disable kite in ")
    row = local("plugin", "disable", "kite", "--dry-run", "--format", "json").ok().json()
    assert row == {"name": "kite", "enabled": False, "done": False}
    assert plugins(local)["kite"]["enabled"] is True
    assert not (local.controller_home / "settings.toml").exists()


def test_wrong_words_are_named(local: Cli, kite: Path) -> None:
    local("plugin", "disable", "kit").fails(4, "no plugin 'kit'", "did you mean 'kite'?")
    local("plugin", "disable", "doctor").fails(4, "see `mngr plugin list`")
    local("plugin", "disable").fails(2, "missing NAME")
    local("plugin", "list", "kite").fails(2, "unexpected argument 'kite'")
    local("plugin", "remove", "kite").fails(2, "unknown value 'remove'")
    local("plugin", "disable", "kite", "--scope", "usr").fails(2, "did you mean 'user'?")


def test_a_broken_plugin_is_one_line_and_all_else_works(local: Cli, kite: Path, site: Path) -> None:
    install(site, "mngr-torn", "[mngr]\ntorn = torn\n", modules={"torn": "1/0\n"})
    done = local("list", "--format", "json").ok()
    assert done.json() == {"agents": [], "errors": []}
    expected = "mngr: plugin 'torn' cannot be loaded: ZeroDivisionError: division by zero; "
    assert done.err == f"{expected}to disable it: `mngr plugin disable torn`\n"
    assert local("kite").ok().out == "up\n"
    listed = local("plugin", "list").ok().out.splitlines()
    assert listed[0].split()[-1] == "PROBLEM"
    assert "ZeroDivisionError" in listed[2]
    assert "ZeroDivisionError" in str(plugins(local)["torn"]["problem"])
    local("plugin", "disable", "torn").ok()
    assert local("list").ok().err == ""
    local("plugin", "enable", "torn").fails(1, "ZeroDivisionError")


def test_a_command_without_its_parts_is_named(local: Cli, kite: Path, site: Path) -> None:
    (site / "kite_command.py").write_text("def configure(parser): pass\n")
    local("kite").fails(1, "command 'kite': 'kite_command' has no 'run'")


BROKEN = """\
from mngr.agents.base import AgentType
def register(r):
    r.provider("mist", "mist:Mist")
    r.provider("fog", "mist:Fog")
    r.provider("haze", "mist:no_such_thing")
    r.agent_type("ghost", "mist:Ghost")
class Mist:
    def __init__(self, config):
        raise KeyError("region")
class Fog:
    def __init__(self, config):
        pass
    def hosts(self):
        return 1 / 0
class Ghost(AgentType):
    name = "ghost"
    def signals(self, evidence):
        raise ValueError("boo")
"""


def test_providers_and_types_that_fail_are_footnotes(local: Cli, site: Path) -> None:
    install(site, "mngr-mist", "[mngr]\nmist = mist\n", modules={"mist": BROKEN})
    made = local("create", "casper", "ghost", "--no-connect", "--", "sleep", "1000").ok()
    assert "Traceback" not in made.err
    local.create("plain")
    done = local("list", "--format", "{name} {state}").ok()
    assert done.out == "casper RUNNING\nplain RUNNING\n"
    notes = sorted(done.err.splitlines())
    assert [note.split(": ")[1:3] for note in notes] == [
        ["fog", "ZeroDivisionError"],
        ["ghost", "ValueError"],
        ["haze", "provider 'haze'"],
        ["mist", "KeyError"],
    ]


GHOST = """\
from mngr.agents.base import AgentType
def register(r):
    r.agent_type("ghost", "mist:Ghost")
class Ghost(AgentType):
    name = "ghost"
"""


def test_agents_outlive_the_plugin_of_their_type(local: Cli, site: Path) -> None:
    mist = install(site, "mngr-mist", "[mngr]\nmist = mist\n", modules={"mist": GHOST})
    local("create", "casper", "ghost", "--no-connect", "--", "sleep", "1000").ok()
    remove(mist)
    assert local.state("casper") == "RUNNING"
    assert local("stop", "casper").ok().err.count("mngr:") == 0
    local("start", "casper").fails(2, "unknown agent type 'ghost'")
    local("destroy", "--force", "casper").ok()


HOOKS = """\
import json, os
EVENTS = "agent_created agent_started agent_stopped agent_destroyed message_delivered".split()
def register(registry):
    for event in EVENTS:
        registry.on(event, "hooks:note")
def note(payload):
    from mngr.api import Mngr
    states = {agent.name: str(agent.state) for agent in Mngr().list()}
    seen = {**payload, "state": states.get(payload["agent_name"], "gone")}
    with open(os.environ["HOOKS_LOG"], "a") as file:
        file.write(json.dumps(seen) + "\\n")
"""


def test_hooks_are_called_after_the_fact_with_who_and_where(mngr: Cli, tmp_path: Path) -> None:
    log = tmp_path / "log.jsonl"
    (tmp_path / "hooks.py").write_text(HOOKS)
    mngr.env["HOOKS_LOG"] = str(log)
    mngr.env["PYTHONPATH"] += f":{tmp_path}"
    modules = json.loads(mngr.env.get("MNGR__PLUGINS__MODULES", "[]"))
    mngr.env["MNGR__PLUGINS__MODULES"] = json.dumps([*modules, "hooks"])
    agent_id = mngr("create", "ann", "--no-connect", "--format", "{agent_id}", "--", "cat").ok().out
    mngr("message", "ann", "-m", "hello").ok()
    mngr("stop", "ann").ok()
    mngr("stop", "ann").ok()  # nothing happens, so nothing is told
    mngr("start", "ann").ok()
    mngr("destroy", "--force", "ann").ok()
    mngr("create", "nobody", "--no-connect", "--from", str(tmp_path / "absent"), "--", "cat")
    seen = [json.loads(line) for line in log.read_text().splitlines()]
    assert [(each["event"], each["state"]) for each in seen] == [
        ("agent_created", "RUNNING"),
        ("message_delivered", "RUNNING"),
        ("agent_stopped", "STOPPED"),
        ("agent_started", "RUNNING"),
        ("agent_destroyed", "gone"),
    ]
    assert seen[1]["outcome"] in ("delivered", "typed")
    for each in seen:
        assert each["agent_id"] == agent_id.strip()
        assert (each["agent_name"], each["agent_type"]) == ("ann", "command")
        assert each["provider_name"] == mngr.provider
        assert each["host_name"] == ("bare" if mngr.provider == "bare" else "localhost")
        assert each["host_id"].startswith("host-")
        assert each["home"] == str(mngr.controller_home)


# The example, installed by pip into a separate environment.


class Environment:
    """A virtual environment that borrows mngr, pytest and hatchling from ours."""

    def __init__(self, base: Path) -> None:
        self.python = base / "env" / "bin" / "python"
        self.source = base / "mngr-hello"
        shutil.copytree(EXAMPLE, self.source)
        venv = [sys.executable, "-m", "venv", "--without-pip", str(base / "env")]
        subprocess.run(venv, check=True)
        (site,) = (base / "env" / "lib").glob("python3*/site-packages")
        borrowed = [sysconfig.get_path("purelib"), str(ROOT / "src")]
        (site / "borrowed.pth").write_text("\n".join(borrowed))

    def pip(self, *words: str) -> None:
        pip = [sys.executable, "-m", "pip", "--python", str(self.python), "-q"]
        done = subprocess.run([*pip, *words], capture_output=True, text=True, timeout=120)
        assert done.returncode == 0, done.stderr

    def install(self, *words: str) -> None:
        offline = ("--no-deps", "--no-index", "--no-build-isolation")
        self.pip("install", *offline, *words)

    def mngr(self, cli: Cli, *words: str) -> subprocess.CompletedProcess[str]:
        env = {name: value for name, value in cli.env.items() if name != "PYTHONPATH"}
        argv = [str(self.python), "-m", "mngr", *words]
        return subprocess.run(argv, env=env, cwd=cli.repo, capture_output=True, text=True)


@pytest.mark.soak
def test_the_example_plugin_passes_its_own_tests_where_pip_installed_it(tmp_path: Path) -> None:
    environment = Environment(tmp_path)
    environment.install("-e", str(environment.source))
    done = subprocess.run(
        [str(environment.python), "-m", "pytest", "-q", "-p", "no:cacheprovider", "tests"],
        cwd=environment.source,
        env={name: os.environ[name] for name in ("PATH", "HOME") if name in os.environ},
        capture_output=True,
        text=True,
        timeout=240,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert "5 passed" in done.stdout


def test_what_pip_installs_and_removes_is_noticed_at_once(local: Cli, tmp_path: Path) -> None:
    environment = Environment(tmp_path)

    def listed() -> str:
        done = environment.mngr(local, "plugin", "list", "--format", "{distribution} {version}")
        assert (done.returncode, done.stderr) == (0, ""), done
        rows = done.stdout.splitlines(keepends=True)
        return "".join(row for row in rows if not row.startswith("mngr "))

    local("create", "ann", "--no-connect", "--", "true").ok()  # so that there is a home
    assert listed() == ""
    environment.install(str(environment.source))
    assert listed() == "mngr-hello 0.1.0\n"
    assert environment.mngr(local, "hello").stdout == "GREETING\nHello, ann!\n"
    project = environment.source / "pyproject.toml"
    project.write_text(project.read_text().replace('"0.1.0"', '"0.2.0"'))
    environment.install("--upgrade", "-e", str(environment.source))
    assert listed() == "mngr-hello 0.2.0\n"
    environment.pip("uninstall", "-y", "mngr-hello")
    assert listed() == ""
    assert environment.mngr(local, "hello").returncode == 2
