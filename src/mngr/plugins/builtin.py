"""The built-in commands, agent types and providers, registered like those of a plugin."""

from __future__ import annotations

from mngr.plugins.registry import Registry

AGENTS = "Agents"
WORK = "Work"
REST = "Other"

COMMANDS: tuple[tuple[str, str, str, tuple[str, ...]], ...] = (
    (AGENTS, "create", "create an agent with its own work directory, and attach to it", ("c",)),
    (AGENTS, "list", "list agents on all hosts", ("ls", "ps")),
    (AGENTS, "show", "show one agent in detail", ("status",)),
    (AGENTS, "connect", "attach to an agent", ("conn", "attach")),
    (AGENTS, "message", "send a message to agents and confirm its delivery", ("msg",)),
    (AGENTS, "answer", "show and answer permission requests of agents", ()),
    (AGENTS, "exec", "run a command in an agent's work directory", ("x",)),
    (AGENTS, "capture", "print an agent's screen", ()),
    (AGENTS, "logs", "print the output of an agent's program", ("log",)),
    (AGENTS, "path", "print the path of an agent's work directory", ()),
    (AGENTS, "transcript", "print an agent's conversation", ()),
    (AGENTS, "event", "print an agent's events", ("events",)),
    (AGENTS, "observe", "print state changes of all agents as they happen", ()),
    (AGENTS, "wait", "wait until agents reach a state", ()),
    (AGENTS, "usage", "show the tokens and the cost of agents", ()),
    (AGENTS, "limit", "show and change the time, token and cost limits of agents", ()),
    (AGENTS, "start", "start stopped agents", ()),
    (AGENTS, "stop", "stop agents and keep their work", ("s",)),
    (AGENTS, "kill", "stop agents immediately", ()),
    (AGENTS, "restart", "stop and start agents", ()),
    (AGENTS, "archive", "stop agents and hide them from lists", ()),
    (AGENTS, "destroy", "move agents and their work directories to the trash", ("rm",)),
    (AGENTS, "restore", "list and restore destroyed agents", ()),
    (AGENTS, "rename", "rename an agent", ("mv",)),
    (AGENTS, "label", "show, set and remove labels of agents", ()),
    (AGENTS, "clone", "create a copy of an agent and its work", ()),
    (AGENTS, "migrate", "move an agent to another host", ()),
    (WORK, "pull", "copy an agent's commits or files to this directory", ()),
    (WORK, "push", "copy commits or files to an agent", ()),
    (WORK, "diff", "show the changes an agent has made", ()),
    (WORK, "merge", "merge the commits of agents into the current branch", ()),
    (WORK, "snapshot", "save and restore the state of a work directory", ("snap",)),
    (REST, "host", "list, create, start, stop and destroy hosts", ()),
    (REST, "provider", "list providers of hosts, and whether they are usable", ()),
    (REST, "gc", "empty the trash and remove leftovers", ()),
    (REST, "config", "show and change settings", ()),
    (REST, "plugin", "list, enable and disable plugins", ()),
    (REST, "doctor", "check this machine, and install missing programs", ()),
    (REST, "completion", "print a shell's completion script", ()),
    (REST, "man", "show a manual page", ()),
    (REST, "help", "list the commands, or show the manual of one", ()),
)

TOGETHER = {"kill": "stop", "archive": "stop", "restart": "start", "man": "help"}
"""Commands in the module of another one."""


def register(registry: Registry) -> None:
    for group, name, help, aliases in COMMANDS:
        module = f"mngr.cli.commands.{TOGETHER.get(name, name)}"
        registry.command(name, module, help, aliases, group=group)
    registry.agent_type("command", "mngr.agents.base:AgentType")
    registry.agent_type("claude", "mngr.agents.claude.agent:ClaudeAgent")
    registry.agent_type("codex", "mngr.agents.codex.agent:CodexAgent")
    registry.agent_type("opencode", "mngr.agents.opencode.agent:OpenCodeAgent")
    registry.provider("local", "mngr.hosts.local:LocalProvider")
    registry.provider("ssh", "mngr.hosts.ssh:SshProvider", noted=True)
    registry.provider("docker", "mngr.hosts.engines.docker:DockerProvider", noted=True)
    registry.provider("slurm", "mngr.hosts.engines.slurm:SlurmProvider", noted=True)
    registry.provider("kubernetes", "mngr.hosts.engines.kubernetes:KubernetesProvider", noted=True)
    registry.provider("modal", "mngr.hosts.modal.provider:ModalProvider", noted=True)
