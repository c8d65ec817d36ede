"""`mngr tmr run`, `resume` and `integrate`."""

from __future__ import annotations

import errno
import os
import secrets
import shutil
import signal
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import fields, replace
from pathlib import Path

from mngr.api import Mngr, Repo, checkout, local_repository, uncommitted
from mngr.cli.app.output import confirm, one, say
from mngr.cli.app.parser import Namespace
from mngr.errors import MngrError, NotFound, Refused, Taken, UsageError
from mngr.model.struct import Json
from mngr_outcome.codec import to_json
from mngr_tmr.cli import removing
from mngr_tmr.cli.progress import Progress
from mngr_tmr.cli.viewing import chosen
from mngr_tmr.dispatch import orders
from mngr_tmr.integrate import branches
from mngr_tmr.journal.fold import apply
from mngr_tmr.journal.journal import Journal, is_at_work
from mngr_tmr.journal.model import Run
from mngr_tmr.run import coverage, forecast, publishing, runs, selecting
from mngr_tmr.run.disk import full
from mngr_tmr.run.options import Options, retuned
from mngr_tmr.run.pipeline import Pipeline
from mngr_tmr.run.settings import parse
from mngr_tmr.verify.patches import show


def run(args: Namespace) -> int:
    """Start a run, or continue the run of that name."""
    repo = _repository(os.getcwd())
    folder = _folder(args)
    before = runs.load(folder)
    begun = before.name
    if begun and before.repository != repo.path:
        told = f"{begun} is the name of a run in {before.repository}"
        raise Taken(told, "choose another with --name")
    if args.dry_run and begun:
        one(args, {"run": begun}, f"Would continue the run {begun}; see `mngr tmr show {begun}`.")
        return 0
    if before.status:
        say(args, f"The run {begun} has already ended; to run the tests again, use another --name.")
    started = None if begun else _started(args, repo, folder)
    with _leaving_nothing(args, folder), Journal(folder, time.time) as journal:
        if started is not None:
            journal.append("run_started", started)
            if args.only == "changed" and not coverage.load_files(args.config.home, repo.path):
                told = "The coverage of the tests is not known yet, so `changed` selects all tests."
                say(args, told)
        _lift_pause(folder, journal)
        return _work(args, folder, journal)


@contextmanager
def _leaving_nothing(args: Namespace, folder: Path) -> Iterator[None]:
    """Remove a run that was declined or could not start."""
    try:
        yield
    except (MngrError, OSError):
        _drop_unless_agreed(folder)
        raise
    except (KeyboardInterrupt, SystemExit):
        if args.dry_run:
            _drop_unless_agreed(folder)
        raise
    if _drop_unless_agreed(folder):
        say(args, "No agent was started; the run was discarded.")


def _drop_unless_agreed(folder: Path) -> bool:
    run = runs.load(folder)
    if run.consent or run.status or is_at_work(folder):
        return False
    if run.repository and os.path.isdir(run.repository):
        removing.delete_refs(local_repository(run.repository), run)
    shutil.rmtree(folder, ignore_errors=True)
    return True


def resume(args: Namespace) -> int:
    folder = chosen(args)
    _require_begun(folder)
    with _leaving_nothing(args, folder), Journal(folder, time.time) as journal:
        _lift_pause(folder, journal)
        return _work(args, folder, journal)


def _require_begun(folder: Path) -> None:
    if not runs.load(folder).name:
        hint = f"start it again with `mngr tmr run --name {folder.name}`"
        raise NotFound(f"the run {folder.name} was killed before it started", hint)


def _lift_pause(folder: Path, journal: Journal) -> None:
    """End a pause by hand: `resume` implies `unpause`.

    The order to pause may not have been read yet by a process that was killed.
    """
    run = runs.load(folder)

    def note(type: str, fields: Mapping[str, Json]) -> None:
        apply(run, journal.append(type, fields))

    orders.obey(run, note, journal.sync, orders.ControlFolder(folder))
    if run.paused and not run.paused_until:
        journal.append("resumed", {})


def integrate(args: Namespace) -> int:
    """Build the branch again, after collecting what agents have published since."""
    folder = chosen(args)
    _require_begun(folder)
    if not runs.load(folder).consent:
        hint = f"start them with `mngr tmr resume {folder.name}`"
        raise Refused(f"the run {folder.name} has no agents yet", hint)
    with Journal(folder, time.time) as journal:
        if args.include_flagged:
            journal.append("control", {"action": "retune", "options": {"include_flagged": True}})
        return _work(args, folder, journal, again=True)


def _repository(cwd: str) -> Repo:
    repo = local_repository(cwd)
    found = checkout(repo)
    if found is None or not found.head:
        hint = "run `mngr tmr` in the repository whose tests you want to fix"
        raise UsageError(f"{cwd} is not in the work tree of a git repository with commits", hint)
    return local_repository(found.top)


def _folder(args: Namespace) -> Path:
    name = args.name or _fresh_name(args)
    problem = selecting.run_name_problem(name)
    if problem:
        raise UsageError(f"{name!r}: {problem}")
    return runs.root(args.config.home) / name


def _fresh_name(args: Namespace) -> str:
    """Return a new name: `failing-3f2a`, or `e2e-90c1` for all tests of a folder."""
    word = str(args.only)
    if word == "all" and len(args.words) == 1:
        word = selecting.plain_word(Path(args.words[0].partition("::")[0]).stem, 15) or word
    taken = set(runs.names(args.config.home))
    while True:
        name = f"{word}-{secrets.token_hex(2)}"
        if name not in taken:
            return name


