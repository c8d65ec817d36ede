"""Attach a terminal to an agent's tmux session."""

from __future__ import annotations

import os

from mngr.errors import MngrError, Unreachable
from mngr.hosts import tmux
from mngr.hosts.base import Host, is_here
from mngr.hosts.engines.engine import Stopped
from mngr.model.records import AgentRecord

# tmux refuses a terminal type that the host does not know; most are compatible with xterm. The
# script is one line, so that it can be printed and parsed as part of the command that connects. Its
# exit code differs from those with which clients report a lost connection.
REFUSED = 93
ELSEWHERE = f'tput longname >/dev/null 2>&1 || export TERM=xterm-256color; "$@" || exit {REFUSED}'


def attach_argv(host: Host, record: AgentRecord, read_only: bool = False) -> list[str]:
    """Return the local command that attaches this terminal to the agent."""
    true_colour = os.environ.get("COLORTERM", "") in ("truecolor", "24bit")
    words = tmux.attach(host.socket, record.id, read_only=read_only, true_colour=true_colour)
    if not is_here(host):
        words = ["sh", "-c", ELSEWHERE, "mngr", *words]
    return host.argv(words, tty=True)


def lost(host: Host, name: str) -> Unreachable:
    """Return the error for a lost connection: the host has ended, or the agent keeps running."""
    if host.capabilities.new_hosts:
        try:  # an engine lists a host that was killed as running for a moment
            host.run(["true"], timeout=5)
        except Stopped as error:
            return error
        except MngrError:
            pass
    told = f"the connection to host {host.ref.name} was lost; the agent keeps running"
    return Unreachable(told, f"return with `mngr connect {name}`")


def switch_client(host: Host, record: AgentRecord) -> bool:
    """Switch the tmux client to the other agent, if this runs inside an attached agent."""
    here = os.environ.get("MNGR_AGENT_ID", "")
    if not here:
        return False
    listed = host.run(tmux.list_clients(host.socket, here), timeout=20)
    clients = listed.stdout.decode("utf-8", "replace").splitlines()
    if listed.code or not clients:
        return False
    done = host.run(tmux.switch_client(host.socket, clients[0], record.id), timeout=20)
    done.raise_if_failed(f"could not switch to {record.name}")
    return True
