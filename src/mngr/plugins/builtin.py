"""What mngr brings itself, registered as any plugin's would be."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from mngr.plugins.registry import Registry

AGENTS = "Agents"
WORK = "Work"
REST = "The rest"

COMMANDS: tuple[tuple[str, str, str, tuple[str, ...]], ...] = (
    (AGENTS, "create", "make an agent: its work directory, its launch, and attach", ("c",)),
    (AGENTS, "list", "show every agent, everywhere", ("ls", "ps")),
    (AGENTS, "show", "show everything about one agent", ("status",)),
    (AGENTS, "connect", "attach to an agent", ("conn", "attach")),
    (AGENTS, "message", "send a text to agents and say whether it arrived", ("msg",)),
    (AGENTS, "answer", "see what agents ask permission for, and answer", ()),
    (AGENTS, "exec", "run a command in an agent's work directory", ("x",)),
    (AGENTS, "capture", "print an agent's screen", ()),
    (AGENTS, "logs", "print what an agent's program printed", ("log",)),
    (AGENTS, "path", "print where an agent's work is", ()),
    (AGENTS, "transcript", "print the conversation with an agent", ()),
    (AGENTS, "event", "print an agent's events", ("events",)),
    (AGENTS, "observe", "print state changes of all agents as they happen", ()),
    (AGENTS, "wait", "return when agents reach a state", ()),
    (AGENTS, "usage", "show what agents have used, and what it cost", ()),
    (AGENTS, "limit", "see and change what agents may use", ()),
    (AGENTS, "start", "start agents that have stopped", ()),
    (AGENTS, "stop", "stop agents and keep their work", ("s",)),
    (AGENTS, "kill", "stop agents at once", ()),
    (AGENTS, "restart", "stop agents and start them again", ()),
    (AGENTS, "archive", "stop agents and leave them out of lists", ()),
    (AGENTS, "destroy", "remove agents, with an undo", ("rm",)),
    (AGENTS, "restore", "list and bring back what was destroyed", ()),
    (AGENTS, "rename", "give an agent another name", ("mv",)),
    (AGENTS, "label", "set labels of agents", ()),
    (AGENTS, "clone", "make another agent with the same work", ()),
    (AGENTS, "migrate", "move an agent to another host", ()),
    (WORK, "pull", "bring an agent's commits or files here", ()),
    (WORK, "push", "bring commits or files to an agent", ()),
    (WORK, "diff", "show what an agent did since it began", ()),
    (WORK, "merge", "merge what agents committed into the current branch", ()),
    (WORK, "snapshot", "keep and bring back moments of an agent's work", ("snap",)),
    (REST, "host", "list, make, start, stop and end hosts", ()),
    (REST, "provider", "show which providers of hosts can be used here", ()),
    (REST, "gc", "remove leftovers that mngr created", ()),
    (REST, "config", "read and change settings", ()),
    (REST, "plugin", "show plugins, and choose which are used", ()),
    (REST, "doctor", "check this machine and say what to do", ()),
    (REST, "completion", "print a shell's completion script", ()),
    (REST, "man", "show a manual page", ()),
    (REST, "help", "show the commands, or one command's manual", ()),
)


def register(registry: Registry) -> None:
    for group, name, help, aliases in COMMANDS:
        registry.command(name, f"mngr.cli.commands.{name}", help, aliases, group=group)
    registry.agent_type("command", "mngr.agents.command:CommandAgent")
    registry.agent_type("claude", "mngr.agents.claude.agent:ClaudeAgent")
    registry.agent_type("codex", "mngr.agents.codex.agent:CodexAgent")
    registry.agent_type("opencode", "mngr.agents.opencode.agent:OpenCodeAgent")
    registry.provider("local", "mngr.hosts.local:LocalProvider")
    registry.provider("ssh", "mngr.hosts.ssh:SshProvider", noted=True)
    registry.provider("docker", "mngr.hosts.engines.docker:DockerProvider", noted=True)
    registry.provider("slurm", "mngr.hosts.engines.slurm:SlurmProvider", noted=True)
    registry.provider("kubernetes", "mngr.hosts.engines.kubernetes:KubernetesProvider", noted=True)
    registry.provider("modal", "mngr.hosts.modal.provider:ModalProvider", noted=True)