def _from_top(word: str, top: str) -> str:
    """Return the path of tests that exists here as seen from the top of the repository."""
    path, colons, rest = word.partition("::")
    inside = os.path.relpath(path, top)
    if not os.path.exists(path) or inside.startswith(".."):
        return word
    return f"{inside}{colons}{rest}"


def options(args: Namespace, top: str) -> Options:
    names = [each.name for each in fields(Options)]
    same = {name: value for name in names if (value := getattr(args, name, None)) is not None}
    chosen = Options(
        agent_type=args.type,
        agent_args=tuple(args.agent_arg),
        build=tuple(sorted(args.build_arg.items())),
        start_args=tuple(args.start_arg),
        coverage=not args.no_coverage,
        pytest_args=tuple(args.rest),
        paths=tuple(_from_top(each, top) for each in args.words),
    )
    return retuned(chosen, {**same, "canaries": 0 if args.no_canary else args.canaries})


def _started(args: Namespace, repo: Repo, folder: Path) -> dict[str, Json]:
    """Return the first event of a new run, after checking that it can start."""
    base = repo.ask("rev-parse", "--verify", f"{args.base or 'HEAD'}^{{commit}}")
    if base is None:
        raise UsageError(f"{args.base!r} is not a commit in {repo.path}")
    dirty = [] if args.base else uncommitted(repo)
    if dirty:  # a started run uses its base commit and ignores later edits
        told = f"{repo.path} has uncommitted changes ({dirty[0].path}), which agents would not see"
        raise Refused(told, "commit them first")
    branches.require_free(repo)
    api = Mngr(args.config, args.registry)
    kind = api.derive(args.type, args.provider)
    if args.provider in ("", "local"):
        api.preflight(kind.type, {**os.environ, **kind.env})
    chosen = replace(
        options(args, repo.path),
        agent_type=kind.type,
        agent_args=(*kind.argv, *args.agent_arg),
        agent_env=tuple(sorted(kind.env.items())),
    )
    return {
        "run": folder.name,
        "repository": repo.path,
        "base": base,
        "options": to_json(chosen),
    }


def _work(args: Namespace, folder: Path, journal: Journal, *, again: bool = False) -> int:
    before = runs.load(folder)
    repo = local_repository(before.repository)
    with _interruptible(args, folder), Progress(args, before) as progress:
        pipeline = Pipeline(
            Mngr(args.config, args.registry),
            folder,
            journal,
            repo,
            parse(show(repo, before.base, "pyproject.toml") or ""),
            watch=_watching(progress, folder),
            inbox=orders.ControlFolder(folder),
        )
        if again:
            ended = pipeline.integrate_again()
        else:
            ended = pipeline.go(confirm=lambda run: _agreed(args, progress, run))
    return _told(args, folder, ended, repo)


@contextmanager
def _interruptible(args: Namespace, folder: Path) -> Iterator[None]:
    """Clean up after SIGTERM, or when the terminal is closed, as after Ctrl-C."""

    def end(number: int, frame: object) -> None:
        raise SystemExit(128 + number)

    for number in (signal.SIGTERM, signal.SIGHUP):
        if signal.getsignal(number) is not signal.SIG_IGN:  # nohup
            signal.signal(number, end)
    try:
        yield
    except (KeyboardInterrupt, SystemExit):
        if not args.dry_run:
            keep = "Agents keep working; continue" if runs.load(folder).consent else "Continue"
            say(args, f"Interrupted. {keep} with `mngr tmr resume {folder.name}`.")
        raise
    except BrokenPipeError:
        raise
    except (MngrError, OSError) as error:
        place = full(folder)
        if args.dry_run or not (place or isinstance(error, OSError)):
            raise
        told = f"the run {folder.name} stopped: {_why(error, place)}"
        hint = f"continue it with `mngr tmr resume {folder.name}`"
        raise MngrError(told, f"free some disk space and {hint}" if place else hint) from error


def _why(error: Exception, place: str) -> str:
    """Return why the machine cannot continue a run; on a full disk, any error may be the first."""
    if not isinstance(error, OSError):
        return f"{os.strerror(errno.ENOSPC)} ({place})"
    return f"{error.strerror or error} ({error.filename or place})".removesuffix(" ()")


def _watching(progress: Progress, folder: Path) -> Callable[[Run], None]:
    """Return a function that updates the terminal, and every few seconds the report."""
    from mngr_view.writing import Live

    live = Live(folder, folder / "report")

    def watch(run: Run) -> None:
        progress.show(run)
        live.show()

    return watch


def _agreed(args: Namespace, progress: Progress, run: Run) -> bool:
    """Return whether the user agrees to start agents, asking once per run."""
    if args.dry_run:
        progress.clear()
        one(args, forecast.dry_run_row(run), forecast.dry_run(run))
        return False
    if run.consent or not run.tasks:
        return True
    if not args.quiet:
        progress.say("forecast", forecast.told(run))
    if args.yes:
        return True
    try:
        return confirm(args, "Start them?")
    except Refused:
        told = "no agent was started, because a confirmation requires a terminal"
        raise Refused(told, "use --yes") from None


def _told(args: Namespace, folder: Path, run: Run, repo: Repo) -> int:
    if not run.status:
        return 0 if args.dry_run else 1
    report = publishing.write_report(folder)
    if args.pr and run.picks:
        publishing.pull_request(repo, folder, run)
    one(args, publishing.summary(run, folder), publishing.closing_words(run, report))
    if run.status in ("failed", "cancelled"):
        raise MngrError(f"the run {run.name} {publishing.in_words(run)}")
    return 0
