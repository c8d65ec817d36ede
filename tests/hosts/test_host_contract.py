"""The five methods, on the local host and on one behind `env -i sh`."""

from __future__ import annotations

import os
import stat
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from mngr.errors import MissingProgram, MngrError, TimedOut
from mngr.hosts.base import CHANGING, Host
from mngr.hosts.evidence import CANDIDATES
from mngr.hosts.local import LocalHost
from mngr.model.records import AgentRecord, encode, record_stem
from mngr.ops.versioned import current
from tests.support.bare import BareHost
from tests.support.cli import until
from tests.support.records import agent_record

AGENT_ID = "agent-" + "a" * 32


@pytest.fixture(params=["local", "bare"])
def host(request: pytest.FixtureRequest, tmp_path: Path) -> Host:
    home = str(tmp_path / "home")
    return LocalHost(home) if request.param == "local" else BareHost(home)


def a_record(**changes: object) -> AgentRecord:
    return agent_record(**{"id": AGENT_ID, **changes})


def test_run_returns_exact_bytes_and_the_code(host: Host) -> None:
    done = host.run(["sh", "-c", "cat; printf '\\377' >&2; exit 3"], input=b"\0\xffx\n", timeout=10)
    assert (done.code, done.stdout, done.stderr) == (3, b"\0\xffx\n", b"\xff")


def test_run_moves_megabytes_both_ways_without_blocking(host: Host) -> None:
    data = os.urandom(1 << 16) * 80
    assert host.run(["cat"], input=data, timeout=30).stdout == data


def test_run_ends_the_whole_tree_at_its_deadline(host: Host, tmp_path: Path) -> None:
    pid_file = tmp_path / "pid"
    script = f"sh -c 'echo $$ > {pid_file}; trap \"\" TERM; while :; do sleep 0.1; done'"
    with pytest.raises(TimedOut, match="within 1 s"):
        host.run(["sh", "-c", script], timeout=1)
    pid = int(pid_file.read_text())
    until(lambda: not Path(f"/proc/{pid}").exists(), what="the grandchild ended")


def test_run_does_not_wait_for_a_grandchild_that_holds_its_pipes(
    host: Host, tmp_path: Path
) -> None:
    pid_file = tmp_path / "pid"
    done = host.run(["sh", "-c", f"sleep 300 & echo $! > {pid_file}; echo out"], timeout=20)
    assert (done.code, done.stdout) == (0, b"out\n")
    os.kill(int(pid_file.read_text()), 9)


def test_a_missing_program_is_named(tmp_path: Path) -> None:
    with pytest.raises(MissingProgram, match="no-such-program"):
        LocalHost(str(tmp_path)).run(["no-such-program"], timeout=5)


def test_a_program_that_reads_none_of_its_input_is_no_error(host: Host) -> None:
    assert host.run(["true"], input=b"x" * (1 << 20), timeout=10).code == 0


def test_put_writes_content_and_mode_and_leaves_no_temporary_file(
    host: Host, tmp_path: Path
) -> None:
    folder = tmp_path / "deep" / "er"
    names = ["a", "with space", "quo'te", "new\nline", "-dash"]
    host.put({str(folder / name): (f"{name}\0".encode(), 0o640) for name in names})
    host.put({str(folder / "a"): (b"again", 0o600)})
    assert sorted(os.listdir(folder)) == sorted(names)
    assert (folder / "a").read_bytes() == b"again"
    assert stat.S_IMODE((folder / "a").stat().st_mode) == 0o600
    assert (folder / "new\nline").read_bytes() == b"new\nline\0"


def test_put_writes_through_no_link_that_an_agent_put_in_place_of_a_folder(
    host: Host, tmp_path: Path
) -> None:
    elsewhere, folder = tmp_path / "elsewhere", Path(host.home, "agents", AGENT_ID)
    elsewhere.mkdir()
    folder.mkdir(parents=True)
    (folder / "signals").symlink_to(elsewhere)
    with pytest.raises(MngrError, match="signals was replaced by a link"):
        host.put({str(folder / "signals" / "Launch.json"): (b"{}", 0o600)})
    assert not any(elsewhere.iterdir())


def test_swap_follows_no_link_that_an_agent_put_in_place_of_a_temporary_file(
    host: Host, tmp_path: Path
) -> None:
    precious, stem = tmp_path / "precious", record_stem(host.home, AGENT_ID)
    precious.write_text("mine")
    assert host.swap(stem, 0, b"one")
    newest = int(Path("/proc/loadavg").read_text().split()[-1])
    for pid in range(newest, newest + 3000):
        Path(f"{os.path.dirname(stem)}/.agent.swap.{pid}").symlink_to(precious)
    try:
        host.swap(stem, 1, b"two")
    except MngrError:
        pass  # it may fail, but not write elsewhere
    assert precious.read_text() == "mine"


