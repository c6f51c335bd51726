"""Fitting of a pattern to the accepted lengths of one dim: bounds, step and residues."""

from __future__ import annotations

import itertools
import random
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass

__all__ = [
    "Accepts",
    "Pattern",
    "explore",
    "in_plural",
    "join_words",
    "offset_text",
    "residue_text",
    "sum_text",
]


Accepts = Callable[[int], bool | None]
"""Whether a length is accepted; ``None`` if undecided."""

Refuses = Callable[[int, int | None], bool]
"""Whether it is proved that all lengths between two bounds are refused; ``None`` means no upper bound."""

FAR = 1 << 16
"""The longest length to try if there is no bound."""

LONGEST_PERIOD = 256
"""The largest step to look for."""

# Differences to try first: products of common strides, heads, patches and windows.
_LIKELY = (1, 2, 4, 8, 16, 32, 64, 128, 3, 6, 12, 24, 48, 96, 5, 7, 10, 14, 20, 28, 40, 56, 112, 224)
_JUMPS = (*_LIKELY, *(n for n in range(1, LONGEST_PERIOD + 1) if n not in _LIKELY))

# Number of random lengths that check a pattern, and the longest of them if it is unbounded.
SAMPLES, FAR_SAMPLE = 6, 4096

# Number of lengths tried beyond a bound, as patterns may have gaps.
BEYOND_BOUND = 65


@dataclass(frozen=True, slots=True)
class Pattern:
    """Lengths from ``low`` to ``high`` that leave one of ``residues`` when divided by ``step``.

    >>> Pattern(32, 96, 32).contains(64), Pattern(32, None, 32).contains(65), str(Pattern(3, 9))
    (True, False, '3..9')
    """

    low: int = 1
    high: int | None = None
    step: int = 1
    residues: tuple[int, ...] = (0,)
    refused_below: int | None = None
    """The longest refused length below ``low``, or ``None``."""
    refused_above: int | None = None
    """The shortest refused length above ``high``, or ``None``."""
    refused_between: int | None = None
    """A refused length between the bounds, or ``None``."""
    regular: bool = True
    """Whether the pattern fits all lengths that were tried; otherwise only the bounds and ``refused_between`` hold."""

    @property
    def single(self) -> int | None:
        """The only length, if there is only one."""
        return self.low if self.low == self.high else None

    def contains(self, length: int) -> bool:
        """Return whether the length fits."""
        inside = self.low <= length and (self.high is None or length <= self.high)
        return inside and length % self.step in self.residues

    def nearest(self, length: int) -> int:
        """Return the length closest to ``length`` that fits the pattern."""
        high = self.high if self.high is not None else max(length, self.low) + self.step
        length = min(max(length, self.low), high)
        near = (n for d in range(self.step + 1) for n in (length - d, length + d) if self.contains(n))
        return next(near, self.low)

    def __str__(self) -> str:
        bounds = f"{self.low}..{'' if self.high is None else self.high}"
        return bounds if self.step == 1 else f"{bounds}, {self.residues} mod {self.step}"


def explore(
    accepts: Accepts, start: int, low: int = 1, high: int | None = None, refuses: Refuses = lambda *_: False
) -> Pattern:
    """Find the pattern of accepted lengths between two bounds, starting from an accepted one.

    Args:
        accepts: returns whether a length is accepted; an exception ends the search.
        start: an accepted length.
        low: the shortest length to try.
        high: the longest length to try; by default, there is no bound.
        refuses: returns whether it is proved that all lengths of a range are refused.
    """
    return _Search(accepts, start, low, FAR if high is None else high, high is not None, refuses).pattern()


