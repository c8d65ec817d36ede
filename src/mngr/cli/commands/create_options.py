"""The options of `create`, and how they become a CreateRequest."""

from __future__ import annotations

import os

from mngr.api import OFFLINE, OPEN, TRANSFERS, CreateRequest
from mngr.cli.app import options
from mngr.cli.app.options import Group
from mngr.cli.app.parser import Namespace, Parser
from mngr.cli.commands.create_env import environment, sound
from mngr.cli.commands.limit_values import add_limits
from mngr.errors import UsageError
from mngr.model.durations import parse_duration
from mngr.model.records import Window

ABOUT_HOST = ("build_arg", "start_arg", "max_age", "idle_timeout", "host_label")
_AS_LETTERS = str.maketrans("_-", "xx")


def count(text: str) -> int:
    return options.count(text, 1, 1000)


def _terminal_size(text: str) -> int:
    return options.count(text, 1, 10_000)  # tmux accepts little more


def configure(parser: Parser) -> None:
    """Add the options that describe an agent; they are also allowed in batch lines."""
    _what(parser)
    _where(parser)
    _environment(parser)
    _how(parser)


def _what(parser: Parser) -> None:
    group = parser.add_argument_group("Program")
    add = group.add_argument
    help = "agent type, same as the argument TYPE"
    add("--type", metavar="TYPE", help=help, completes="type")
    add("-m", "--message", metavar="TEXT", help="first message to the agent")
    help = "file with the first message; `-` is standard input"
    add("--message-file", metavar="FILE", help=help, completes="file")
    add_limits(group)
    help = "use the agent if it already exists, and start it if it is not running"
    add("--reuse", action="store_true", help=help)
    help = "use the options in the setting create_templates.NAME; repeatable, the last one wins"
    names = ("-t", "--template")
    add(*names, action="append", metavar="NAME", help=help, completes="template")


TRANSFER = """\
type of work directory: git-worktree (alias worktree); git-mirror (alias mirror), a clone that \
shares objects with one mirror per repository and host; rsync (alias copy), a copy; or none, to \
work in place. Default: git-worktree for a git repository on the same host, git-mirror on another \
host, rsync for any other directory"""


def _where(parser: Parser) -> None:
    group = parser.add_argument_group("Host and work directory")
    add = group.add_argument
    add("--provider", help="provider of the host", completes="provider")
    help = "create a new host for the agent, same as NAME@.PROVIDER"
    add("--new-host", action="store_true", help=help)
    add_host_options(group)
    help = "directory, agent, snapshot or git URL to start from (default: the current directory); \
a snapshot is written AGENT/SNAPSHOT, and an agent's uncommitted changes are copied too"
    names = ("--from", "--source")
    add(*names, dest="source", default=".", metavar="SOURCE", help=help, completes="file")
    add("--transfer", choices=tuple(TRANSFERS), metavar="METHOD", help=TRANSFER)
    help = "start at BASE on the new branch NEW, where `*` is the agent's name (default \
:mngr/*); without a colon, work on the branch BASE itself"
    add("--branch", metavar="[BASE][:NEW]", help=help)
    dirty = ("--include-dirty", "--include-unclean", "--no-ensure-clean")
    add(*dirty, action="store_true", help="copy uncommitted changes too")
    add("--project", help="project of the agent (default: name of the directory)")
    add("--label", action="pairs", metavar="K=V", help="label of the agent; repeatable")


def add_host_options(group: Group) -> None:
    """Add the options for creating a host."""
    add = group.add_argument
    help = "argument for creating the new host, such as image=NAME; repeatable"
    add("-b", "--build-arg", action="pairs", default={}, metavar="K=V", help=help)
    help = "argument for starting the new host, passed on as is; repeatable"
    add("-s", "--start-arg", action="append", default=[], metavar="ARG", help=help)
    help = "stop the new host after this time, even if agents run on it"
    add("--max-age", type=parse_duration, metavar="DURATION", help=help)
    help = "stop the new host after this long without activity"
    add("--idle-timeout", type=parse_duration, metavar="DURATION", help=help)
    add("--host-label", action="pairs", metavar="K=V", help="tag of the new host; repeatable")


def _environment(parser: Parser) -> None:
    add = parser.add_argument_group("Environment").add_argument
    add("--env", action="pairs", metavar="K=V", help="set an environment variable; repeatable")
    help = "set the variables in FILE; repeatable"
    add("--env-file", action="append", metavar="FILE", help=help, completes="file")
    help = "pass on a variable of your environment; repeatable"
    add("--pass-env", action="append", metavar="K", help=help)
    help = "copy the login of the coding agent, its API keys and secret settings, to another host"
    add("--pass-login", action="store_true", help=help)
    help = "copy the local file L to R in the work directory; repeatable"
    add("--upload-file", action="append", metavar="L:R", help=help, completes="file")
    help = "shell command to run in the work directory before the program starts; repeatable"
    add("--provision-command", action="append", metavar="CMD", help=help)
    help = "run the agent in bubblewrap: your home is hidden, the system is read-only, the work \
directory is writable; MODE is offline (default) or open, with network access"
    mode = OFFLINE
    add("--sandbox", nargs="?", const=mode, type=_sandbox, metavar="MODE", help=help)


def _sandbox(text: str) -> str:
    """Check the mode; `choices` would give no hint for a name after a bare `--sandbox`."""
    if text not in (OFFLINE, OPEN):
        raise UsageError(f"{text!r} is not offline or open", "write --sandbox=offline NAME")
    return text


