"""What the report of a run says, and how its folder is written."""

from __future__ import annotations

import json
import os
import re
import shutil
import threading
from argparse import Namespace
from dataclasses import replace
from pathlib import Path
from urllib.parse import unquote

import pytest

from mngr.errors import Refused
from mngr_e2e.artifacts import slug
from mngr_outcome.codec import to_json
from mngr_tmr.cli import working
from mngr_tmr.cli.progress import Progress
from mngr_tmr.journal.model import Ended, Outcome, Pick, Ruling, Verdict
from mngr_tmr.journal.proofs import Proof
from mngr_tmr.run import runs
from mngr_view import player, writing
from mngr_view.repository import RunRepository
from mngr_view.view import result
from mngr_view.writing import Live, Report, write
from tests.mngr_view.test_markup import Seen
from tests.support.cli import Cli
from tests.support.journals import SCRIPT, Story, node, task, whole_run

KNOWN = frozenset(
    "a b body br code col colgroup details div em h1 h2 h3 head html iframe input li link meta "
    "noscript p pre script section span summary table tbody td th thead title tr ul".split()
)


def read(page: Path) -> Seen:
    return Seen(page.read_text(encoding="utf-8"))


class Words(Seen):
    """The visible text of a page; separate elements are separated by blanks."""

    def handle_endtag(self, tag: str) -> None:
        self.text += (
            " " if tag in ("b", "div", "h2", "h3", "li", "p", "summary", "td", "th") else ""
        )


def words(page: Path) -> str:
    return " ".join(Words(page.read_text(encoding="utf-8")).text.split())


def test(report: Path, name: str) -> Path:
    return report / "tests" / f"{slug(node(name))}.html"


test.__test__ = False  # type: ignore[attr-defined]


def pages(report: Path) -> list[Path]:
    return sorted(report.rglob("*.html"))


def stamps(report: Path) -> dict[str, int]:
    files = [each for each in report.rglob("*") if each.is_file()]
    return {str(each.relative_to(report)): each.stat().st_mtime_ns for each in files}


# what it says


def test_the_first_page_counts_every_outcome_and_what_was_spent(report: Path) -> None:
    said = words(report / "index.html")
    for count in (
        *("1 blocked", "2 died", "1 evicted", "1 fixed", "1 improved", "1 refused", "2 skipped"),
        "1 timed out",
    ):
        assert count in said
    assert "12 tests collected · 11 selected" in said
    assert "On the branch: 3 of 4 failing tests pass, 1 test improved. To review it:" in said
    assert "To merge it: git merge tmr/night" in said
    assert "180,000 tokens · cost not known" in said
    assert "Forecast: 11 agents, 220,000 to 550,000 tokens, cost not known" in said


def test_failures_come_first_and_those_that_look_alike_together(report: Path) -> None:
    said = words(report / "index.html")
    alike = said.index("3 tests fail the same way: call: KeyError: 'day'")
    assert alike < said.index("Implementation fixes, best first (1) 1.")
    assert "fixed 1 skipped 2" in said
    assert "1 failure with a message of its own" in said


def test_a_repair_stands_there_with_its_reason_evidence_and_difference(report: Path) -> None:
    said = words(report / "index.html")
    repair = said[said.index("Implementation fixes, best") :]
    for told in ("1. Return the day", "score 13", f"agent tmr-night-{task(node('canary'))}-1"):
        assert told in repair
    evidence = "with its work pytest -- tests/test_notes.py"
    assert evidence in repair and "gate pytest --" in repair
    assert "- return day + return 'day'" in repair


def test_the_commit_of_tests_names_each_change_with_its_agent(report: Path) -> None:
    said = words(report / "index.html")
    changes = said[said.index("Test and documentation changes (1) Improve tests") :]
    agent = f"tmr-night-{task(node('improved'))}-1"
    assert f"tests/test_notes.py::test_improved {agent} Say more" in changes