@dataclass(slots=True)
class _Search:
    ask: Accepts
    start: int
    low: int
    high: int
    bounded: bool
    refuses: Refuses

    def pattern(self) -> Pattern:
        jump = self._jump()
        if jump is None:
            return self._alone()
        step = self._smallest(jump)
        pattern = self._find_bounds(step, (self.start % step,))
        if self._holds(pattern):
            return pattern
        for step, residues in self._periods():
            pattern = self._find_bounds(step, residues)
            if self._holds(pattern):
                return pattern
        return self._irregular(pattern)

    def _accepts(self, length: int) -> bool:
        return self.low <= length <= self.high and self.ask(length) is True

    def _refuses(self, length: int) -> bool:
        return self.low <= length <= self.high and self.ask(length) is False

    def _jump(self) -> int | None:
        """Return the first of the differences to try by which the length can change from the accepted one; ``None`` if there is none."""
        return next(
            (d for d in _JUMPS if self._accepts(self.start + d) or self._accepts(self.start - d)), None
        )

    def _smallest(self, jump: int) -> int:
        """Return the smallest difference by which the length can also change, found by dividing ``jump`` by its prime factors."""
        for prime in _primes(jump):
            smaller = jump // prime
            if self._accepts(self.start + smaller) or self._accepts(self.start - smaller):
                return self._smallest(smaller)
        return jump

    def _alone(self) -> Pattern:
        refused = next((n for n in (self.start + 1, self.start - 1) if self._refuses(n)), None)
        return (
            Pattern(self.start, self.start, refused_below=self.start - 1, refused_above=self.start + 1)
            if refused is not None
            else Pattern(self.start, self.start, regular=False)
        )

    def _find_bounds(self, step: int, residues: tuple[int, ...]) -> Pattern:
        up, above = self._end(step, self.high)
        down, below = self._end(-step, self.low)
        low, high = (self._last(end, sign, step, residues) for end, sign in ((down, -1), (up, 1)))
        rest = [n for n in range(self.low, low) if n % step in residues] if below is None else []
        below = below or next((n for n in reversed(rest) if self._refuses(n)), None)
        if above is None and self.bounded:
            rest = [n for n in range(high + 1, self.high + 1) if n % step in residues]
            above = next((n for n in rest if self._refuses(n)), None)
        return Pattern(
            low=self.low if below is None else low,
            high=(self.high if self.bounded else None) if above is None else high,
            step=step,
            residues=residues,
            refused_below=below,
            refused_above=above,
            refused_between=self._outside(step, residues),
        )

    def _end(self, step: int, limit: int) -> tuple[int, int | None]:
        """Return the last accepted and the first refused length in one direction, by galloping (exponential) search.

        ``step`` is negative to search downwards. The refused length is ``None`` if every length up to ``limit`` is accepted.
        """
        accepted, refused, stride = self.start, None, step
        while (limit - accepted) * step > 0:
            ahead = accepted + stride
            if (limit - ahead) * step < 0:
                ahead = accepted + (limit - accepted) // step * step
                if ahead == accepted:
                    break
            if self.ask(ahead) is False:
                refused = ahead
                break
            accepted, stride = ahead, stride * 2
        if refused is None:
            return accepted, None
        while abs(refused - accepted) > abs(step):
            middle = accepted + (refused - accepted) // (2 * step) * step
            if middle in (accepted, refused):
                break
            accepted, refused = (accepted, middle) if self.ask(middle) is False else (middle, refused)
        return accepted, refused

    def _last(self, accepted: int, sign: int, step: int, residues: tuple[int, ...]) -> int:
        """Return the furthest accepted length less than ``step`` beyond ``accepted`` that leaves one of the residues.

        ``sign`` is 1 to look at longer lengths, and -1 to look at shorter ones.
        """
        near = [accepted + sign * d for d in range(step) if (accepted + sign * d) % step in residues]
        return max((n for n in near if self._accepts(n)), key=lambda n: n * sign, default=accepted)

    def _outside(self, step: int, residues: tuple[int, ...]) -> int | None:
        near = (n for d in range(1, step) for n in (self.start + d, self.start - d))
        return next((n for n in near if n % step not in residues and self._refuses(n)), None)

    def _periods(self) -> Iterator[tuple[int, tuple[int, ...]]]:
        """Yield steps with several residues that fit all lengths in a window around the start, the smallest first."""
        for window, side in itertools.product((16, 64, 128, 2 * LONGEST_PERIOD), (1, -1)):
            first = self.start if side > 0 else self.start - window
            first = max(self.low, min(first, self.high - window))
            lengths = range(first, min(first + window, self.high + 1))
            answers = [self.ask(n) for n in lengths]
            for step in range(2, len(answers) // 2 + 1):
                if (
                    all(a == b for a, b in zip(answers, answers[step:], strict=False))
                    and False in answers[:step]
                ):
                    residues = {
                        n % step for n, answer in zip(lengths, answers[:step], strict=False) if answer
                    }
                    yield step, tuple(sorted(residues))
                    break

    def _holds(self, pattern: Pattern) -> bool:
        """Check the pattern against further samples inside, between and beyond its bounds."""
        return all(self.ask(n) is not (not pattern.contains(n)) for n in self._checks(pattern))

    def _checks(self, pattern: Pattern) -> Iterable[int]:
        rng = random.Random(pattern.step)  # noqa: S311 - the same lengths every time
        high = min(self.high, max(FAR_SAMPLE, self.start)) if pattern.high is None else pattern.high
        near = range(pattern.low, min(high, pattern.low + 2 * pattern.step + 1) + 1)
        inside = {rng.randint(pattern.low, high) for _ in range(SAMPLES)} | set(near)
        lattice = {pattern.nearest(n) for n in inside}
        reach = min(pattern.step, LONGEST_PERIOD)
        period = range(self.start - reach, self.start + reach)
        beyond = set[int]()
        if pattern.low > self.low and not self.refuses(self.low, pattern.low - 1):
            beyond |= set(self._beyond(pattern.low, -1, pattern.step, rng))
        if pattern.high is not None and not self._refuses_longer(pattern.high):
            beyond |= set(self._beyond(pattern.high, 1, pattern.step, rng))
        tried = inside | lattice | set(period) | beyond
        return sorted(n for n in tried if self.low <= n <= self.high)

    def _refuses_longer(self, length: int) -> bool:
        """Return whether all longer lengths are proved to be refused."""
        most = self.high if self.bounded else None
        return (most is None or length < most) and self.refuses(length + 1, most)

    def _beyond(self, last: int, sign: int, step: int, rng: random.Random) -> Iterator[int]:
        """Yield lengths beyond the last accepted one: its neighbors, and random ones further away.

        ``sign`` is 1 for longer lengths, and -1 for shorter ones.
        """
        yield from (last + sign * d for d in range(1, step + BEYOND_BOUND))
        furthest = min(self.high, 4 * last + FAR_SAMPLE) if sign > 0 else self.low
        if (furthest - last) * sign > 0:
            yield from (rng.randint(*sorted((last + sign, furthest))) for _ in range(SAMPLES))

    def _irregular(self, pattern: Pattern) -> Pattern:
        low, high = self.low, self.high if self.bounded else None
        refused = next((n for n in self._checks(pattern) if self._refuses(n)), None)
        return Pattern(low, high, refused_between=refused, regular=False)


def _primes(number: int) -> Iterator[int]:
    divisor = 2
    while number > 1:
        if number % divisor == 0:
            yield divisor
            while number % divisor == 0:
                number //= divisor
        divisor += 1


# Phrases for the text of constraints.


def join_words(items: Sequence[str], last: str = "and") -> str:
    """Join items with commas, and a word before the last.

    >>> join_words(["height", "width"]), join_words(["0", "1", "31"], "or")
    ('height and width', '0, 1 or 31')
    """
    return items[0] if len(items) == 1 else f"{', '.join(items[:-1])} {last} {items[-1]}"


def sum_text(addends: Sequence[str], offset: int = 0) -> str:
    """Return the text of a sum.

    >>> sum_text(["past", "seq"], -1)
    'past + seq - 1'
    """
    return " + ".join(addends) + offset_text(offset)


def offset_text(offset: int) -> str:
    """Return the text of an offset; empty for 0."""
    return "" if not offset else f" {'+' if offset > 0 else '-'} {abs(offset)}"


def residue_text(pattern: Pattern) -> str:
    """Return the predicate for a length with a step and residues.

    >>> residue_text(Pattern(step=32)), residue_text(Pattern(step=4, residues=(0, 1)))
    ('is a multiple of 32', 'leaves 0 or 1 when divided by 4')
    """
    if pattern.residues == (0,):
        return f"is a multiple of {pattern.step}"
    if len(pattern.residues) == 1:
        return f"is a multiple of {pattern.step} plus {pattern.residues[0]}"
    return f"leaves {join_words(list(map(str, pattern.residues)), 'or')} when divided by {pattern.step}"


def in_plural(predicate: str) -> str:
    """Return a predicate in the plural.

    >>> in_plural("is a multiple of 32 plus 1"), in_plural("≤ 512")
    ('are multiples of 32 plus 1', '≤ 512')
    """
    for one, many in (("is a multiple ", "are multiples "), ("leaves ", "leave ")):
        predicate = predicate.replace(one, many, 1)
    return predicate
