"""The command line: parse the arguments, run one command, print the result."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence
from dataclasses import replace
from datetime import date, datetime
from pathlib import Path

from jot import __version__, formats, notes
from jot.errors import JotError
from jot.store import Store, home, numbered, write_out


def add(store: Store, args: argparse.Namespace) -> int:
    text = (sys.stdin.read() if args.text == ["-"] else " ".join(args.text)).strip()
    if not text:
        raise JotError("a note needs some text")
    day = args.date or datetime.now().astimezone().date()
    with store.change() as kept:
        note = notes.Note(notes.next_number(kept), text, day, notes.clean_tags(args.tag))
        kept.append(note)
    print(f"added note {note.number}")
    return 0


def list_notes(store: Store, args: argparse.Namespace) -> int:
    found = notes.between(store.read(), args.since, args.until)
    if args.tag:
        found = notes.with_tag(found, args.tag)
    if args.last is not None:
        found = notes.newest(found, args.last)
    write = formats.as_json if args.json else formats.as_list
    sys.stdout.write(write(found))
    return 0


def search(store: Store, args: argparse.Namespace) -> int:
    """Print matching notes; like grep, return 1 if there are none."""
    found = notes.matching(store.read(), args.words, some=args.any)
    if args.count:
        print(len(found))
    else:
        sys.stdout.write(formats.as_list(found))
    return 0 if found else 1


def tag(store: Store, args: argparse.Namespace) -> int:
    if args.number is None and args.remove:
        raise JotError("which note? Put its number first")
    if args.number is None:
        for name, count in notes.tag_counts(store.read()):
            print(f"{count:>3} {name}")
        return 0
    if not args.tags and not args.remove:
        raise JotError(f"which tag? Try `jot tag {args.number} home`")
    with store.change() as kept:
        note = notes.untagged(notes.find(kept, args.number), notes.clean_tags(args.remove))
        note = notes.tagged(note, args.tags)
        kept[:] = notes.replaced(kept, note)
    print(f"note {note.number}: {' '.join(formats.hashes(note)) or 'no tags'}")
    return 0


def edit(store: Store, args: argparse.Namespace) -> int:
    from jot.editor import edited  # imports subprocess and tempfile, which no other command uses

    # The editor may stay open for hours, so the notes are not locked meanwhile.
    before = notes.find(store.read(), args.number)
    text = " ".join(args.text).strip() if args.text else edited(before.text)
    if not text:
        raise JotError("a note needs some text; use `jot remove` to drop it")
    if text == before.text:
        print(f"note {args.number} is unchanged")
        return 0
    with store.change() as kept:
        note = notes.find(kept, args.number)
        kept[:] = notes.replaced(kept, replace(note, text=text))
    print(f"changed note {args.number}")
    return 0


def remove(store: Store, args: argparse.Namespace) -> int:
    with store.change() as kept:
        gone = [notes.find(kept, number) for number in args.numbers]
        kept[:] = [note for note in kept if note not in gone]
    for note in gone:
        print(f"removed note {note.number}: {note.title()}")
    return 0


def export(store: Store, args: argparse.Namespace) -> int:
    found = store.read()
    if args.tag:
        found = notes.with_tag(found, args.tag)
    text = formats.FORMATS[args.format](found)
    if args.output is None:
        sys.stdout.write(text)
    else:
        write_out(args.output, text)
        print(f"wrote {len(found)} notes to {args.output}")
    return 0


def import_notes(store: Store, args: argparse.Namespace) -> int:
    name = str(args.file)
    text = sys.stdin.read() if name == "-" else args.file.read_text(encoding="utf-8")
    incoming = formats.parse(text, "stdin" if name == "-" else name)
    with store.change() as kept:
        fresh = notes.not_yet_in(kept, incoming)
        if not args.dry_run:
            kept.extend(numbered(fresh, notes.next_number(kept)))
    said = "would import" if args.dry_run else "imported"
    print(f"{said} {len(fresh)} notes, {len(incoming) - len(fresh)} already here")
    return 0


def day(text: str) -> date:
    try:
        return notes.parse_day(text)
    except JotError as error:
        raise argparse.ArgumentTypeError(str(error)) from None


def count(text: str) -> int:
    if not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"{text} is not a number from 1 up")
    return int(text)


def parser() -> argparse.ArgumentParser:
    top = argparse.ArgumentParser(prog="jot", description="Keep short notes.", allow_abbrev=False)
    top.add_argument("--version", action="version", version=f"jot {__version__}")
    commands = top.add_subparsers(title="commands", metavar="COMMAND", required=True)

    sub = commands.add_parser("add", help="add a note")
    sub.set_defaults(run=add)
    sub.add_argument("text", nargs="+", help="the note, or - to read it from stdin")
    sub.add_argument("-t", "--tag", action="append", default=[], help="give it a tag; repeatable")
    sub.add_argument("--date", type=day, metavar="DAY", help="the day it belongs to, not today")

    sub = commands.add_parser("list", help="show notes, one per line")
    sub.set_defaults(run=list_notes)
    sub.add_argument("-t", "--tag", help="only those with this tag")
    sub.add_argument("--since", type=day, metavar="DAY", help="only from this day on")
    sub.add_argument("--until", type=day, metavar="DAY", help="only up to this day")
    sub.add_argument("-n", "--last", type=count, metavar="N", help="only the newest N")
    sub.add_argument("--json", action="store_true", help="as JSON, with the whole text")

    sub = commands.add_parser("search", help="find notes by their words")
    sub.set_defaults(run=search)
    sub.add_argument("words", nargs="+", help="words that must all occur, in any case and order")
    sub.add_argument("--any", action="store_true", help="one of the words is enough")
    sub.add_argument("-c", "--count", action="store_true", help="only print the number of notes")

    sub = commands.add_parser("tag", help="tag a note, or show all tags")
    sub.set_defaults(run=tag)
    sub.add_argument("number", nargs="?", type=count, help="the note")
    sub.add_argument("tags", nargs="*", metavar="tag")
    sub.add_argument("--remove", action="append", default=[], metavar="TAG", help="remove a tag")

    sub = commands.add_parser("edit", help="change a note's text")
    sub.set_defaults(run=edit)
    sub.add_argument("number", type=count, help="the note")
    sub.add_argument("text", nargs="*", help="the new text; without it $EDITOR opens")

    sub = commands.add_parser("remove", help="remove notes")
    sub.set_defaults(run=remove)
    sub.add_argument("numbers", nargs="+", type=count, metavar="number")

    sub = commands.add_parser("export", help="write all notes for another program")
    sub.set_defaults(run=export)
    sub.add_argument("-f", "--format", choices=list(formats.FORMATS), default="jsonl")
    sub.add_argument("-t", "--tag", help="only those with this tag")
    sub.add_argument("-o", "--output", type=Path, metavar="FILE", help="instead of stdout")

    sub = commands.add_parser("import", help="import notes that export wrote")
    sub.set_defaults(run=import_notes)
    sub.add_argument("file", type=Path, help="a jsonl or json file, or - for stdin")
    sub.add_argument("--dry-run", action="store_true", help="only show what would change")
    return top


def main(argv: Sequence[str] | None = None) -> int:
    args = parser().parse_args(argv)
    try:
        status: int = args.run(Store(home()), args)
        sys.stdout.flush()
    except JotError as error:
        print(f"jot: {error}", file=sys.stderr)
        return 1
    except BrokenPipeError:
        # Otherwise Python would report stdout again at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except UnicodeError:
        print("jot: this is not UTF-8 text; nothing was changed", file=sys.stderr)
        return 1
    except OSError as error:
        print(f"jot: {error.filename or 'stdout'}: {error.strerror}", file=sys.stderr)
        return 1
    return status