def test_a_changed_expectation_stands_beside_its_block_and_flags_are_shown(tmp_path: Path) -> None:
    story = whole_run(tmp_path)
    commit = story.commit({"tests/test_notes.py": "changed = 1\n"}, "stale", story.base)
    verdict = Verdict(
        Ruling.ACCEPTED,
        "passes only because its expectation was changed",
        expectation=commit,
        block=f"# it says five {SCRIPT}",
        mutants="of 12 mutants the old tests killed 0",
        flags=(f"src/notes.py:2: return 'five' {SCRIPT} (names the test runner: pytest)",),
    )
    about = {"task": task(node("improved")), "try": 1}
    pick = Pick("expectation", (task(node("improved")),), commit, story.tree(commit), "Stale")
    story.tell(
        ("verdict", {**about, "verdict": to_json(verdict)}), ("picked", {"pick": to_json(pick)})
    )
    report = write(story.folder, tmp_path / "out").parent
    said = words(report / "index.html")
    assert "1 expectation changed" in said
    part = said[said.index("Changed expectations, for you to decide (1)") :]
    part = part[part.index("Stale") :]
    assert part.index("# it says five") < part.index("changed = 1")
    assert "src/notes.py:2: return 'five'" in part
    page = words(test(report, "improved"))
    assert "Measured: of 12 mutants" in page and "names the test runner: pytest" in page
    assert SCRIPT not in (report / "index.html").read_text()


def test_agents_that_need_a_person_say_why_and_what_to_type(report: Path) -> None:
    said = words(report / "index.html")
    wanted = said[said.index("Agents that require your help (4) Connect") :]
    assert "no lowdown" in wanted and "Requires: the program lowdown" in wanted
    assert f"mngr connect tmr-night-{task(node('blocked'))}-1" in wanted
    assert "died 2 agents" in wanted
    assert "mngr tmr integrate night" in wanted


def test_work_that_was_not_taken_has_its_reason_and_its_ref(report: Path) -> None:
    said = words(report / "index.html")
    left = said[said.index("Refused and evicted changes (2) Test") :]
    assert "refs/mngr/tmr/night/evicted/x/other" in left and "evicted other" in left
    assert "removed `expect(x)`" in left and "refs/mngr/tmr/night/refused/1" in left


def test_confusing_spots_and_alerts_are_collected(report: Path) -> None:
    said = words(report / "index.html")
    assert "Alert: 2 agents ended the same way: died" in said
    spots = said[said.index("Confusing spots (1) Command") :]
    assert "list by day" in spots and "it printed nothing red" in spots


def test_conflicts_added_tests_and_hosts_are_shown(tmp_path: Path) -> None:
    story = whole_run(tmp_path)
    about = {"task": task(node("refused")), "try": 1}
    ended = Ended(Outcome.FIXED, "published", tests_added=(f"{node('more')}{SCRIPT}",))
    refused = Verdict(Ruling.REFUSED, "it does not collect")
    host = {"host": "tmr-night-1", "provider": "folders", "agents": 3, "seconds": 90.0}
    story.tell(
        ("try_ended", {**about, "ended": to_json(ended)}),
        ("verdict", {**about, "verdict": to_json(refused)}),
        ("conflict", {"text": f"refused-1: NOTES.md {SCRIPT}"}),
        ("host_ended", host),
    )
    report = write(story.folder, tmp_path / "out").parent
    said = words(report / "index.html")
    assert "Conflicts between changes (1) refused-1: NOTES.md" in said
    assert "1 min 30 s of 1 host (tmr-night-1 1 min 30 s for 3 agents)" in said
    page = test(report, "refused")
    assert f"Added tests, as reported by the agent: {node('more')}" in words(page)
    assert SCRIPT not in page.read_text() + (report / "index.html").read_text()


def test_a_failure_that_is_expected_is_not_red() -> None:
    failed = Proof("any name", "pytest", 1)
    assert "badge bad" in result(failed)
    assert "badge quiet" in result(replace(failed, may_fail=True))


def test_the_page_of_a_test_tells_its_story(report: Path) -> None:
    said = words(test(report, "canary"))
    for told in (
        "Baseline: failed Result: fixed",
        "On the branch:",
        "Scope: only this.",
        "Run 2: failed 700 ms KeyError in call",
        "Attempt 1: tmr-night-",
        "1 min 35 s · 120,000 tokens · $0.42",
        "Verification: accepted",
        "without pytest --",
        "Implementation changes",
        "Verification, in a clean checkout with the change:",
        "The agent's run 20261116T000000Z-abcd",
        "# see them $ jot list",
        "Conversation, 5 turns",
        "Prompt 2026-11-16T00:00:00Z",
        "Uses Bash",
    ):
        assert told in said
    assert "No agent was started for this test: passes with the fix of" in words(
        test(report, "alike")
    )
    assert "not selected it passes" in words(test(report, "unselected"))
    assert "Commits of the agent" in words(test(report, "refused"))
    assert "Evicted (other): breaks" in words(test(report, "evicted"))


