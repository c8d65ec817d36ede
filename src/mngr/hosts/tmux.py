"""The only module that builds tmux's argv. Everything runs on mngr's own server.

Targets are `=name` (a bare name matches by prefix and may select the wrong agent) or pane ids.
"""

from __future__ import annotations

import zlib

from mngr.model import quoting
from mngr.model.state import Pane

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

MINIMUM = (3, 2)

CONF = """\
# Written by mngr for its own server. Put your settings for it into tmux.user.conf beside this file.
set -g update-environment ""
set -g remain-on-exit on
set -gq remain-on-exit-format ""
set -g default-terminal "screen-256color"
# tmux takes 24-bit colours and reduces them for a terminal that has fewer.
set-environment -g COLORTERM truecolor
set -g history-limit {history}
# With `latest`, a new agent gets the size of the client of another agent. `manual` crashes tmux
# 3.3a.
set -g default-size {width}x{height}
set -g window-size smallest
set -g focus-events on
set -g mouse on
set -g escape-time 10
set -g set-titles on
set -g set-titles-string "#{{?@mngr_name,#{{@mngr_name}},#S}}"
set -g status-left-length 64
set -g status-left "[#{{?@mngr_name,#{{@mngr_name}},#S}}] "
set -g status-right-length 90
set -g status-interval 2
# Otherwise an ended program looks like a busy one. An outer tmux reports its terminal type, and may
# use the same prefix.
set -g status-right "#{{?pane_dead,the program has ended; ,}}detach: #{{prefix}} d\
#{{?#{{m:tmux*,#{{client_termtype}}}}, (#{{prefix}} #{{prefix}} d if your tmux uses #{{prefix}}),}}"
source-file -q "{home}/tmux.user.conf"
"""


def socket_path(home: str, uid: int) -> str:
    """Return a short socket path, one per home: it is limited to about 104 bytes."""
    raw = home.encode("utf-8", "surrogateescape")
    return f"/tmp/mngr-{uid}/{zlib.crc32(raw):08x}{zlib.crc32(raw[::-1]):08x}"


def conf(home: str, width: int, height: int, history: int) -> bytes:
    text = CONF.format(home=home.replace('"', '\\"'), width=width, height=height, history=history)
    return text.encode("utf-8", "surrogateescape")


def command(socket: str, *args: str) -> list[str]:
    return ["tmux", "-u", "-S", socket, *args]


PANE_FIELDS = (
    "session_name pane_id pane_pid pane_dead pane_dead_time pane_dead_status pane_tty "
    "window_activity =200:pane_title window_name"
).split()


def list_panes(socket: str) -> list[str]:
    return command(socket, "list-panes", "-a", "-F", _format(PANE_FIELDS))


def _format(fields: Sequence[str]) -> str:
    return "\t".join("#{" + field + "}" for field in fields)


def parse_panes(text: str) -> dict[str, list[Pane]]:
    """Return panes by session; the window name is last because it may contain a tab."""
    panes: dict[str, list[Pane]] = {}
    for row in text.split("\n"):  # a title may contain characters that Python treats as line ends
        parts = row.split("\t", len(PANE_FIELDS) - 1)
        if len(parts) == len(PANE_FIELDS):
            session, pane_id, pid, dead, dead_time, code, tty, activity, title, window = parts
            pane = Pane(
                session=session,
                pane_id=pane_id,
                pid=int(pid or 0),
                dead=dead == "1",
                dead_time=float(dead_time or 0),
                code=int(code) if code else None,
                tty=tty,
                activity=float(activity or 0),
                title=title,
                window=window,
            )
            panes.setdefault(session, []).append(pane)
    return panes


def uncollected(panes: Mapping[str, Sequence[Pane]]) -> bool:
    """Return whether a pane is dead and tmux has no exit status for it; see COLLECT."""
    each = (pane for found in panes.values() for pane in found)
    return any(pane.dead and not pane.dead_time and pane.code is None for pane in each)


def capture(socket: str, pane: str, *, full: bool, ansi: bool) -> list[str]:
    options = [*(["-e"] if ansi else []), *(["-S", "-"] if full else [])]
    return command(socket, "capture-pane", "-p", "-J", *options, "-t", pane)