def _how(parser: Parser) -> None:
    add = parser.add_argument_group("Terminal").add_argument
    help = "open another window with a shell command; repeatable"
    add("-w", "--extra-window", action="pairs", metavar="NAME=CMD", help=help)
    add("--record", action="store_true", help="record the terminal from the start")
    add("--tmux-width", type=_terminal_size, metavar="COLUMNS", help="width of the terminal")
    add("--tmux-height", type=_terminal_size, metavar="ROWS", help="height of the terminal")


def request(args: Namespace) -> CreateRequest:
    """Return the request, after all checks that are possible before anything is created."""
    asked = _asked(args)
    _require_new_host(args, asked)
    return asked


def _asked(args: Namespace) -> CreateRequest:
    from mngr.api import derive, parse_labels

    words = tuple(sound(word, "an argument after `--`") for word in args.rest)
    named = type_of(args)
    kind = derive(args.config, args.registry, named or "command")
    return CreateRequest(
        address=sound(args.address or "", "the address"),
        type=kind.type if named or kind.argv else "",
        args=kind.argv + words,
        message=message(args),
        source=_source(args.source),
        transfer=args.transfer or "",
        branch=sound(args.branch or "", "--branch"),
        include_dirty=args.include_dirty,
        windows=tuple(_window(name, command) for name, command in args.extra_window.items()),
        labels=parse_labels([f"{key}={value}" for key, value in args.label.items()]),
        project=_project(args.project or ""),
        env=environment(args, kind.env),
        provider=args.provider or "",
        new_host=args.new_host,
        build=args.build_arg,
        start_args=tuple(args.start_arg),
        lifetime=args.max_age,
        idle=args.idle_timeout,
        host_tags=host_tags(args),
        uploads=tuple(map(_upload, args.upload_file)),
        provision=tuple(sound(text, "--provision-command") for text in args.provision_command),
        reuse=args.reuse,
        timeout=args.timeout,
        max_cost=args.max_cost,
        max_tokens=args.max_tokens,
        headless=getattr(args, "foreground", False),
        pass_login=args.pass_login,
        record=args.record,
        sandbox=args.sandbox or "",
        width=args.tmux_width or 0,
        height=args.tmux_height or 0,
    )


def host_tags(args: Namespace) -> dict[str, str]:
    from mngr.api import parse_labels

    return parse_labels([f"{key}={value}" for key, value in args.host_label.items()])


def _require_new_host(args: Namespace, asked: CreateRequest) -> None:
    """Raise for an option about a new host if none is created; defaults in settings are allowed."""
    if not asked.wants_new_host:
        given = [each for each in args.parser.given(args) if each.dest in ABOUT_HOST]
        if given:
            hint = "use NAME@.PROVIDER, or --new-host with --provider"
            raise UsageError(
                f"{given[0].label} is for a new host, but no new host is created", hint
            )


def type_of(args: Namespace) -> str:
    """Return the type; `command` for a bare command line, "" to choose a type later."""
    word = getattr(args, "type_word", None)
    if args.rest and not word and "type" not in args.parser.typed:
        # The default type is for agents, not for a command line.
        configured = args.config.command_defaults("create").get("type")
        return str(args.type) if args.type not in (None, configured) else "command"
    # The word overrides the settings and templates; another --type on the command line is an error.
    if word and args.type not in (None, word, args.parser.base.get("type")):
        raise UsageError(f"the type {word!r} conflicts with --type {args.type}")
    return str(word or args.type or ("command" if args.rest else ""))


def message(args: Namespace) -> str:
    """Return the first message; raise UsageError if it cannot be typed."""
    from mngr.cli.app.text import given_text

    text = given_text(args)
    if text is None:
        return ""
    from mngr.api import normalise

    return normalise(text)


def _source(text: str) -> str:
    """Return the full path of a directory; an agent, a snapshot or a URL unchanged."""
    sound(text, "--from")
    folder = os.path.expanduser(text)
    if not os.path.isdir(folder):
        if not text or os.path.exists(folder) or text.startswith(("/", ".", "~", "-")):
            raise UsageError(f"--from: {text!r} is not a directory")
        return text
    try:
        return os.path.abspath(folder)
    except FileNotFoundError:
        raise UsageError(
            "the current directory was removed", "change to another directory, or use --from"
        ) from None


def _window(name: str, command: str) -> Window:
    if len(name) > 63 or not (name.isascii() and name.translate(_AS_LETTERS).isalnum()):
        raise UsageError(
            f"--extra-window: {name[:80]!r} is not a window name", "use letters, digits, '-', '_'"
        )
    if name == "agent":
        raise UsageError("--extra-window: 'agent' is the agent's own window", "choose another name")
    if not command.strip():
        raise UsageError(f"--extra-window: {name} has no command", "write NAME=CMD")
    return Window(name=name, command=sound(command, f"--extra-window {name}"))


def _project(text: str) -> str:
    if len(text) > 255 or not (text.isprintable() or not text):
        raise UsageError("--project must be one printable line of at most 255 characters")
    return text


def _upload(text: str) -> tuple[str, str]:
    local, colon, remote = sound(text, "--upload-file").partition(":")
    if not (local and colon and remote):
        raise UsageError(f"--upload-file: expected LOCAL:REMOTE, not {text!r}")
    local = os.path.expanduser(local)
    if not os.path.isfile(local):
        raise UsageError(f"--upload-file: {local!r} is not a file")
    return local, remote
