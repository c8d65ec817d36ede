"""The options of `create`, and how they become a CreateRequest."""

from __future__ import annotations

import os
import re

from mngr.api import CreateRequest, bubblewrap, create, sandboxing, workdir
from mngr.cli.app.parser import Pairs, label
from mngr.cli.commands.create_env import environment, sound
from mngr.cli.commands.limit_values import add_limits
from mngr.errors import UsageError
from mngr.model.records import Window

TYPE_CHECKING = False
if TYPE_CHECKING:
    import argparse

    from mngr.cli.app.parser import Parser

LARGEST = 10_000
"""Columns or rows; tmux itself gives up not far above."""
ABOUT_HOST = ("build_arg", "start_arg", "max_age", "idle_timeout", "host_label")


def configure(parser: Parser) -> None:
    """Every option that says what to create, so that a batch line may hold it too."""
    _what(parser)
    _where(parser)
    _environment(parser)
    _how(parser)


def _what(parser: Parser) -> None:
    group = parser.add_argument_group("What runs")
    add = group.add_argument
    parser.completes(add("--type", metavar="TYPE", help="the agent type, as the word TYPE"), "type")
    add("-m", "--message", metavar="TEXT", help="send this once it runs")
    file = add("--message-file", metavar="FILE", help="send what the file holds; `-` is stdin")
    parser.completes(file, "file")
    add_limits(group)
    add("--reuse", action="store_true", help="if the agent exists, start it instead of failing")
    template = add(
        *("-t", "--template"),
        action="append",
        metavar="NAME",
        help="take options from create_templates.NAME of the settings; repeatable, later ones win",
    )
    parser.completes(template, "template")


def _where(parser: Parser) -> None:
    group = parser.add_argument_group("Where it works")
    add = group.add_argument
    parser.completes(add("--provider", help="the provider of its host"), "provider")
    add("--new-host", action="store_true", help="make a new host for it, as NAME@.PROVIDER does")
    add_host_options(group)
    source = add(
        *("--from", "--source"),
        dest="source",
        default=".",
        metavar="SOURCE",
        help="work on this: a directory (default: the current one), another agent with all it has "
        "uncommitted, a snapshot as AGENT/SNAPSHOT, or a git URL",
    )
    parser.completes(source, "file")
    add(
        "--transfer",
        choices=tuple(workdir.TRANSFERS),
        help="git-worktree (short: worktree); git-mirror (short: mirror), a clone that borrows "
        "from one mirror per repository and host; rsync (short: copy); or none, which works in "
        "place. Default: a worktree of a git repository on the same host, a mirror's clone on "
        "another, a copy of anything else",
    )
    add(
        "--branch",
        metavar="[BASE][:NEW]",
        help="start at BASE, on the new branch NEW; `*` in it is the name (default :mngr/*); "
        "without a colon, work on the branch BASE itself",
    )
    add(
        *("--include-dirty", "--include-unclean", "--no-ensure-clean"),
        action="store_true",
        help="carry uncommitted changes along",
    )
    add("--project", help="the project it belongs to (default: the directory's name)")
    add("--label", action=Pairs, metavar="K=V", help="a label; repeatable")


def add_host_options(group: argparse._ArgumentGroup | Parser) -> None:
    """How a new host is made."""
    from mngr.model.durations import parse_duration

    add = group.add_argument
    help = "an argument for building the new host, such as image=NAME; repeatable"
    add("-b", "--build-arg", action=Pairs, default={}, metavar="K=V", help=help)
    help = "an argument for starting the new host, passed on as it is; repeatable"
    add("-s", "--start-arg", action="append", default=[], metavar="ARG", help=help)
    help = "stop the new host after this time, whatever runs there"
    add("--max-age", type=parse_duration, metavar="TIME", help=help)
    help = "stop the new host when no agent there printed anything or got a message for this long"
    add("--idle-timeout", type=parse_duration, metavar="TIME", help=help)
    add("--host-label", action=Pairs, metavar="K=V", help="a tag of the new host; repeatable")


def _environment(parser: Parser) -> None:
    group = parser.add_argument_group("What it finds there")
    add = group.add_argument
    add("--env", action=Pairs, metavar="K=V", help="set a variable; repeatable")
    file = add(
        "--env-file", action="append", metavar="FILE", help="set those of a file; repeatable"
    )
    parser.completes(file, "file")
    add("--pass-env", action="append", metavar="K", help="hand over a variable of ours; repeatable")
    help = "copy the login of its program, and variables with its keys, to another host"
    add("--pass-login", action="store_true", help=help)
    upload = add(
        *("--upload-file",),
        action="append",
        metavar="L:R",
        help="put the local file L into its work directory as R; repeatable",
    )
    parser.completes(upload, "file")
    add(
        "--provision-command",
        action="append",
        metavar="CMD",
        help="run this in its work directory first; repeatable",
    )
    add(
        "--sandbox",
        nargs="?",
        const=bubblewrap.OFFLINE,
        type=_sandbox,
        metavar="MODE",
        help="run it in bubblewrap: your home is hidden, the system is read-only, the work "
        "directory is writable; MODE is offline (default) or open, which leaves it the network",
    )


