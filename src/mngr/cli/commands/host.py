"""`mngr host`: manage hosts."""

from __future__ import annotations

from mngr.api import Host, Mngr
from mngr.cli.app.output import Column, Row, confirm, one, rows, say, warn
from mngr.cli.app.parser import Namespace, Parser
from mngr.cli.app.targets import check_providers, concluded
from mngr.cli.commands import host_trust, list_hosts
from mngr.cli.commands.create_options import add_host_options, host_tags
from mngr.errors import MngrError, Refused, UsageError

DESCRIPTION = """\
Manage the hosts that agents run on. `start` also starts the agents that ran when the host was \
stopped. `destroy` first saves a host that has agents as an image, if the provider supports images.

`audit` lists hosts that are unknown, gone, or past their maximum age; --end destroys or forgets \
them. Hosts that another mngr home created with the same engine are listed too, and ended only \
with --force. `forget` leaves the agents of the host as they are; with --force it also removes a \
host that mngr created and whose engine no longer exists.

A host is recorded on disk and tagged before it is created, so `audit` finds it even if mngr was \
killed meanwhile. --max-age and --idle-timeout are enforced on the host itself."""

SCREENS = {
    "list": ("", "list hosts", []),
    "create": (
        "NAME",
        "create a host with a provider",
        (
            "--provider --build-arg --start-arg --max-age --idle-timeout --host-label --dry-run"
        ).split(),
    ),
    "start": ("HOST...", "start hosts, and the agents that ran on them", ["--dry-run"]),
    "stop": ("HOST...", "stop hosts and their agents", ["--dry-run"]),
    "snapshot": ("HOST...", "save the file system of hosts as images", ["--dry-run"]),
    "destroy": ("HOST...", "destroy hosts", ["--force", "--dry-run", "--yes"]),
    "audit": (
        "",
        "compare the providers' hosts with mngr's records",
        ["--provider", "--end", "--force", "--dry-run"],
    ),
    "trust": (
        "HOST",
        "show an ssh host's key fingerprint, and pin the key",
        ["--fingerprint", "--replace", "--force", "--dry-run", "--yes"],
    ),
    "forget": ("HOST", "remove an ssh host from the list", ["--force", "--dry-run"]),
}
"""What `-h` shows about each verb: its arguments, what it does, and its options."""

COLUMNS: list[Column] = ["provider", "name", "running", "problem"]


def configure(parser: Parser) -> None:
    parser.description, parser.verbs = DESCRIPTION, SCREENS
    add = parser.add_argument
    add("verb", choices=tuple(SCREENS), metavar="VERB", help=", ".join(SCREENS))
    add("names", nargs="*", metavar="HOST", help="names of hosts")
    add("--provider", default="", help="provider of the host", completes="provider")
    add_host_options(parser)
    help = "skip the safety check (`destroy`: agents on the host; `audit --end`: hosts of other \
homes; `forget`: hosts that mngr created)"
    add("-f", "--force", action="store_true", help=help)
    add("--end", action="store_true", help="`audit`: destroy or forget the listed hosts")
    host_trust.add_options(parser)
    parser.add_dry_run()
    parser.add_yes()
    parser.examples = [
        ("list hosts", "mngr host list"),
        ("create a container", "mngr host create box --provider docker"),
        ("destroy a host", "mngr host destroy box"),
        ("find leftover and missing hosts", "mngr host audit"),
    ]
    parser.see_also = ["mngr-provider", "mngr-create", "mngr-list"]


def run(args: Namespace) -> int:
    hint = "to filter hosts, use `mngr list --hosts`" if args.verb == "list" else ""
    args.parser.require_own(args, args.verb, hint)
    if args.names and not SCREENS[args.verb][0]:
        raise UsageError(f"`mngr host {args.verb}` takes no host name", "leave it out")
    return _VERBS[args.verb](args, Mngr(args.config, args.registry))


