from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from mngr.errors import MngrError, Taken, UsageError
from mngr.plugins.registry import EVENTS, Registry, load_registry
from mngr.settings.layers import Config

PROVIDERS = ["local", "ssh", "docker", "slurm", "kubernetes", "modal"]


@pytest.fixture
def plugin(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A folder that modules are imported from."""
    monkeypatch.syspath_prepend(str(tmp_path))
    yield tmp_path
    for name in [name for name in sys.modules if name.startswith("trial_")]:
        del sys.modules[name]


def config(tmp_path: Path, *settings: str) -> Config:
    return Config.load(str(tmp_path / "home"), str(tmp_path), {"HOME": str(tmp_path)}, settings)


def test_built_ins_come_with_their_aliases() -> None:
    registry = load_registry(None)
    assert registry.problems == []
    aliases = {
        alias: command.name for command in registry.commands.values() for alias in command.aliases
    }
    assert aliases == {
        "c": "create",
        "ls": "list",
        "ps": "list",
        "status": "show",
        "attach": "connect",
        "log": "logs",
        "conn": "connect",
        "msg": "message",
        "x": "exec",
        "events": "event",
        "s": "stop",
        "rm": "destroy",
        "mv": "rename",
        "snap": "snapshot",
    }
    assert registry.names("agent_type") == ["command", "claude", "codex", "opencode"]
    assert registry.names("provider") == PROVIDERS


def test_a_name_is_registered_once() -> None:
    registry = Registry()
    registry.agent_type("ghost", "a:A")
    with pytest.raises(Taken, match="the agent type 'ghost' already exists"):
        registry.agent_type("ghost", "b:B")
    assert registry.names("agent_type") == ["ghost"]


def test_registering_imports_nothing() -> None:
    registry = Registry()
    registry.agent_type("ghost", "no.such.module:Thing")
    registry.command("ghost", "no.such.module", "boo")
    assert registry.names("agent_type") == ["ghost"]
    with pytest.raises(MngrError, match="agent type 'ghost': there is no module"):
        registry.load("agent_type", "ghost")
    with pytest.raises(MngrError, match="command 'ghost': there is no module"):
        registry.load_command("ghost")


def test_a_name_loads_the_object_behind_it() -> None:
    registry = Registry()
    registry.provider("path", "os.path:join")
    assert registry.load("provider", "path") is os.path.join


def test_an_object_that_is_missing_is_named() -> None:
    registry = Registry()
    registry.provider("path", "os.path:jion")
    with pytest.raises(MngrError, match=r"provider 'path': 'os\.path' has no 'jion'"):
        registry.load("provider", "path")


def test_unknown_names_name_the_nearest() -> None:
    registry = load_registry(None)
    with pytest.raises(UsageError, match="unknown command 'creat'; did you mean 'create'"):
        registry.resolve("creat")
    with pytest.raises(UsageError, match="unknown agent type 'comand'; did you mean 'command'"):
        registry.load("agent_type", "comand")


def test_settings_name_the_plugins(plugin: Path) -> None:
    (plugin / "trial_a.py").write_text("def register(r):\n    r.command('fly', 'trial_a', 'fly')\n")
    registry = load_registry(config(plugin, 'plugins.modules=["trial_a"]'))
    assert registry.problems == []
    assert registry.resolve("fly").group == "Plugins"


def test_a_disabled_plugin_command_or_type_is_left_out(plugin: Path) -> None:
    (plugin / "trial_b.py").write_text("raise SystemExit('must not be imported')\n")
    registry = load_registry(
        config(
            plugin,
            'plugins.modules=["trial_b"]',
            'plugins.disabled=["trial_b", "rename", "local"]',
        )
    )
    assert registry.problems == []
    assert "rename" not in registry.names("command")
    assert registry.names("provider") == PROVIDERS[1:]
    with pytest.raises(UsageError):
        registry.resolve("mv")


@pytest.mark.parametrize(
    ("source", "problem"),
    [
        ("raise RuntimeError('a\\nb')", "plugin 'trial_c' cannot be loaded: RuntimeError: a b"),
        ("def register(", "plugin 'trial_c' cannot be loaded: SyntaxError: "),
        ("import no_such_thing", "plugin 'trial_c' cannot be loaded: ModuleNotFoundError: "),
        ("raise SystemExit(3)", "plugin 'trial_c' cannot be loaded: SystemExit: 3"),
        ("x = 1", "plugin 'trial_c': 'trial_c' has no 'register'"),
        ("def register(r):\n    raise SystemExit", "plugin 'trial_c': SystemExit"),
        (
            "def register(r):\n    r.command('list', 'x', 'y')",
            "'trial_c': the command 'list' already exists",
        ),
        (
            "def register(r):\n    r.command('y', 'x', 'y', ['ls'])",
            "the command 'ls' already exists",
        ),
        ("def register(r):\n    r.on('agent_creatd', 'x:y')", "did you mean 'agent_created'?"),
    ],
)
def test_a_broken_plugin_is_one_line_and_the_rest_works(
    plugin: Path, source: str, problem: str
) -> None:
    (plugin / "trial_c.py").write_text(source)
    registry = load_registry(config(plugin, 'plugins.modules=["trial_c", "trial_absent"]'))
    first, second = registry.problems
    assert problem in first
    assert "\n" not in first
    assert first.endswith("; to disable it: `mngr plugin disable trial_c`")
    assert second.startswith("plugin 'trial_absent': there is no module 'trial_absent'; ")
    assert registry.resolve("ls").module == "mngr.cli.commands.list"


def test_a_plugin_that_fails_half_way_registers_nothing(plugin: Path) -> None:
    (plugin / "trial_d.py").write_text("def register(r):\n    r.provider('p', 'x:y')\n    1/0\n")
    registry = load_registry(config(plugin, 'plugins.modules=["trial_d"]'))
    (problem,) = registry.problems
    assert problem.startswith("plugin 'trial_d': ZeroDivisionError: division by zero; ")
    assert registry.plugins[-1].problem == problem
    assert registry.names("provider") == PROVIDERS


def test_events_reach_their_handlers_and_a_failing_one_stops_nothing(plugin: Path) -> None:
    (plugin / "trial_e.py").write_text(
        "seen = []\n"
        "def fail(payload):\n    raise OSError('disk')\n"
        "def register(r):\n"
        "    r.on('agent_created', 'trial_e:fail')\n"
        "    r.on('agent_created', 'trial_e:missing')\n"
        "    r.on('agent_created', 'trial_e:note')\n"
        "def note(payload):\n    seen.append(payload)\n"
    )
    registry = load_registry(config(plugin, 'plugins.modules=["trial_e"]'))
    registry.emit("agent_created", {"agent_id": "a"})
    registry.emit("agent_stopped", {"agent_id": "b"})
    assert sys.modules["trial_e"].seen == [{"agent_id": "a"}]
    assert len(registry.problems) == 2
    assert "handler 'trial_e:fail' of agent_created: OSError: disk" in registry.problems[0]


def test_the_events_are_those_that_plugins_rely_on() -> None:
    assert set(EVENTS) == {
        "agent_created",
        "agent_started",
        "agent_stopped",
        "agent_destroyed",
        "host_created",
        "host_destroyed",
        "message_delivered",
    }
