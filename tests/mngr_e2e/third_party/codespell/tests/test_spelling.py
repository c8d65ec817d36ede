"""The tutorial of codespell."""

from __future__ import annotations

from mngr_e2e import E2eSession, expect, soft


class TestFinding:
    def test_what_is_wrong(self, e2e: E2eSession) -> None:
        e2e.write_tutorial_block("""
        # what is wrong here?
        codespell notes.txt || echo "exit code $?"
        """)
        result = e2e.run(
            'codespell notes.txt || echo "exit code $?"', comment="what is wrong here?"
        )
        with soft():
            expect(result.stdout).to_start_with("notes.txt:1: teh ==> the\n")
            expect(result.stdout).to_contain("notes.txt:2: recieved ==> received")
            expect(result.stdout).to_end_with("exit code 65\n")

    def test_standard_input(self, e2e: E2eSession) -> None:
        e2e.write_tutorial_block("""
        # a word that just came to mind
        echo "the end of teh day" | codespell -
        """)
        result = e2e.run('echo "the end of teh day" | codespell -')
        expect(result).to_have_exit_code(65)
        expect(result.stdout).to_contain("teh ==> the")

    def test_a_count(self, e2e: E2eSession) -> None:
        e2e.write_tutorial_block("""
        # how many are there?
        codespell --count notes.txt
        """)
        expect(e2e.run("codespell --count notes.txt").stderr).to_equal("3\n")

    def test_context(self, e2e: E2eSession) -> None:
        e2e.write_tutorial_block("""
        # each with a line before and after it
        codespell --context 1 notes.txt
        """)
        said = e2e.run("codespell --context 1 notes.txt").stdout
        expect(said).to_contain(": teh cat sat\n> on recieved mats\n: abandonned\n")

    def test_a_folder(self, e2e: E2eSession) -> None:
        e2e.write_tutorial_block("""
        # a whole folder, but for some files
        codespell --skip '*.min.js' src
        """)
        result = e2e.run("codespell --skip '*.min.js' src")
        expect(result.stdout).to_equal("src/post.c:1: adress ==> address\n")


class TestMeaningIt:
    def test_a_word_is_right(self, e2e: E2eSession) -> None:
        e2e.write_tutorial_block("""
        # a word that is right here
        codespell --ignore-words-list teh notes.txt
        """)
        result = e2e.run("codespell --ignore-words-list teh notes.txt")
        expect(result.stdout).to_have_line_count(2).not_to_contain("teh")

    def test_words_of_ones_own(self, e2e: E2eSession) -> None:
        e2e.write_tutorial_block("""
        # words of your own, beside those it knows
        echo "colr->colour" > mine.txt
        echo "teh colr" | codespell --dictionary mine.txt --dictionary - -
        """)
        e2e.run('echo "colr->colour" > mine.txt')
        result = e2e.run('echo "teh colr" | codespell --dictionary mine.txt --dictionary - -')
        expect(result.stdout).to_contain("colr ==> colour")
        expect(result.stdout).to_contain("teh ==> the")

    def test_a_settings_file(self, e2e: E2eSession) -> None:
        e2e.write_tutorial_block(r"""
        # the same for everybody: say it in a file
        printf '[codespell]\nignore-words-list = teh\n' > setup.cfg
        codespell notes.txt
        """)
        e2e.run(r"printf '[codespell]\nignore-words-list = teh\n' > setup.cfg")
        result = e2e.run("codespell notes.txt")
        expect(result.stdout).to_match("recieved").not_to_match("teh")


class TestRepairing:
    def test_all_at_once(self, e2e: E2eSession) -> None:
        e2e.write_tutorial_block("""
        # put all of it right
        codespell --write-changes notes.txt
        """)
        expect(e2e.run("codespell --write-changes notes.txt")).to_succeed()
        expect(e2e.work / "notes.txt").to_have_content("the cat sat\non received mats\nabandoned\n")

    def test_one_by_one(self, e2e: E2eSession) -> None:
        """On a terminal, as a person would."""
        e2e.write_tutorial_block("""
        # be asked about each
        codespell --interactive 1 --write-changes src/post.c
        """)
        asks = e2e.start("codespell --interactive 1 --write-changes src/post.c", pty=True)
        asks.wait_for_output("(Y/n)")
        asks.type("y\r")
        assert asks.wait() == 0
        expect(e2e.work / "src/post.c").to_have_content("address = 1\n")
