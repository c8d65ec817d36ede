"""The public Python API: the commands as typed methods that do not print.

from mngr.api import CreateRequest, Mngr

m = Mngr()
made = m.create(CreateRequest(address="tests", args=("make", "test"), source="/src/project"))
m.wait([made.agent])

The command line and the sister packages import only names that are listed here, and the pure
modules (model, query, settings, plugins, errors).
"""

from __future__ import annotations

import os

from mngr.api.act import Act
from mngr.api.look import Look
from mngr.api.work import Work
from mngr.model.state import State
from mngr.ops.look.listing import Agent
from mngr.ops.world import World
from mngr.plugins.registry import Registry, load_registry
from mngr.settings.layers import Config

TYPE_CHECKING = False
if TYPE_CHECKING:
    from mngr.agents.base import AgentType as AgentType
    from mngr.agents.base import Launch as Launch
    from mngr.agents.base import LaunchContext as LaunchContext
    from mngr.agents.base import Receipt as Receipt
    from mngr.git import exchange as exchange
    from mngr.git import repository as repository
    from mngr.git.repository import Repo as Repo
    from mngr.hosts import agent_files as agent_files
    from mngr.hosts import bubblewrap as bubblewrap
    from mngr.hosts import ledger as ledger
    from mngr.hosts import spawn as spawn
    from mngr.hosts import ssh as ssh
    from mngr.hosts import tmux as tmux
    from mngr.hosts.base import Host as Host
    from mngr.hosts.base import HostRequest as HostRequest
    from mngr.hosts.base import Lease as Lease
    from mngr.hosts.bubblewrap import Sandbox as Sandbox
    from mngr.hosts.local import LocalHost as LocalHost
    from mngr.hosts.ssh import SshHost as SshHost
    from mngr.ops import types as types
    from mngr.ops.keep import compare as compare
    from mngr.ops.keep import merge as merge
    from mngr.ops.keep import rewind as rewind
    from mngr.ops.keep import snapshot as snapshot
    from mngr.ops.keep.compare import Difference as Difference
    from mngr.ops.keep.merge import Merged as Merged
    from mngr.ops.keep.merge import Place as Place
    from mngr.ops.keep.snapshot import Saved as Saved
    from mngr.ops.keep.snapshot import Snapshot as Snapshot
    from mngr.ops.lifecycle import create as create
    from mngr.ops.lifecycle import running as running
    from mngr.ops.lifecycle import sandboxing as sandboxing
    from mngr.ops.lifecycle import trash as trash
    from mngr.ops.lifecycle.create import Created as Created
    from mngr.ops.lifecycle.leftover import Leftover as Leftover
    from mngr.ops.lifecycle.request import CreateRequest as CreateRequest
    from mngr.ops.lifecycle.restore import Returned as Returned
    from mngr.ops.lifecycle.trash import Trashed as Trashed
    from mngr.ops.limits import usage as usage
    from mngr.ops.limits.usage import Usage as Usage
    from mngr.ops.limits.watcher import Limits as Limits
    from mngr.ops.look import changes as changes
    from mngr.ops.look import columns as columns
    from mngr.ops.look import listing as listing
    from mngr.ops.look import logins as logins
    from mngr.ops.look import remembered as remembered
    from mngr.ops.look.changes import Changes as Changes
    from mngr.ops.look.doctor import Finding as Finding
    from mngr.ops.talk import conversation as conversation
    from mngr.ops.talk import message as message
    from mngr.ops.talk.message import Reply as Reply
    from mngr.ops.work import clone as clone
    from mngr.ops.work import execute as execute
    from mngr.ops.work import files as files
    from mngr.ops.work import risk as risk
    from mngr.ops.work import workdir as workdir
    from mngr.ops.work.commits import Pulled as Pulled
    from mngr.ops.work.commits import Pushed as Pushed
    from mngr.ops.work.execute import ExecResult as ExecResult
    from mngr.ops.work.files import Copied as Copied
    from mngr.ops.work.risk import Risk as Risk

LAZY = {
    "mngr.agents.base": "AgentType Launch LaunchContext Receipt",
    "mngr.git": "exchange repository",
    "mngr.git.repository": "Repo",
    "mngr.hosts": "agent_files bubblewrap ledger spawn ssh tmux",
    "mngr.hosts.base": "Host HostRequest Lease",
    "mngr.hosts.bubblewrap": "Sandbox",
    "mngr.hosts.local": "LocalHost",
    "mngr.hosts.ssh": "SshHost",
    "mngr.ops": "types",
    "mngr.ops.keep": "compare merge rewind snapshot",
    "mngr.ops.keep.compare": "Difference",
    "mngr.ops.keep.merge": "Merged Place",
    "mngr.ops.keep.snapshot": "Saved Snapshot",
    "mngr.ops.lifecycle": "create running sandboxing trash",
    "mngr.ops.lifecycle.create": "Created",
    "mngr.ops.lifecycle.request": "CreateRequest",
    "mngr.ops.lifecycle.leftover": "Leftover",
    "mngr.ops.lifecycle.restore": "Returned",
    "mngr.ops.lifecycle.trash": "Trashed",
    "mngr.ops.limits": "usage",
    "mngr.ops.limits.usage": "Usage",
    "mngr.ops.limits.watcher": "Limits",
    "mngr.ops.look": "changes columns listing logins remembered",
    "mngr.ops.look.changes": "Changes",
    "mngr.ops.look.doctor": "Finding",
    "mngr.ops.talk": "conversation message",
    "mngr.ops.talk.message": "Reply",
    "mngr.ops.work": "clone execute files risk workdir",
    "mngr.ops.work.commits": "Pulled Pushed",
    "mngr.ops.work.execute": "ExecResult",
    "mngr.ops.work.files": "Copied",
    "mngr.ops.work.risk": "Risk",
}
"""Classes and modules that are imported at their first use, to keep start-up short."""

HOLDERS = {name: holder for holder, names in LAZY.items() for name in names.split()}

__all__ = ["Agent", "Config", "Mngr", "Registry", "State", *HOLDERS]  # noqa: PLE0604


def __getattr__(name: str) -> object:
    from importlib import import_module

    if name not in HOLDERS:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    if name.islower():
        return import_module(f"{HOLDERS[name]}.{name}")
    return getattr(import_module(HOLDERS[name]), name)


class Mngr(Look, Act, Work):
    """One home of mngr. A target is an agent's name, id or address, or an Agent."""

    def __init__(self, config: Config | None = None, registry: Registry | None = None) -> None:
        config = config or default_config()
        self.world = World(config, registry or load_registry(config))


def local_repository(path: str) -> Repo:
    """Return the repository of a directory on this machine."""
    from mngr.ops.work import transport

    return transport.here(path)


def default_config() -> Config:
    """Return the configuration that the command line would use."""
    home = os.environ.get("MNGR_HOST_DIR") or os.path.expanduser("~/.mngr")
    return Config.load(os.path.abspath(home), os.getcwd(), os.environ, [])