def test_the_block_a_test_cites_is_taken_from_its_source(tmp_path: Path) -> None:
    from mngr_tmr.journal.model import Test

    story = Story(tmp_path / "home/tmr/night", tmp_path / "repo")
    source = 'def test_list(e2e):\n    e2e.write_tutorial_block("""\n    jot --all\n    """)\n'
    story.base = story.commit({"tests/test_notes.py": source}, "a test")
    story.begin([Test(node("list"), "tests/test_notes.py")])
    assert "jot --all" in words(test(write(story.folder, tmp_path / "out").parent, "list"))


def test_a_run_that_goes_on_says_so_and_an_interrupted_one_what_to_type(tmp_path: Path) -> None:
    story = whole_run(tmp_path, finished=False)
    page = write(story.folder, tmp_path / "out")
    assert "night interrupted" in words(page) and "mngr tmr resume night" in words(page)
    from mngr_tmr.journal.journal import Journal

    with Journal(story.folder, lambda: 0.0):
        said = words(write(story.folder, tmp_path / "out"))
    assert "night agents at work" in said and "The run is in progress" in said
    assert "1 unfinished" in said


# hostile texts


def test_nothing_an_agent_says_becomes_markup(report: Path) -> None:
    for page in pages(report):
        seen = read(page)
        assert set(seen.tags) <= KNOWN, page
        assert not [name for name, _ in seen.attributes if name.startswith("on")], page
        ours = {"page.js", "../player/asciinema-player.min.js", "../player/start.js", None}
        sources = [value for name, value in seen.attributes if name == "src"]
        assert {each for each in sources if not str(each).startswith("../casts/")} <= ours


def test_no_page_holds_escapes_or_broken_characters(report: Path) -> None:
    for page in pages(report):
        text = page.read_bytes().decode("utf-8")  # it is valid
        assert not re.search(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e]", text), page


def test_very_long_lines_are_cut_and_no_page_is_huge(report: Path) -> None:
    said = test(report, "canary").read_text()
    assert "more characters" in said
    assert max(page.stat().st_size for page in pages(report)) < 200_000


def test_links_in_artifacts_are_not_followed(report: Path) -> None:
    everything = b"".join(each.read_bytes() for each in report.rglob("*") if each.is_file())
    assert b"root:x:0" not in everything
    assert len(list((report / "casts").glob("*.cast"))) == 1


def test_every_link_leads_to_a_file_of_the_report(report: Path) -> None:
    for page in pages(report):
        targets = [v for name, v in read(page).attributes if name in ("href", "src") and v]
        for target in targets:
            path, _, anchor = target.partition("#")
            found = (page.parent / unquote(path)).resolve() if path else page
            assert found.is_file(), f"{page}: {target}"
            assert found.is_relative_to(report.resolve())
            if anchor:
                assert f'id="{anchor}"' in found.read_text(), f"{page}: {target}"


def test_a_repository_and_artifacts_that_are_gone_leave_the_rest(tmp_path: Path) -> None:
    story = whole_run(tmp_path)
    shutil.rmtree(tmp_path / "repo")
    shutil.rmtree(story.folder / "artifacts")
    shutil.rmtree(story.folder / "checks")
    page = write(story.folder, tmp_path / "out")
    assert "1. Return the day" in words(page)
    assert "Verification: accepted" in words(test(page.parent, "canary"))


def test_gigabytes_in_a_commit_do_not_enter_a_page(tmp_path: Path) -> None:
    story = whole_run(tmp_path)
    files = {f"big/{n}": f"{n}\n" * 300_000 for n in range(3)}
    head = story.commit({**files, "huge": "x\n" * 600_000}, "big", story.base)
    ended = Ended(Outcome.NO_RESULT, "idle", head=head, ref="refs/mngr/tmr/night/big/1")
    about = {"task": task(node("working")), "try": 1}
    story.tell(("try_ended", {**about, "ended": to_json(ended)}))
    page = test(write(story.folder, tmp_path / "out").parent, "working")
    assert "Commits of the agent" in words(page)
    assert page.stat().st_size < 600_000
    assert len(RunRepository(str(story.repo)).diff(story.base, head)) <= 400_000


# the folder


