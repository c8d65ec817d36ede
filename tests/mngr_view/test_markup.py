"""Escaping: every text remains text."""

from __future__ import annotations

from html.parser import HTMLParser

from hypothesis import given
from hypothesis import strategies as st

from mngr_view.markup import Html, cut, diff, el, join, link, plain, pre, shortened

texts = st.text(
    alphabet=st.one_of(st.characters(), st.sampled_from("<>&\"'\x1b[]\\\r\n\x00\u202e"))
)


class Seen(HTMLParser):
    """The elements and the text that a browser would find."""

    def __init__(self, source: str) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.attributes: list[tuple[str, str | None]] = []
        self.text = ""
        self.feed(source)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.attributes += attrs

    def handle_data(self, data: str) -> None:
        self.text += data


@given(texts)
def test_text_stays_text(text: str) -> None:
    seen = Seen(el("p", text))
    assert (seen.tags, seen.text) == (["p"], plain(text))


@given(texts)
def test_an_attribute_cannot_be_left(text: str) -> None:
    seen = Seen(el("p", "x", title=text))
    assert (seen.tags, seen.text) == (["p"], "x")
    assert [name for name, _ in seen.attributes] == ["title"]


@given(texts, texts)
def test_markup_with_text_added_is_text_again(one: str, two: str) -> None:
    """Forgetting to escape shows angle brackets to a reader; it never runs anything."""
    careless = el("b", one) + two
    assert not isinstance(careless, Html)
    assert Seen(el("p", careless)).tags == ["p"]


@given(texts)
def test_cleaned_text_steers_no_terminal_and_can_be_encoded(text: str) -> None:
    shown = plain(text)
    shown.encode()
    assert all(char in "\n\t" or char >= " " for char in shown)
    assert not set(shown) & set("\x1b\x7f\x9b\u202e\u2066")


@given(texts, st.integers(1, 50))
def test_what_is_shortened_is_one_line_and_short(text: str, limit: int) -> None:
    assert len(shortened(text, limit)) <= limit and "\n" not in shortened(text, limit)


def test_long_texts_and_long_lines_are_cut_and_say_so() -> None:
    assert "more characters" in cut("x" * 5000, 100_000)
    assert cut("short\nlines", 100) == "short\nlines"
    told = cut("line\n" * 1000, 100)
    assert len(told) < 200 and told.endswith("4,900 more characters")
    assert "7 more lines" in diff("\n".join("+x" for _ in range(10)), 3)


@given(texts)
def test_a_diff_shows_the_lines_it_was_given(text: str) -> None:
    seen = Seen(diff(text, 10_000))
    assert set(seen.tags) <= {"pre", "span"}
    assert seen.text == f"\n{cut(text, 400_000)}"


@given(texts.filter(bool))
def test_a_link_leads_only_into_the_report(name: str) -> None:
    [(_, where)] = Seen(link("x", "tests", name)).attributes
    assert where is not None and where.startswith("tests/")
    assert not set(where) & set("<>\"' \n:")


def test_parts_are_joined_without_losing_what_is_markup() -> None:
    assert join([el("b", 1), "<"], ", ") == "<b>1</b>, &lt;"
    assert pre("\nfirst") == "<pre>\n\nfirst</pre>"
