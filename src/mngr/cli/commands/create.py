"""`mngr create`: create an agent with its work directory, launch it, and attach to it."""

from __future__ import annotations

import sys

from mngr.api import Mngr
from mngr.cli.app import terminal
from mngr.cli.app.options import overlay
from mngr.cli.app.output import asker, clean, one, print_result, say, warn
from mngr.cli.commands import create_options
from mngr.errors import MissingProgram, MngrError, UsageError, suggestion
from mngr.model.quoting import join
from mngr.model.state import ALIVE

TYPE_CHECKING = False
if TYPE_CHECKING:
    from mngr.api import Agent, Created, CreateRequest
    from mngr.cli.app.options import Group
    from mngr.cli.app.parser import Namespace, Parser
    from mngr.model.struct import Json

NOT_FOUND = 127
"""The exit code of a shell for a program that does not exist."""

DESCRIPTION = """\
Create an agent: a program that runs in its own terminal and its own work directory. In a git \
repository the work directory is a worktree on the new branch mngr/NAME; elsewhere it is a copy of \
the current directory. If you are in a subdirectory of a repository, the program starts in the \
same subdirectory.

Everything after `--` is run as is, without a shell; with a TYPE, it is passed to the type's \
program as arguments. With neither a TYPE nor a command, mngr starts the first coding agent that \
is installed: claude, codex or opencode. The setting commands.create.type names another one.

If the program is not installed, `create` fails and creates nothing. The command returns once the \
program is running or has ended, and attaches to the agent if you are at a terminal."""

NOTES = """\
The environment of an agent consists of HOME, USER, LOGNAME, SHELL, PATH, LANG, LC_*, TERM, \
COLORTERM, TZ and TMPDIR, the variables that its type declares (such as ANTHROPIC_*), those given \
with --env, --env-file and --pass-env, and MNGR_AGENT_NAME, MNGR_AGENT_ID, MNGR_AGENT_STATE_DIR, \
MNGR_AGENT_WORK_DIR, MNGR_HOST_DIR and MNGR_GIT_BASE. No other variables are passed on.

A line of a batch file that starts with `{` is a JSON object: options, written with `_` instead of \
`-`, and `name`, `args` and `message`. Any other line is the first message of an agent, which is \
named after it. Options on the command line apply to all lines. One JSON object is printed for \
each line, with line, agent_id, agent_name, state and error."""


def configure(parser: Parser) -> None:
    parser.description, parser.notes = DESCRIPTION, NOTES
    parser.rest_name = "ARGS"
    add = parser.add_argument
    help = "name of the agent: NAME or NAME@HOST.PROVIDER"
    add("address", nargs="?", metavar="ADDRESS", help=help)
    help = "agent type (default: an installed coding agent)"
    add("type_word", nargs="?", metavar="TYPE", help=help, completes="type")
    help = "name of the agent; the first argument is then the type"
    add("-n", "--name", metavar="NAME", help=help)
    create_options.configure(parser)
    _connecting(parser)
    _many(parser)
    parser.add_dry_run()
    parser.examples = [
        ("run the tests on a new branch", "mngr create tests -- make test"),
        ("do not attach", "mngr create tests --no-connect -- make"),
        ("print output, return exit code", "mngr create --foreground -- make test"),
        ("open a second window", "mngr create -w log='tail -f log' -- python3 -i"),
        ("create ten agents at once", "mngr create --batch jobs.jsonl --max-parallel 10"),
    ]
    parser.most_used = (
        "-m --connect --foreground --from --branch --env --label --template --provider --batch"
    ).split()
    parser.see_also = ["mngr-connect", "mngr-message", "mngr-list", "mngr-destroy"]


def _connecting(parser: Parser) -> None:
    group = parser.add_argument_group("Attaching")
    add_connect(group, "attach to the agent (default: on a terminal)")
    help = "write the message in your editor while the agent starts"
    group.add_argument("--edit-message", action="store_true", help=help)
    help = "run without a terminal, print output and return the exit code; Ctrl-C stops the agent"
    group.add_argument("--foreground", action="store_true", help=help)


def _many(parser: Parser) -> None:
    add = parser.add_argument_group("Batches").add_argument
    help = "create one agent per line of FILE; `-` is standard input"
    add("--batch", metavar="FILE", help=help, completes="file")
    help = "agents to create at the same time (default 4)"
    add("--max-parallel", type=create_options.count, default=4, metavar="N", help=help)


