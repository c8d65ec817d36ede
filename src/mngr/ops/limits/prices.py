"""Prices of models: a table by prefix of the model's name, which the settings can change.

Prices are in dollars per million tokens. The longest matching prefix applies.
"""

from __future__ import annotations

from itertools import takewhile

from mngr.agents.base import KINDS, Tokens
from mngr.model.struct import Json, Struct
from mngr.settings.layers import Config

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

MILLION = 1_000_000

# input, output, cache read, cache write: list prices of November 2026, for prompts of usual length.
TABLE: dict[str, tuple[float, float, float, float]] = {
    "claude-fable": (10, 50, 1, 12.5),
    "claude-fable-5-1": (10, 50, 0.25, 12.5),
    "claude-mythos": (10, 50, 1, 12.5),
    "claude-mythos-5-1": (10, 50, 0.25, 12.5),
    "claude-opus": (5, 25, 0.5, 6.25),
    "claude-opus-5-5": (4, 20, 0.2, 5),
    "claude-opus-4-0": (15, 75, 1.5, 18.75),
    "claude-opus-4-1": (15, 75, 1.5, 18.75),
    "claude-opus-4-2": (15, 75, 1.5, 18.75),  # claude-opus-4-20250514
    "claude-3-opus": (15, 75, 1.5, 18.75),
    "claude-sonnet": (2, 10, 0.2, 2.5),
    "claude-sonnet-4": (3, 15, 0.3, 3.75),
    "claude-3-7-sonnet": (3, 15, 0.3, 3.75),
    "claude-3-5-sonnet": (3, 15, 0.3, 3.75),
    "claude-haiku": (1, 5, 0.1, 1.25),
    "claude-haiku-5-5": (0.1, 0.5, 0.01, 0.125),
    "claude-3-5-haiku": (0.8, 4, 0.08, 1),
    "claude-3-haiku": (0.25, 1.25, 0.03, 0.3),
    "gpt-6": (2, 10, 0.2, 2.5),
    "gpt-6-astra": (10, 50, 1, 12.5),
    "gpt-6-luna": (0.1, 0.5, 0.01, 0.125),
    "gpt-6.1": (2, 10, 0.1, 2.5),
    "gpt-6.1-terra": (1, 5, 0.1, 1.25),
    "gpt-5": (1.25, 10, 0.125, 1.25),
    "gpt-5-pro": (15, 120, 1.5, 15),
    "gpt-5-mini": (0.25, 2, 0.025, 0.25),
    "gpt-5-nano": (0.05, 0.4, 0.005, 0.05),
    "gpt-5.1-codex-mini": (0.25, 2, 0.025, 0.25),
    "gpt-5.2": (1.75, 14, 0.175, 1.75),
    "gpt-5.3": (1.75, 14, 0.175, 1.75),
    "gpt-5.4": (2.5, 15, 0.25, 2.5),
    "gpt-5.4-pro": (30, 180, 3, 30),
    "gpt-5.4-mini": (0.75, 4.5, 0.075, 0.75),
    "gpt-5.5": (5, 30, 0.5, 5),
    "gpt-5.5-pro": (30, 180, 3, 30),
    "gpt-5.6": (4, 20, 0.4, 5),
    "gpt-5.6-terra": (2, 12, 0.2, 2.5),
    "gpt-5.6-luna": (0.2, 1.2, 0.02, 0.25),
    "gpt-4.1": (2, 8, 0.5, 2),
    "gpt-4.1-mini": (0.4, 1.6, 0.1, 0.4),
    "gpt-4.1-nano": (0.1, 0.4, 0.025, 0.1),
    "gpt-4o": (2.5, 10, 1.25, 2.5),
    "gpt-4o-mini": (0.15, 0.6, 0.075, 0.15),
    "o3": (2, 8, 0.5, 2),
    "o4-mini": (1.1, 4.4, 0.275, 1.1),
    "gemini-3-pro": (2, 12, 0.2, 2),
    "gemini-3-flash": (0.5, 3, 0.05, 0.5),
    "gemini-2.5-pro": (1.25, 10, 0.125, 1.25),
    "gemini-2.5-flash": (0.3, 2.5, 0.03, 0.3),
    "gemini-2.5-flash-lite": (0.1, 0.4, 0.01, 0.1),
}


class Price(Struct):
    """Dollars per million tokens of each kind."""

    input: float
    output: float
    cache_read: float
    cache_write: float

    def of(self, tokens: Tokens) -> float:
        dollars: float = sum(getattr(tokens, kind) * getattr(self, kind) for kind in KINDS)
        return dollars / MILLION


class Prices:
    """The price table, overridden by the settings."""

    def __init__(self, config: Config) -> None:
        self.known: dict[str, Price] = {
            prefix: Price(**dict(zip(KINDS, row, strict=True))) for prefix, row in TABLE.items()
        }
        for prefix, given in config.table("prices").items():
            if isinstance(given, dict):
                self._set(prefix, given)

    def _set(self, prefix: str, given: Mapping[str, Json]) -> None:
        """Set a price; a new model requires input and output, and cache then costs as input."""
        numbers = {kind: float(n) for kind, n in given.items() if isinstance(n, (int, float))}
        if prefix in self.known:
            self.known[prefix] = self.known[prefix].replace(**numbers)
        elif "input" in numbers and "output" in numbers:
            rest = dict.fromkeys(("cache_read", "cache_write"), numbers["input"])
            self.known[prefix] = Price(**{**rest, **numbers})

    def find(self, model: str) -> Price | None:
        for name in (model, plain(model)):
            fitting = [prefix for prefix in self.known if name.startswith(prefix)]
            if fitting:
                return self.known[max(fitting, key=len)]
        return None

    def cost(self, used: Mapping[str, Tokens]) -> tuple[float, list[str]]:
        """Return the cost in dollars of all models with a price, and the names of the others."""
        total, unpriced = 0.0, []
        for model, tokens in used.items():
            price = self.find(model)
            if price is not None:
                total += price.of(tokens)
            elif tokens.total:
                unpriced.append(model)
        return total, unpriced

    def highest(self, model: str) -> Price:
        """Return the vendor's highest price, for a model without a price under a cost limit."""
        mine = [row for name, row in self.known.items() if vendor(name) == vendor(plain(model))]
        rows = mine or list(self.known.values())
        return Price(**{kind: max(getattr(row, kind) for row in rows) for kind in KINDS})

    def guarded(self, used: Mapping[str, Tokens]) -> float:
        """Return the cost, with the highest price of the vendor for models without a price."""
        prices = ((self.find(model) or self.highest(model), used[model]) for model in used)
        return sum(price.of(tokens) for price, tokens in prices)

    def lines(self) -> str:
        """Return lines for the watcher on the host: PREFIX and four prices each."""
        rows = (
            " ".join([prefix, *(f"{getattr(price, kind):.9g}" for kind in KINDS)])
            for prefix, price in self.known.items()
            if prefix and not any(c.isspace() for c in prefix)
        )
        return "\n".join(rows) + "\n"


def vendor(name: str) -> str:
    """Return the letters a model's name begins with, as its vendor; the watcher does the same."""
    letters = "".join(takewhile(str.isalpha, name))
    return "gpt" if letters in ("o", "chatgpt", "codex") else letters


def plain(model: str) -> str:
    """Return the name without reseller prefixes: `us.anthropic.claude-…`, `openrouter/…`."""
    return model.rpartition("/")[2].rpartition("anthropic.")[2]
