"""How a run says that it ended: in words, and by its exit status."""

from __future__ import annotations

from mngr_tmr import runs
from mngr_tmr.ranking import counts
from tests.support import tmr_kit as kit
from tests.support.cli import Cli, Result

NONE = "\"$MNGR_AGENT_STATE_DIR/publish\" --attempted none --summary 'All is well'"
SPECS = [kit.Spec("one"), kit.Spec("two"), kit.Spec("three")]


def run(cli: Cli, agent: str, *more: str, format: str = "human") -> Result:
    words = (f"--agent-arg={word}" for word in ("sh", "-c", agent))
    return cli(
        *("tmr", "run", "--name", "e", "--type", "command", "--yes", "--repeats", "1"),
        *("--format", format, *words, *more),
        timeout=300,
    )


def project(cli: Cli, *, works: bool) -> None:
    say = kit.mended if works else kit.broken
    kit.write(cli, {spec.name: say(spec.name) for spec in SPECS}, {kit.FILE: kit.source(*SPECS)})


def test_nothing_needed_changing(local: Cli) -> None:
    project(local, works=True)
    done = run(local, NONE).ok()
    assert "The run e found nothing to change." in done.out
    assert "3 unchanged" in done.out
    assert local.git("rev-parse", "tmr/e") == local.git("rev-parse", "main")
    # said again, it has nothing left to do
    again = run(local, "exit 3", format="json").ok().json()
    assert (again["status"], again["commits"]) == ("nothing to do", 0)


def test_nothing_was_failing(local: Cli) -> None:
    project(local, works=True)
    done = run(local, "exit 3", "--only", "failing").ok()
    assert "found nothing to change" in done.out
    assert runs.load(local.home / "tmr/e").tries == 0


def test_everything_failed(local: Cli) -> None:
    project(local, works=False)
    agent = f"""case $MNGR_TMR_TASK in
      one-*) exit 3 ;;
      two-*) {NONE} ;;
      *) {NONE} --blocked 'no key' --needs 'a key' ;;
    esac"""
    done = run(local, agent, "--retries", "0", "--alert-after", "1")
    done.fails(1, "the run e failed: no agent's work could be taken")
    ended = runs.load(local.home / "tmr/e")
    assert counts(ended) == {"died": 1, "refused": 1, "blocked": 1}
    assert all(f"1 {word}" in done.out for word in counts(ended))
    assert "no key; needs a key" in done.out
    assert len(ended.alerts) == 2, "nobody is alarmed by a verdict"
    assert local.git("rev-parse", "tmr/e") == local.git("rev-parse", "main")
    # also to whoever asks later
    assert local("tmr", "show", "e", "--format", "json").ok().json()["status"] == "failed"