def add_connect(group: Group, help: str, default: bool | None = None) -> None:
    group.add_argument("--connect", action="switch", default=default, help=help)
    group.add_argument("--connect-command", metavar="CMD", help=terminal.CONNECT_COMMAND)


def defaults(args: Namespace) -> dict[str, Json]:
    """Return the options of the templates, which override the settings."""
    return templates(args, args.template)


def templates(args: Namespace, names: list[str]) -> dict[str, Json]:
    known = args.config.table("create_templates")
    found: dict[str, object] = {}
    for name in names:
        if name not in known:
            hint = suggestion(name, known, "define it in [create_templates.NAME]")
            raise UsageError(f"unknown template {name!r}", hint)
        if "template" in known[name]:
            raise UsageError(f"create_templates.{name}: a template cannot name templates")
        args.parser.coerce(known[name], f"create_templates.{name}")
        found = overlay(found, {key: _listed(value) for key, value in known[name].items()})
    return found  # type: ignore[return-value]  # only settings were laid over each other


def _listed(value: Json) -> Json:
    """Return an object as a list, to which the lists of other templates can be added."""
    if isinstance(value, dict):
        return [f"{key}={inner}" for key, inner in value.items()]
    return value


def _take_name(args: Namespace) -> None:
    """Combine --name with the words, as in `--name foo claude` and `--name foo @box`."""
    if args.name is None or args.batch is not None:
        return
    word = args.address or ""
    if word and not word.startswith("@"):
        if args.type_word is not None:
            raise UsageError(f"--name and the name {word!r} cannot be used together")
        args.type_word, word = word, ""
    args.address = args.name + word


def run(args: Namespace) -> int:
    _take_name(args)
    _refuse_contradictions(args)
    api = Mngr(args.config, args.registry)
    api.ask_with(asker(args))
    if args.batch is not None:
        from mngr.cli.commands.create_batch import run_batch

        return run_batch(args, api)
    request = create_options.request(args)
    if args.dry_run:
        return _preview(args, api, request)
    if args.foreground:
        return _foreground(args, api, request)
    return _create(args, api, request)


def _made(args: Namespace, api: Mngr, request: CreateRequest) -> Created:
    """Create the agent, with progress messages for large copies and new hosts."""
    from mngr.cli.app.progress import copying, waiting

    request = request.replace(waiting=waiting(args))
    progress = copying(args)
    if progress is None:
        return api.create(request)
    try:
        return api.create(request.replace(progress=progress))
    finally:
        progress.clear()


def _refuse_contradictions(args: Namespace) -> None:
    if args.address == "":
        raise UsageError("the name is empty", "leave it out to get a generated name")
    if args.batch is not None:
        given = [("ADDRESS", args.address), ("--foreground", args.foreground)]
        given += [("--edit-message", args.edit_message), ("--name", args.name)]
        for name, value in given:
            if value:
                raise UsageError(f"--batch and {name} cannot be used together")
    if args.edit_message and (args.message is not None or args.message_file is not None):
        raise UsageError("--edit-message and --message cannot be used together")
    if args.edit_message and not terminal.is_terminal():
        raise UsageError("--edit-message requires a terminal", "use --message or --message-file")
    if args.foreground and args.format != "human":
        raise UsageError("--foreground prints the output of the agent", "leave out --format")


def _preview(args: Namespace, api: Mngr, request: CreateRequest) -> int:
    name, host, plan = api.preview(request)
    row: dict[str, Json] = {"name": name, "agent_name": name, "host_name": host.ref.name}
    if plan is None:
        new = f"Would create the host {host.ref.name} of {host.ref.provider}, and {name} on it"
        human = f"Would reuse {name}" if host.ref.id else new
        one(args, {**row, "argv": list(request.args)}, human)
        return 0
    request, remarks = api.settled(request)
    for remark in remarks:
        say(args, f"Note: {remark}")
    row |= {"type": request.type, "argv": list(request.args)}
    row["command"] = join(request.args)
    row |= {"transfer": plan.transfer, "work_dir": plan.work_dir, "branch": plan.branch}
    branch = f" on branch {plan.branch}" if plan.branch else ""
    human = f"Would create {name} on {host.ref.name}, in {plan.work_dir} ({plan.transfer}){branch}"
    one(args, row, f"{human}, running: {join(request.args) or request.type}")
    return 0