def _create(args: Namespace, api: Mngr) -> int:
    from mngr.api import HostRequest
    from mngr.cli.app.progress import waiting

    if len(args.names) != 1 or not args.provider:
        hint = "for instance: mngr host create box --provider docker"
        raise UsageError("host create requires one name and --provider", hint)
    check_providers(args, [args.provider])
    request = HostRequest(
        name=args.names[0], build=args.build_arg, start=tuple(args.start_arg),
        lifetime=args.max_age, idle=args.idle_timeout, tags=host_tags(args),
        waiting=waiting(args),
    )  # fmt: skip
    if args.dry_run:
        api.check_new_host(args.provider, request)
        row = {"name": request.name, "provider_name": args.provider}
        one(args, row, f"Would create the host {request.name} of {args.provider}.")
        return 0
    host = api.create_host(args.provider, request)
    row = {"id": host.ref.id, "name": host.ref.name, "provider_name": host.ref.provider}
    one(args, row, f"Created host {host.ref.name}.")
    return 0


def _each(args: Namespace, api: Mngr) -> int:
    """Act on every named host and print the sentence about it."""
    if not args.names:
        raise UsageError(f"no host to {args.verb} given", "see `mngr host list`")
    hosts = [api.host(name) for name in args.names]
    for host in hosts if args.verb == "forget" else ():
        host_trust.require_forgettable(args, host)  # before any of them is forgotten
    done: list[Row] = []
    failures: list[MngrError] = []
    for host in hosts:
        try:
            would = f"Would {args.verb} host {host.ref.name}."
            told = would if args.dry_run else _ACTS[args.verb](args, api, host)
        except MngrError as error:
            if len(args.names) == 1:
                raise
            warn(f"{host.ref.name}: {error}")
            failures.append(error)
            continue
        done.append({"name": host.ref.name, "id": host.ref.id, "result": told})
        if args.format != "json":
            one(args, done[-1], told)
    return concluded(args, done, failures, "hosts")


def _start(args: Namespace, api: Mngr, host: Host) -> str:
    started = api.start_host(host.ref.id)
    also = f" with {', '.join(agent.name for agent in started)}" if started else ""
    return f"Started host {host.ref.name}{also}."


def _stop(args: Namespace, api: Mngr, host: Host) -> str:
    api.stop_host(host.ref.id)
    return f"Stopped host {host.ref.name}."


def _snapshot(args: Namespace, api: Mngr, host: Host) -> str:
    return f"Saved host {host.ref.name} as the image {api.snapshot_host(host.ref.id)}."


def _destroy(args: Namespace, api: Mngr, host: Host) -> str:
    _ask(args, api, host)
    image = api.destroy_host(host.ref.id, force=True)
    saved = f"; it was saved as the image {image}" if image else ""
    return f"Destroyed host {host.ref.name}{saved}."


def _ask(args: Namespace, api: Mngr, host: Host) -> None:
    names = [agent.name for agent in api.agents_of_host(host.ref.id)]
    if not names or args.force or not api.makes_hosts(host.ref.provider):
        return
    from mngr.api import summary

    reason = f"host {host.ref.name} has agents: {summary(names)}"
    otherwise = "use --force to destroy it with them"
    if not confirm(args, "Destroy the host and its agents?", reason=reason, otherwise=otherwise):
        raise Refused(f"host {host.ref.name} was kept")


def _audit(args: Namespace, api: Mngr) -> int:
    check_providers(args, filter(None, [args.provider]))
    found = api.audit_hosts(args.provider)
    table = [each.to_json() for each in found]
    rows(args, table, COLUMNS, "hosts", empty="No hosts created by mngr")
    for problem in api.problems:
        warn(problem)
    odd = [each for each in found if each.problem and (each.ours or args.force)]
    if args.end and not args.dry_run:
        found, odd = odd, []
        for each in found:
            try:
                api.settle_host(each)
            except MngrError as error:
                warn(str(error))
                odd.append(each)
            else:
                say(args, f"Ended {each.name} of {each.provider} ({each.problem}).")
    return 1 if odd or api.problems else 0


_ACTS = {"start": _start, "stop": _stop, "snapshot": _snapshot, "destroy": _destroy}
_ACTS["forget"] = host_trust.forget
_VERBS = {
    "list": list_hosts.show_all,
    "create": _create,
    "audit": _audit,
    "trust": host_trust.run,
    **dict.fromkeys(_ACTS, _each),
}