def _sandbox(text: str) -> str:
    """Not `choices`: a name after a bare `--sandbox` deserves a better hint."""
    if text not in (*bubblewrap.MODES, bubblewrap.GATEWAY):
        raise UsageError(f"{text!r} is not offline or open", "write --sandbox=offline NAME")
    return sandboxing.check_mode(text)


def _how(parser: Parser) -> None:
    group = parser.add_argument_group("Its terminal")
    add = group.add_argument
    add(
        *("-w", "--extra-window"),
        action=Pairs,
        metavar="NAME=CMD",
        help="another window that runs a shell command; repeatable",
    )
    add("--record", action="store_true", help="record its terminal from the first byte on")
    add("--tmux-width", type=_size, metavar="COLUMNS", help="of its terminal")
    add("--tmux-height", type=_size, metavar="ROWS", help="of its terminal")


def _size(text: str) -> int:
    if not text.isascii() or not text.isdigit() or not 0 < int(text[:9]) <= LARGEST:
        raise UsageError(f"{text[:40]!r} is not a number from 1 to {LARGEST}")
    return int(text)


def request(args: argparse.Namespace) -> CreateRequest:
    """Everything checked that can be checked before anything is made."""
    from mngr.api import running, types

    words = tuple(sound(word, "an argument after `--`") for word in args.rest)
    named = type_of(args)
    kind = types.derive(args.config, args.registry, named or "command")
    asked = CreateRequest(
        address=sound(args.address or "", "the address"),
        type=kind.type if named or kind.argv else "",
        args=kind.argv + words,
        message=message(args),
        source=_source(args.source),
        transfer=args.transfer or "",
        branch=sound(args.branch or "", "--branch"),
        include_dirty=args.include_dirty,
        windows=tuple(_window(name, command) for name, command in args.extra_window.items()),
        labels=running.parse_labels([f"{key}={value}" for key, value in args.label.items()]),
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
    _require_new_host(args, asked)
    return asked


def host_tags(args: argparse.Namespace) -> dict[str, str]:
    from mngr.api import running

    return running.parse_labels([f"{key}={value}" for key, value in args.host_label.items()])


def _require_new_host(args: argparse.Namespace, asked: CreateRequest) -> None:
    """An option about a host that is not made would be ignored; settings are for when one is."""
    if not create.wants_new_host(asked):
        given = [each for each in args.parser.given(args) if each.dest in ABOUT_HOST]
        if given:
            hint = "use NAME@.PROVIDER, or --new-host with --provider"
            raise UsageError(f"{label(given[0])} is for a new host, and none is made", hint)


def type_of(args: argparse.Namespace) -> str:
    """A bare list of words is a command; without words either, a type is chosen later."""
    word = getattr(args, "type_word", None)
    # What the settings or a template say gives way to the word; another --type beside it does not.
    if word and args.type not in (None, word, args.parser.base.get("type")):
        raise UsageError(f"the types {word!r} and --type {args.type} disagree")
    return str(word or args.type or ("command" if args.rest else ""))


def message(args: argparse.Namespace) -> str:
    """The first message; refused here, before anything is made, if it could never be typed."""
    from mngr.cli.app.text import given_text

    text = given_text(args)
    if text is None:
        return ""
    from mngr.api import message

    return message.normalise(text)


def _source(text: str) -> str:
    """A directory by its full path; what may be an agent, a snapshot or a URL as it is."""
    sound(text, "--from")
    folder = os.path.expanduser(text)
    if not os.path.isdir(folder):
        if not text or os.path.exists(folder) or text.startswith(("/", ".", "~", "-")):
            raise UsageError(f"--from: {text!r} is not a directory")
        return text
    try:
        return os.path.abspath(folder)
    except FileNotFoundError:
        raise UsageError("the current directory is gone", "go to another, or use --from") from None


def _window(name: str, command: str) -> Window:
    if not re.fullmatch(r"[A-Za-z0-9_-]{1,63}", name):
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


def count(text: str) -> int:
    if not text.isascii() or not text.isdigit() or not 0 < int(text[:9]) <= 1000:
        raise UsageError(f"{text[:40]!r} is not a number from 1 to 1000")
    return int(text)