def test_swap_succeeds_only_on_the_newest_revision(host: Host) -> None:
    stem = record_stem(host.home, AGENT_ID)
    assert host.swap(stem, 0, b"one")
    assert not host.swap(stem, 0, b"lost")
    assert host.swap(stem, 1, b"two")
    assert current(host, stem) == (2, b"two")
    assert os.listdir(os.path.dirname(stem)) == ["agent.2.json"]


def test_a_writer_two_steps_behind_loses_though_its_name_is_free_again(host: Host) -> None:
    stem = record_stem(host.home, AGENT_ID)
    for rev in range(4):
        assert host.swap(stem, rev, b"%d" % (rev + 1))
    assert not host.swap(stem, 1, b"stale"), "agent.2.json is free, but 4 is the newest"
    assert current(host, stem) == (4, b"4")


def test_of_many_writers_on_one_revision_exactly_one_wins(host: Host) -> None:
    stem = record_stem(host.home, AGENT_ID)
    for rev in range(5):
        with ThreadPoolExecutor(8) as pool:
            won = list(pool.map(lambda n, rev=rev: host.swap(stem, rev, b"%d" % n), range(8)))
        assert won.count(True) == 1
        assert current(host, stem) == (rev + 1, b"%d" % won.index(True))


def test_read_returns_every_record_and_signal_in_one_go(host: Host) -> None:
    folder = f"{host.home}/agents/{AGENT_ID}"
    host.swap(record_stem(host.home, AGENT_ID), 0, encode(a_record()))
    host.put(
        {
            f"{folder}/started": (b'{"launch":"L","pid":7,"time":2.5}\n', 0o600),
            f"{folder}/exit": (b'{"launch":"L","code":3,"time":3}\n', 0o600),
            f"{folder}/signals/Stop.json": (b'{"a":1}', 0o600),
        }
    )
    (evidence,) = host.read().agents
    assert evidence.record == a_record() and evidence.rev == 1
    assert evidence.started and evidence.started.pid == 7
    assert evidence.exit and evidence.exit.code == 3
    assert evidence.signals == {"Stop": {"a": 1}}
    assert [each.id for each in host.read([AGENT_ID]).agents] == [AGENT_ID]
    assert host.read(["agent-" + "b" * 32]).agents == ()


def test_a_record_that_keeps_changing_is_in_every_reading(host: Host) -> None:
    stem = record_stem(host.home, AGENT_ID)
    assert host.swap(stem, 0, encode(a_record()))

    def keep_changing() -> None:
        for rev in range(1, 60):
            assert host.swap(stem, rev, encode(a_record(launches=rev)))

    with ThreadPoolExecutor(1) as pool:
        writer = pool.submit(keep_changing)
        while not writer.done():
            assert [each.problem for each in host.read([AGENT_ID]).agents] == [""]
            assert len(host.read().agents) == 1
    writer.result()


def test_nothing_in_an_agents_folder_can_break_a_reading(host: Host) -> None:
    folder = Path(host.home, "agents", AGENT_ID)
    host.swap(record_stem(host.home, AGENT_ID), 0, encode(a_record()))
    (folder / "started").write_bytes(b"\xff\0{" * 1000)
    (folder / "exit").mkdir()
    (folder / "signals").symlink_to("/etc")
    (folder / "agent.x.json").write_bytes(b"?")
    (folder / "agent.-5.json").write_bytes(b"?")
    (Path(host.home, "agents", "agent-empty")).mkdir()
    (Path(host.home, "agents", "agent-file")).write_bytes(b"")
    (Path(host.home, "agents", "stray")).mkdir()
    (evidence,) = host.read().agents
    assert evidence.record == a_record()
    assert evidence.started is None and evidence.exit is None


def test_of_many_files_in_an_agents_folder_only_some_are_read(host: Host) -> None:
    stem = record_stem(host.home, AGENT_ID)
    other = record_stem(host.home, "agent-" + "b" * 32)
    for each in (stem, other):
        host.swap(each, 0, encode(a_record(id=each.split("/")[-2])))
    host.put(
        {f"{host.home}/agents/{AGENT_ID}/signals/S{n}.json": (b"{}", 0o600) for n in range(99)}
    )
    host.put({f"{stem}.{rev}.json": (b"{}", 0o600) for rev in range(2, 99)})
    agents = {each.id: each for each in host.read().agents}
    assert len(agents[AGENT_ID].signals) == CANDIDATES and agents[AGENT_ID].rev == 98
    assert [each.problem for each in agents.values() if each.id != AGENT_ID] == [""]


def test_of_many_hidden_signals_only_some_are_read(host: Host) -> None:
    host.swap(record_stem(host.home, AGENT_ID), 0, encode(a_record()))
    host.put(
        {f"{host.home}/agents/{AGENT_ID}/signals/.S{n}.json": (b"{}", 0o600) for n in range(99)}
    )
    (evidence,) = host.read().agents
    assert len(evidence.signals) <= CANDIDATES


