"""Convert screens of a terminal, from `tmux capture-pane -e`, to one animated SVG."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from html import escape

CELL, LINE, MARGIN, TOP = 8.4, 18, 14, 34
SECONDS = 3.5
"""How long a frame is shown; the last one of the loop twice as long."""
TYPED = ' fill="#ffffff" font-weight="bold"'
BACK, FRONT = "#1c1f26", "#d8dee9"
COLOURS = (
    *("#3b4252", "#e06c75", "#98c379", "#e5c07b", "#61afef", "#c678dd", "#56b6c2", "#d8dee9"),
    *("#7f8899", "#ff8b92", "#b5e890", "#ffd68a", "#82c4ff", "#e29bf2", "#79d8e3", "#ffffff"),
)
SGR = re.compile(r"\x1b\[([0-9;]*)m|\x1b[()][A-Z0-9]|[\x0e\x0f]")


@dataclass(frozen=True)
class Frame:
    """One screen, with its escape sequences."""

    screen: str


@dataclass(frozen=True)
class Style:
    colour: str = ""
    bold: bool = False
    dim: bool = False


def text_of(frame: Frame) -> str:
    """Return the text of the screen, without colours and the empty lines below."""
    return SGR.sub("", frame.screen).rstrip()


def runs(line: str, style: Style) -> tuple[list[tuple[int, str, Style]], Style]:
    """Return (column, text, style) of each part with one style, and the last style."""
    found: list[tuple[int, str, Style]] = []
    column, at = 0, 0
    for match in [*SGR.finditer(line), None]:
        text = line[at : match.start() if match else len(line)]
        if text.strip():
            found.append((column, text, style))
        column += len(text)
        if match is not None:
            at = match.end()
            style = _styled(style, match[1]) if match[1] is not None else style
    return found, style


def _styled(style: Style, codes: str) -> Style:
    numbers = [int(code or 0) for code in codes.split(";")]
    while numbers:
        code = numbers.pop(0)
        if code == 0:
            style = Style()
        elif code == 1:
            style = replace(style, bold=True)
        elif code == 2:
            style = replace(style, dim=True)
        elif code == 22:
            style = replace(style, bold=False, dim=False)
        elif code == 39:
            style = replace(style, colour="")
        elif 30 <= code <= 37 or 90 <= code <= 97:
            style = replace(style, colour=COLOURS[code - 30 if code < 40 else code - 82])
        elif code == 38 and numbers[:1] == [5]:
            style, numbers = replace(style, colour=_indexed(numbers[1])), numbers[2:]
        elif code == 38 and numbers[:1] == [2]:
            style, numbers = replace(style, colour=_rgb(numbers[1:4])), numbers[4:]
    return style


def _indexed(number: int) -> str:
    if number < 16:
        return COLOURS[number]
    if number > 231:
        return "#" + f"{8 + 10 * (number - 232):02x}" * 3
    number -= 16
    levels = [
        0 if part == 0 else 55 + 40 * part for part in (number // 36, number // 6 % 6, number % 6)
    ]
    return _rgb(levels)


def _rgb(parts: list[int]) -> str:
    return "#" + "".join(f"{part:02x}" for part in parts)


def _drawn(frame: Frame) -> str:
    lines, style = [], Style()
    for row, line in enumerate(frame.screen.rstrip().split("\n")):
        pieces, style = runs(line.rstrip(), style)
        for column, text, how in pieces:
            # Viewers may collapse spaces, so words that are apart are drawn separately.
            lines += [
                _piece(row, column + words.start(), words[0], how)
                for words in re.finditer(r"\S+(?: \S+)*", text)
            ]
    return "\n".join(lines)


def _piece(row: int, column: int, text: str, style: Style) -> str:
    """Return one piece of text with an explicit width, so that columns align in any font."""
    x, y = MARGIN + column * CELL, TOP + (row + 1) * LINE
    look = f' fill="{style.colour}"' if style.colour else ""
    look += ' font-weight="bold"' if style.bold else ""
    look += ' opacity="0.6"' if style.dim else ""
    if column == 0 and text.startswith("$ "):  # typed commands, and comments among them
        look += ' opacity="0.6"' if text.startswith("$ #") else TYPED
    size = f'textLength="{len(text) * CELL:.1f}" lengthAdjust="spacingAndGlyphs"'
    return f'<text x="{x:.1f}" y="{y}" {size}{look}>{escape(text)}</text>'


def svg(frames: list[Frame], width: int, height: int, title: str, text: str) -> str:
    """Return the SVG, which repeats all frames; with reduced motion only the last is shown."""
    wide, high = width * CELL + 2 * MARGIN, TOP + height * LINE + MARGIN
    total = SECONDS * (len(frames) + 1)
    style, groups = [], []
    for number, frame in enumerate(frames):
        begin = 100 * SECONDS * number / total
        end = 100.0 if number == len(frames) - 1 else 100 * SECONDS * (number + 1) / total
        steps = [] if number == 0 else ["0%{opacity:0}"]
        steps += [f"{begin:.3f}%{{opacity:1}}", f"{end:.3f}%{{opacity:{int(end == 100.0)}}}"]
        steps += [] if end == 100.0 else ["100%{opacity:0}"]
        style.append(f"@keyframes f{number}{{{''.join(steps)}}}")
        style.append(f".f{number}{{opacity:0;animation:f{number} {total:g}s step-end infinite}}")
        groups.append(f'<g class="f{number}">\n{_drawn(frame)}\n</g>')
    still = f".f{len(frames) - 1}{{animation:none;opacity:1}}"
    style.append(f"@media (prefers-reduced-motion:reduce){{g[class]{{animation:none}}{still}}}")
    dots = "".join(
        f'<circle cx="{MARGIN + 6 + 20 * n}" cy="17" r="6" fill="{colour}"/>'
        for n, colour in enumerate(("#ff5f57", "#febc2e", "#28c840"))
    )
    return "\n".join(
        [
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {wide:g} {high:g}"',
            f'width="{wide:g}" height="{high:g}" role="img" fill="{FRONT}"',
            'font-family="ui-monospace,SFMono-Regular,Menlo,Consolas,monospace" font-size="14">',
            f"<title>{escape(title)}</title>",
            f"<desc>\n{escape(text)}\n</desc>",
            "<style>",
            *style,
            "</style>",
            f'<rect width="100%" height="100%" rx="8" fill="{BACK}"/>',
            dots,
            *groups,
            "</svg>\n",
        ]
    )
