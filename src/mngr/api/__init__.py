"""The public Python API: the commands as typed methods that do not print.

from mngr.api import CreateRequest, Mngr

m = Mngr()
made = m.create(CreateRequest(address="tests", args=("make", "test"), source="/src/project"))
m.wait([made.agent])

The command line and the sister packages import only names that are listed here, and the pure
modules (model, query, settings, plugins, errors).
"""

from __future__ import annotations

from mngr.api.act import Act
from mngr.api.look import Look
from mngr.api.work import Work
from mngr.model.state import State
from mngr.ops.look.listing import Agent
from mngr.ops.world import World
from mngr.plugins.registry import Registry, load_registry
from mngr.settings.layers import Config, load_config

TYPE_CHECKING = False
if TYPE_CHECKING:
    from mngr.agents.base import AgentType as AgentType
    from mngr.agents.base import Launch as Launch
    from mngr.agents.base import LaunchContext as LaunchContext
    from mngr.agents.base import Receipt as Receipt
    from mngr.git.exchange import git_settings as git_settings
    from mngr.git.exchange import is_ancestor as is_ancestor
    from mngr.git.own_index import Difference as Difference
    from mngr.git.repository import Repo as Repo
    from mngr.git.repository import checkout as checkout
    from mngr.git.repository import uncommitted as uncommitted
    from mngr.hosts.base import Host as Host
    from mngr.hosts.base import HostRequest as HostRequest
    from mngr.hosts.base import Lease as Lease
    from mngr.hosts.base import is_here as is_here
    from mngr.hosts.bubblewrap import OFFLINE as OFFLINE
    from mngr.hosts.bubblewrap import OPEN as OPEN
    from mngr.hosts.bubblewrap import SECRETS as SECRETS
    from mngr.hosts.bubblewrap import WALLS as WALLS
    from mngr.hosts.bubblewrap import Sandbox as Sandbox
    from mngr.hosts.bubblewrap import is_within as is_within
    from mngr.hosts.bubblewrap import outermost as outermost
    from mngr.hosts.bubblewrap import sandbox_script as sandbox_script
    from mngr.hosts.local import LocalHost as LocalHost
    from mngr.hosts.spawn import call as call
    from mngr.hosts.spawn import environment as environment
    from mngr.hosts.ssh import SshHost as SshHost
    from mngr.hosts.ssh import fingerprints as fingerprints
    from mngr.ops.keep.merge import Conflict as Conflict
    from mngr.ops.keep.merge import Merged as Merged
    from mngr.ops.keep.merge import Place as Place
    from mngr.ops.keep.snapshot import Saved as Saved
    from mngr.ops.keep.snapshot import Snapshot as Snapshot
    from mngr.ops.keep.snapshot import check_name as check_name
    from mngr.ops.lifecycle.create import Created as Created
    from mngr.ops.lifecycle.leftover import Leftover as Leftover
    from mngr.ops.lifecycle.request import CreateRequest as CreateRequest
    from mngr.ops.lifecycle.restore import Returned as Returned
    from mngr.ops.lifecycle.running import parse_labels as parse_labels
    from mngr.ops.lifecycle.trash import Trashed as Trashed
    from mngr.ops.limits.usage import Usage as Usage
    from mngr.ops.limits.usage import total_usage as total_usage
    from mngr.ops.limits.watcher import Limits as Limits
    from mngr.ops.look.changes import Changes as Changes
    from mngr.ops.look.doctor_host import Finding as Finding
    from mngr.ops.look.remembered import remembered_names as remembered_names
    from mngr.ops.talk.attach import REFUSED as REFUSED
    from mngr.ops.talk.attach import attach_argv as attach_argv
    from mngr.ops.talk.attach import lost as lost
    from mngr.ops.talk.attach import switch_client as switch_client
    from mngr.ops.talk.conversation import ROLES as ROLES
    from mngr.ops.talk.message import Reply as Reply
    from mngr.ops.talk.message import normalise as normalise
    from mngr.ops.types import derive as derive
    from mngr.ops.work.commits import Pulled as Pulled
    from mngr.ops.work.commits import Pushed as Pushed
    from mngr.ops.work.execute import ExecResult as ExecResult
    from mngr.ops.work.files import Copied as Copied
    from mngr.ops.work.files import inside_work_dir as inside_work_dir
    from mngr.ops.work.risk import Risk as Risk
    from mngr.ops.work.risk import summary as summary
    from mngr.ops.work.workdir import TRANSFERS as TRANSFERS

LAZY = {
    "mngr.agents.base": "AgentType Launch LaunchContext Receipt",
    "mngr.git.exchange": "git_settings is_ancestor",
    "mngr.git.own_index": "Difference",
    "mngr.git.repository": "Repo checkout uncommitted",
    "mngr.hosts.base": "Host HostRequest Lease is_here",
    "mngr.hosts.bubblewrap": "OFFLINE OPEN SECRETS WALLS Sandbox is_within outermost "
    "sandbox_script",
    "mngr.hosts.local": "LocalHost",
    "mngr.hosts.spawn": "call environment",
    "mngr.hosts.ssh": "SshHost fingerprints",
    "mngr.ops.keep.merge": "Conflict Merged Place",
    "mngr.ops.keep.snapshot": "Saved Snapshot check_name",
    "mngr.ops.lifecycle.create": "Created",
    "mngr.ops.lifecycle.leftover": "Leftover",
    "mngr.ops.lifecycle.request": "CreateRequest",
    "mngr.ops.lifecycle.restore": "Returned",
    "mngr.ops.lifecycle.running": "parse_labels",
    "mngr.ops.lifecycle.trash": "Trashed",
    "mngr.ops.limits.usage": "Usage total_usage",
    "mngr.ops.limits.watcher": "Limits",
    "mngr.ops.look.changes": "Changes",
    "mngr.ops.look.doctor_host": "Finding",
    "mngr.ops.look.remembered": "remembered_names",
    "mngr.ops.talk.attach": "REFUSED attach_argv lost switch_client",
    "mngr.ops.talk.conversation": "ROLES",
    "mngr.ops.talk.message": "Reply normalise",
    "mngr.ops.types": "derive",
    "mngr.ops.work.commits": "Pulled Pushed",
    "mngr.ops.work.execute": "ExecResult",
    "mngr.ops.work.files": "Copied inside_work_dir",
    "mngr.ops.work.risk": "Risk summary",
    "mngr.ops.work.workdir": "TRANSFERS",
}
"""Names that are imported at their first use, to keep start-up short."""

HOLDERS = {name: holder for holder, names in LAZY.items() for name in names.split()}

__all__ = ["Agent", "Config", "Mngr", "Registry", "State", *HOLDERS]  # noqa: PLE0604


def __getattr__(name: str) -> object:
    if name not in HOLDERS:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    # importlib.import_module does the same, but its package imports warnings.
    return getattr(__import__(HOLDERS[name], fromlist=[name]), name)


class Mngr(Look, Act, Work):
    """One home of mngr. A target is an agent's name, id or address, or an Agent."""

    def __init__(self, config: Config | None = None, registry: Registry | None = None) -> None:
        config = config or load_config()
        self._world = World(config, registry or load_registry(config))


def local_repository(path: str) -> Repo:
    """Return the repository of a directory on this machine."""
    from mngr.ops.work import transport

    return transport.here(path)


def read_agent_file(path: str, limit: int) -> bytes:
    """Read a file that an agent can write: a regular file, no link, at most `limit` bytes."""
    from mngr.hosts import agent_files

    return agent_files.read(path, limit)