def test_pages_that_did_not_change_are_not_written_again(tmp_path: Path) -> None:
    story = whole_run(tmp_path, finished=False)
    report = Report(story.folder, tmp_path / "out")
    report.update()
    before = stamps(tmp_path / "out")
    report.update()
    assert stamps(tmp_path / "out") == before
    about = {"task": task(node("working")), "try": 1}
    story.tell(("try_ended", {**about, "ended": to_json(Ended(Outcome.DIED, "gone"))}))
    report.update()
    after = stamps(tmp_path / "out")
    changed = {name for name in after if after[name] != before.get(name)}
    assert changed == {"index.html", f"tests/{slug(node('working'))}.html"}
    assert "gone" in words(tmp_path / "out/index.html")
    Report(story.folder, tmp_path / "out").update()  # another process, the same folder
    assert stamps(tmp_path / "out") == after


def test_a_line_that_is_being_written_is_read_when_it_is_whole(tmp_path: Path) -> None:
    story = whole_run(tmp_path, finished=False)
    report = Report(story.folder, tmp_path / "out")
    report.update()
    line = json.dumps({"type": "alert", "time": story.now, "text": "late news"}).encode()
    journal = story.folder / "journal.jsonl"
    with journal.open("ab", buffering=0) as file:
        file.write(line[:20])
        assert "late news" not in words(report.update())
        file.write(line[20:] + b"\n")
        assert "late news" in words(report.update())


def test_a_reader_never_sees_half_a_page(tmp_path: Path) -> None:
    story = whole_run(tmp_path, finished=False)
    page = write(story.folder, tmp_path / "out")
    halves, stop = [], threading.Event()

    def look() -> None:
        while not stop.is_set():
            text = page.read_text()
            if not text.endswith("</html>\n"):
                halves.append(text)

    reader = threading.Thread(target=look)
    reader.start()
    try:
        report = Report(story.folder, tmp_path / "out")
        for number in range(40):
            story.tell(("alert", {"text": f"alert {number} " * (1 + 50 * (number % 3))}))
            report.update()
    finally:
        stop.set()
        reader.join()
    assert not halves
    assert not [each for each in (tmp_path / "out").rglob(".*") if each.name != ".mngr-report"]


def test_a_folder_with_other_things_in_it_is_refused(story: Story, tmp_path: Path) -> None:
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine/thesis.txt").write_text("mine")
    with pytest.raises(Refused, match="not empty"):
        write(story.folder, tmp_path / "mine")
    assert os.listdir(tmp_path / "mine") == ["thesis.txt"]


def test_without_the_player_a_recording_is_a_file(
    story: Story, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(player, "PACKAGE", "no_such_package_here")
    report = write(story.folder, tmp_path / "out").parent
    assert "Recording: 0<b>.cast" in words(test(report, "canary"))
    assert not (report / "player").exists() and "iframe" not in read(test(report, "canary")).tags


# while a run is in progress


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    now = [1000.0]
    monkeypatch.setattr(writing, "monotonic", lambda: now[0])
    return now


def test_a_live_report_is_renewed_every_few_seconds(tmp_path: Path, clock: list[float]) -> None:
    story = whole_run(tmp_path, finished=False)
    live = Live(story.folder, tmp_path / "out")
    live.show()
    story.tell(("alert", {"text": "something new"}))
    live.show()
    assert "something new" not in words(tmp_path / "out/index.html")
    clock[0] += 5.0
    live.show()
    assert "something new" in words(tmp_path / "out/index.html")


def test_a_report_that_cannot_be_written_does_not_end_the_run(tmp_path: Path) -> None:
    story = whole_run(tmp_path, finished=False)
    (tmp_path / "out").write_text("a file where the folder should be")
    live = Live(story.folder, tmp_path / "out")
    live.show()
    assert live.problem


def test_a_run_at_work_keeps_its_report(tmp_path: Path) -> None:
    story = whole_run(tmp_path, finished=False)
    run = runs.load(story.folder)
    progress = Progress(Namespace(quiet=True, headless=True, format="human"), run)
    working._watching(progress, story.folder)(run)
    assert "2 died" in words(story.folder / "report/index.html")


# the command


def test_the_command_writes_the_report_and_names_the_page(local: Cli, story: Story) -> None:
    shutil.copytree(story.folder, local.controller_home / "tmr/night", symlinks=True)
    done = local("tmr", "report", "night", "--format", "json").ok().json()
    assert done["page"] == str(local.controller_home / "tmr/night/report/index.html")
    assert SCRIPT in words(Path(done["page"]))
    out = local.base / "else where"
    assert local("tmr", "report", "--out", str(out)).ok().out == f"{out / 'index.html'}\n"
    assert "night done" in words(out / "index.html")
    local("tmr", "report", "--out", str(local.repo)).fails(1, "not a report")
    local("tmr", "report", "nigth").fails(4, "'night'")
