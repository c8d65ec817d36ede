"""When a quota is reset, from the words of an agent's program. Pure.

Known forms: `2026-03-06T14:00:00Z`, seconds since 1970, `14:00 (UTC)`, `1:07 AM`,
`Mar 6, 14:00 (Europe/Berlin)`, `Mar 6 at 2pm`, `Mar 6th, 2026 1:07 AM`, `Mar 6`, `Monday 9am`.
"""

from __future__ import annotations

import datetime
import re
import zoneinfo

MOMENT = re.compile(r"\d{4}-\d\d-\d\dT[\d:.]+Z?|\d{10}(?:\.\d+)?")
TIME = re.compile(r"\b(\d\d?)(?::([0-5]\d))?(?: ?([ap])m)?\b", re.IGNORECASE)
ZONE = re.compile(r"\(([\w/+-]+)\)")
MONTHS = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
DATE = re.compile(
    rf"\b({'|'.join(MONTHS)})[a-z]{{0,6}} (\d\d?)(?:st|nd|rd|th)?\b(?:,? (20\d\d)\b)?",
    re.IGNORECASE,
)
WEEKDAYS = ("mon", "tue", "wed", "thu", "fri", "sat", "sun")
WEEKDAY = re.compile(
    r"\b(?:mon|tues?|wed(?:nes)?|thu(?:rs)?|fri|sat(?:ur)?|sun)(?:day)?\b", re.IGNORECASE
)
JUST_PASSED = datetime.timedelta(minutes=10)
"""A time of day that passed less than this ago is today's, not tomorrow's."""
MIDNIGHT = datetime.time()


def stated_reset(words: str, now: float) -> float:
    """Return the stated moment in seconds since 1970; 0 if there is none."""
    found = [_moment(word) for word in MOMENT.findall(words)]
    return next((each for each in found if each), 0.0) or _on_calendar(words, now)


def _moment(word: str) -> float:
    """Parse an ISO time, or seconds since 1970."""
    if "T" not in word:
        return float(word)
    try:
        when = datetime.datetime.fromisoformat(word.replace("Z", "+00:00"))
    except ValueError:
        return 0.0
    return when.replace(tzinfo=when.tzinfo or datetime.UTC).timestamp()


def _on_calendar(words: str, now: float) -> float:
    """Return the moment of a day, a time of day, or both, in the zone that the words name."""
    here = datetime.datetime.fromtimestamp(now, _zone(ZONE.search(words)))
    date, weekday = DATE.search(words), WEEKDAY.search(words)
    time = _time(words[date.end() if date else 0 :])
    when = None
    if date is not None:
        when = _dated(here, date, time or MIDNIGHT)
    elif weekday is not None:
        ahead = (WEEKDAYS.index(weekday[0][:3].lower()) - here.weekday()) % 7
        when = _next(here, time or MIDNIGHT, ahead, 7)
    elif time is not None:
        when = _next(here, time, 0, 1)
    if when is None or (time is None and when.date() == here.date()):
        return 0.0  # some time today is no stated time
    return when.timestamp()


def _time(words: str) -> datetime.time | None:
    """Return the first time of day: `14:00`, `2pm` or `2:00 PM`."""
    for hour, minute, half in TIME.findall(words):
        if half and 1 <= int(hour) <= 12:
            return datetime.time(int(hour) % 12 + 12 * (half in "pP"), int(minute or 0))
        if minute and not half and int(hour) < 24:
            return datetime.time(int(hour), int(minute))
    return None


def _dated(
    here: datetime.datetime, date: re.Match[str], time: datetime.time
) -> datetime.datetime | None:
    """Return the time on that day; without a year, of the year in which it is closest to now."""
    month, day = MONTHS.index(date[1].lower()) + 1, int(date[2])
    years = [int(date[3])] if date[3] else [here.year - 1, here.year, here.year + 1]
    found = [each for year in years if (each := _at(here, time, year, month, day))]
    return min(found, key=lambda each: abs(each - here), default=None)


def _at(
    here: datetime.datetime, time: datetime.time, year: int, month: int, day: int
) -> datetime.datetime | None:
    try:
        return datetime.datetime.combine(datetime.date(year, month, day), time, here.tzinfo)
    except ValueError:  # Feb 29
        return None


def _next(
    here: datetime.datetime, time: datetime.time, ahead: int, period: int
) -> datetime.datetime:
    """Return the time `ahead` days from now, or `period` days later if it has passed."""
    day = here.date() + datetime.timedelta(days=ahead)
    when = datetime.datetime.combine(day, time, here.tzinfo)
    return when if here - when <= JUST_PASSED else when + datetime.timedelta(days=period)


def _zone(named: re.Match[str] | None) -> datetime.tzinfo | None:
    """Return the time zone; None, for unknown names too, is this machine's own."""
    try:
        return zoneinfo.ZoneInfo(named[1]) if named else None
    except (KeyError, OSError, ValueError):
        return datetime.UTC if named and named[1] == "UTC" else None