def _create(args: Namespace, api: Mngr, request: CreateRequest) -> int:
    editing = args.edit_message
    created = _created_while_editing(api, request) if editing else _made(args, api, request)
    agent = created.agent
    tell_remarks(args, created)
    ref = agent.host.ref
    row = {
        "id": agent.id,
        "name": agent.name,
        "agent_id": agent.id,
        "agent_name": agent.name,
        "host_id": ref.id,
        "host_name": ref.name,
        "state": str(agent.state),
    }
    if args.format != "human":
        one(args, row, "")
    failure = launch_failure(agent) or message_failure(created)
    if failure:
        raise MngrError(failure, hint_for(agent))
    if args.format == "human":
        done = "Reused" if created.reused else "Created"
        print_result(args, row, f"{done} {agent.name}; it is {agent.verdict}.")
    return whereabouts(args, agent, connect=wants_connection(args))


def whereabouts(args: Namespace, agent: Agent, connect: bool) -> int:
    """Print where a new agent works and the command to type next, or attach to it."""
    record = agent.record
    connect = connect and (bool(args.connect_command) or agent.state in ALIVE)
    if args.format == "human":
        if record.branch:
            say(args, f"branch  {record.branch}")
        say(args, f"path    {record.work_dir}")
        following = "connect" if agent.state in ALIVE else "logs"
        if not connect:
            say(args, f"next    mngr {following} {agent.name}")
    return terminal.connect(agent, command=args.connect_command or "") if connect else 0


def tell_remarks(args: Namespace, created: Created) -> None:
    for remark in created.remarks:
        say(args, f"Note: {remark}")
    receipt = created.receipt
    if receipt is not None and receipt.ok:
        detail = f" ({receipt.detail})" if receipt.detail else ""
        say(args, f"Message {receipt.outcome}{detail}.")


def launch_failure(agent: Agent) -> str:
    """Return why the program could not be started, or nothing."""
    why = agent.evidence.not_run
    return f"{agent.name} could not be launched: {why}" if why else ""


def message_failure(created: Created) -> str:
    receipt, agent = created.receipt, created.agent
    if receipt is None or receipt.ok:
        return ""
    return f"{agent.name} is {agent.state}, but its message was not delivered: {receipt.detail}"


def hint_for(agent: Agent) -> str:
    if agent.state in ALIVE:
        return f"send it again with `mngr message {agent.name}`"
    return f"look with `mngr capture {agent.name}`, remove it with `mngr destroy {agent.name}`"


def wants_connection(args: Namespace) -> bool:
    if args.connect is not None:
        return bool(args.connect)
    return bool(args.connect_command) or (terminal.is_terminal() and not args.headless)


def _created_while_editing(api: Mngr, request: CreateRequest) -> Created:
    """Create the agent while the user writes the message. An empty message is not sent."""
    from concurrent.futures import ThreadPoolExecutor

    with ThreadPoolExecutor(max_workers=1) as pool:
        pending = pool.submit(api.create, request)
        text = terminal.compose()
    try:
        created = pending.result()
    except (MngrError, OSError):
        if text.strip():
            warn(f"your message was not sent:\n{text.rstrip()}")
        raise
    if not text.strip():
        return created
    receipt = api.message(created.agent, text)
    return created.replace(agent=api.get(created.agent), receipt=receipt)


def _foreground(args: Namespace, api: Mngr, request: CreateRequest) -> int:
    try:
        created = _made(args, api, request)
    except MissingProgram as error:
        warn(str(error))
        return NOT_FOUND
    agent = created.agent
    tell_remarks(args, created)
    try:
        for name, data in api.stream(agent):
            stream = sys.stdout if name == "stdout" else sys.stderr
            stream.buffer.write(data)
            stream.buffer.flush()
    except (KeyboardInterrupt, BrokenPipeError):
        api.stop(agent)  # the caller has exited; keep the text
        raise
    agent = api.get(agent)
    if failure := launch_failure(agent) or message_failure(created):
        warn(failure)
    elif agent.evidence.this_exit and agent.evidence.this_exit.cause:
        warn(f"{agent.name}: {agent.evidence.this_exit.cause}")
    elif agent.verdict.exit_code is None:
        raise MngrError(f"{agent.name} is {agent.state}: {clean(agent.verdict.reason)}")
    return agent.verdict.exit_code or 0
