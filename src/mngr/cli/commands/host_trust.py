"""`mngr host trust` and `mngr host forget`: machines that mngr uses but did not create."""

from __future__ import annotations

from mngr.api import Host, Mngr
from mngr.cli.app.output import asker, one
from mngr.cli.app.parser import Namespace, Parser
from mngr.errors import Refused, UsageError


def add_options(parser: Parser) -> None:
    add = parser.add_argument
    help = "`trust`: expected fingerprint of the key"
    add("--fingerprint", default="", metavar="SHA256:HASH", help=help)
    add("--replace", action="store_true", help="`trust`: replace the pinned key")


def run(args: Namespace, api: Mngr) -> int:
    from mngr.api import fingerprints

    if len(args.names) != 1:
        raise UsageError("host trust requires one host", "write `mngr host trust HOST`")
    host = api.ssh_host(args.names[0])
    line = host.offered()
    shown = fingerprints(host.ref.name, line)
    if host.distrusts(line) and not args.replace:
        raise Refused(f"{shown} Another key is trusted", "use --replace to trust this key instead")
    _agree(args, host.ref.name, shown)
    row = {"id": host.ref.id, "name": host.ref.name, "key": line.strip()}
    if args.dry_run:
        one(args, row, f"{shown} It would be trusted.")
        return 0
    host.trusts(line)
    one(args, row, f"Trusted the key of host {host.ref.name}.")
    return 0


def forget(args: Namespace, api: Mngr, host: Host) -> str:
    """Remove a host from the list. Its agents keep running and return when the host is used."""
    api.forget_host(host)
    name, listed = host.ref.name, args.config.get("providers.ssh.hosts") or []
    if host.ref.provider == "ssh" and name in listed:
        return f"Forgot host {name}; it remains in the list because providers.ssh.hosts names it."
    return f"Forgot host {name}; its agents are kept."


def require_forgettable(args: Namespace, host: Host) -> None:
    """Raise Refused if the host is not one that mngr only uses."""
    name, provider = host.ref.name, host.ref.provider
    if provider == "local":
        raise Refused(f"host {name} is this machine and cannot be forgotten")
    if provider != "ssh" and not args.force:
        hint = f"use `mngr host destroy {name}`, or --force if {provider} is gone for good"
        raise Refused(f"{name} is a host of {provider} and cannot be forgotten", hint)


def _agree(args: Namespace, name: str, shown: str) -> None:
    """Accept the key by the given fingerprint, by --force, or by asking the user."""
    if args.fingerprint:
        if args.fingerprint not in shown.replace(",", "").split():
            raise Refused(f"{shown} That is not {args.fingerprint}")
    elif not args.force and not args.dry_run:
        ask = asker(args)
        if ask is None:
            hint = f"compare it, then type: mngr host trust {name} --fingerprint {_first(shown)}"
            raise Refused(f"{shown} It cannot be compared without a terminal", hint)
        if not ask(f"{shown} Trust it?"):
            raise Refused(f"the key of host {name} is not trusted")


def _first(shown: str) -> str:
    return next(word for word in shown.replace(",", "").split() if word.startswith("SHA256:"))