@pytest.mark.parametrize(
    "bad", [b"", b"{", b"[]", b"{}", b'{"id":"agent-other"}', b"\xff\xfe", b"x" * (2 << 20)]
)
def test_a_bad_record_is_evidence_with_a_problem_and_hides_no_other(host: Host, bad: bytes) -> None:
    other = "agent-" + "b" * 32
    host.swap(record_stem(host.home, AGENT_ID), 0, bad)
    host.swap(record_stem(host.home, other), 0, encode(a_record(id=other)))
    agents = {each.id: each for each in host.read().agents}
    assert agents[AGENT_ID].record is None and agents[AGENT_ID].problem
    assert agents[other].record is not None


@pytest.mark.parametrize("bad", [b"", b"{", b"x" * (2 << 20), None])
def test_what_is_newer_than_a_good_record_and_is_none_does_not_take_over(
    host: Host, bad: bytes | None
) -> None:
    stem = record_stem(host.home, AGENT_ID)
    host.swap(stem, 0, encode(a_record()))
    for name in ("agent.99.json", "agent.1000000000000000000000.json", "agent.007.json"):
        path = Path(host.home, "agents", AGENT_ID, name)
        os.mkfifo(path) if bad is None else path.write_bytes(bad)
    (evidence,) = host.read().agents
    assert (evidence.record, evidence.rev) == (a_record(), 99)
    assert host.swap(stem, evidence.rev, encode(a_record(launches=2)))
    (evidence,) = host.read().agents
    assert (evidence.record, evidence.rev) == (a_record(launches=2), 100)
    assert current(host, stem) == (100, encode(a_record(launches=2)))


def test_argv_is_what_runs_it_from_here(host: Host) -> None:
    words = ["printf", "%s", "a b'c"]
    done = LocalHost("/nowhere").run(host.argv(words), timeout=10)
    assert done.stdout == b"a b'c"


def test_swap_makes_no_folder_that_is_gone_unless_it_creates(host: Host) -> None:
    stem = record_stem(host.home, AGENT_ID)
    assert not host.swap(stem, 3, b"a ghost")
    assert not os.path.exists(os.path.dirname(stem))
    assert host.swap(stem, 0, b"new")


def test_reading_no_agents_finds_none(host: Host) -> None:
    host.swap(record_stem(host.home, AGENT_ID), 0, encode(a_record()))
    assert host.read([]).agents == ()
    assert len(host.read().agents) == 1


def test_a_reader_that_loses_every_race_for_a_while_still_finds_the_agent(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    host = LocalHost(str(tmp_path))
    stem = record_stem(host.home, AGENT_ID)
    host.swap(stem, 0, encode(a_record()))
    listdir = os.listdir
    replaced = 0

    def outdated(path: str) -> list[str]:
        """As if the record had been replaced right after the listing, thirty times."""
        nonlocal replaced
        names = listdir(path)
        if path == os.path.dirname(stem) and replaced < 30:
            replaced += 1
            os.rename(f"{stem}.{replaced}.json", f"{stem}.{replaced + 1}.json")
        return names

    monkeypatch.setattr(os, "listdir", outdated)
    (evidence,) = host.read([AGENT_ID]).agents
    assert evidence.record is not None and replaced == 30


def test_a_record_that_cannot_be_caught_is_a_problem_and_not_absent(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    host = BareHost(str(tmp_path / "home"))
    host.swap(record_stem(host.home, AGENT_ID), 0, encode(a_record()))
    stub = tmp_path / "bin" / "tar"
    stub.parent.mkdir()
    stub.write_text("#!/bin/sh\nexit 1\n")
    stub.chmod(0o755)
    monkeypatch.setenv("PATH", f"{stub.parent}:{os.environ['PATH']}")
    (evidence,) = host.read().agents
    assert evidence.id == AGENT_ID and evidence.record is None and evidence.problem


def test_a_record_that_is_replaced_at_every_reading_is_called_changing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is not unreadable: another agent may be about to claim its name."""
    host = BareHost(str(tmp_path / "home"))
    stem = record_stem(host.home, AGENT_ID)
    host.swap(stem, 0, encode(a_record()))
    stub = tmp_path / "bin" / "tar"
    stub.parent.mkdir()
    stub.write_text(
        "#!/bin/sh\n"
        f"for file in {stem}.*.json; do\n"
        f"  rev=${{file#{stem}.}}; rev=${{rev%.json}}\n"
        f"  mv $file {stem}.$((rev + 1)).json\n"
        "done\nexit 1\n"
    )
    stub.chmod(0o755)
    monkeypatch.setenv("PATH", f"{stub.parent}:{os.environ['PATH']}")
    (evidence,) = host.read().agents
    assert (evidence.record, evidence.problem) == (None, CHANGING)