def attach(
    socket: str, session: str, *, read_only: bool = False, true_colour: bool = False
) -> list[str]:
    """Return the attach command; `true_colour`: the terminal shows 24-bit colours."""
    words = command(socket, "attach-session", *(["-r"] if read_only else []), "-t", f"={session}")
    return [words[0], "-T", "RGB", *words[1:]] if true_colour else words


def list_clients(socket: str, session: str) -> list[str]:
    return command(socket, "list-clients", "-t", f"={session}", "-F", "#{client_name}")


def switch_client(socket: str, client: str, session: str) -> list[str]:
    return command(socket, "switch-client", "-c", client, "-t", f"={session}")


def set_name(socket: str, session: str, name: str) -> list[str]:
    return command(socket, "set-option", "-q", "-t", f"={session}:", "@mngr_name", name)


def list_sessions(socket: str) -> list[str]:
    return command(socket, "list-sessions", "-F", "#{session_name}")


def kill_session(socket: str, session: str) -> list[str]:
    return command(socket, "kill-session", "-t", f"={session}")


def paste(socket: str, pane: str, buffer: str) -> list[str]:
    """Load stdin and paste it unless the pane is dead, in one call so it cannot die in between.

    Pasting into a dead pane crashes tmux 3.3a and every agent with it; copy-mode would swallow the
    keys. Prints `pasted` or `dead`.
    """
    target = quoting.quote(pane)
    live = f"copy-mode -q -t {target} ; paste-buffer -p -d -b {buffer} -t {target}"
    return command(
        socket,
        *("load-buffer", "-b", buffer, "-", ";"),
        *("if-shell", "-F", "-t", pane, "#{pane_dead}"),
        f"delete-buffer -b {buffer} ; display-message -p dead",
        f"{live} ; display-message -p pasted",
    )


def press(socket: str, pane: str, keys: Sequence[str]) -> list[str]:
    """Press keys by tmux's names for them. Prints `pressed` or `dead`."""
    target = quoting.quote(pane)
    words = quoting.join(keys)
    return command(
        socket,
        *("if-shell", "-F", "-t", pane, "#{pane_dead}", "display-message -p dead"),
        f"copy-mode -q -t {target} ; send-keys -t {target} {words} ; display-message -p pressed",
    )


def background(socket: str, argv: Sequence[str]) -> list[str]:
    """Run a command on the host as a child of the server, so that it survives the call."""
    # tmux would show its output in place of an agent's screen.
    words = f"{quoting.join(argv)} < /dev/null > /dev/null 2>&1"
    return command(socket, "run-shell", "-b", words.replace("#", "##"))


def new_session(
    session: str,
    name: str,
    launch: str,
    work_dir: str,
    argv: Sequence[str],
    *,
    size: tuple[int, int],
    windows: Sequence[tuple[str, Sequence[str]]],
    pipe_to: str,
) -> list[str]:
    """Return the words after `tmux`: the session, its windows and options, then a list of panes.

    One call runs in one turn of the server's loop, so the pipe gets every byte of output, and a
    fast command does not end before its windows exist.
    """
    width, height = size
    words = [
        *("new-session", "-d", "-P", "-F", "#{pid}", "-s", session, "-n", "agent"),
        *("-x", str(width), "-y", str(height), "-c", work_dir, "--", *_plain(argv)),
        *(";", "set-option", "-q", "-t", f"={session}:", "@mngr_name", name),
        *(";", "set-option", "-q", "-t", f"={session}:", "@mngr_launch", launch),
    ]
    words += [";", "pipe-pane", "-t", f"={session}:agent", _plain([pipe_to])[0]]
    for title, window_argv in windows:
        words += [";", "new-window", "-d", "-t", f"={session}:", "-n", title, "-c", work_dir]
        words += ["--", *_plain(window_argv)]
    return [*words, ";", "list-panes", "-s", "-t", f"={session}:", "-F", _format(PANE_FIELDS)]


def _plain(argv: Sequence[str]) -> list[str]:
    """Escape words that end in `;`, which tmux would treat as a separator."""
    return [word[:-1] + "\\;" if word.endswith(";") else word for word in argv]
