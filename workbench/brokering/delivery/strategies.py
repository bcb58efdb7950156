"""How a client chooses its next check interval t_i.

A strategy maps what the client observed in the last interval, (t_{i-1}, k_{i-1}), to the interval after which it checks
if nothing arrives before (Active Control, section V and Table I). Here: a frozen value with times in seconds, and one
compiled formula that the recurrence, the SimPy model and the kernel share. Every strategy starts with t_0 and keeps
planned intervals in model (B) within [t_min, t_max], which the paper lacks: without them (4) grows without end and (5)
falls to zero.

The paper's: `Adaptive` (3), `MultiplicativeDecrease`, `RandomSelection`, `Constant`. Ours: `Prompt`, `Receding`,
`SquareRoot`. A passive notification whose number leaves a gap *proves* that something is missing; ours check at once
then, and need the clock only against losses that nothing followed. How likely such a loss is depends on the silence
since the last news, which is why (3), whose interval grows with every empty check, does well on streams; ours let it
grow with the silence.

Departure: where section V says "when *proactive* notification i is delivered then t_i cannot be set by the client", it
means a *passive* one, by the names of section I: the interval of an active notification is what the client does set.
Departure: "(3) is valid for active subscription notifications only" is read as in Figure 2, where the passive arrival C
has its own t and k, and the check after it follows from them: (3) sets t_i if i turns out to be active, and t_{i-1} is
the measured time since i-2, however i-1 arrived. `measured=False` is the other reading: a passive arrival restarts the
clock but leaves the planned interval as the t_{i-1} of (3).
Departure: a check without an answer delivers nothing, so it does not advance i; the paper's strategies repeat the
planned interval, and the measured t_i spans the failed attempts ("t_i cannot be made smaller than the time of SIB
unavailability", section IV).
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from math import inf, isfinite
from typing import ClassVar

import numpy as np

from workbench.brokering.delivery.kernel import (
    ADAPTIVE,
    CONSTANT,
    DECREASE,
    PROMPT,
    RANDOM,
    RECEDING,
    ROW,
    SQUARE_ROOT,
    planned,
)
from workbench.errors import WorkbenchError


@dataclass(frozen=True)
class Strategy:
    """The numbers of every strategy: t_0, t_min, t_max in seconds, and which reading of t_{i-1} (see the module)."""

    code: ClassVar[int]
    t0_s: float = 20.0
    t_min_s: float = 1.0
    t_max_s: float = 3600.0
    measured: bool = True

    def __post_init__(self) -> None:
        if not (0 < self.t_min_s <= self.t0_s <= self.t_max_s and isfinite(self.t_max_s)):
            raise WorkbenchError(
                f"{self!r}: expected 0 < t_min_s <= t0_s <= t_max_s, all finite (t_min_s and t_max_s bound t0_s too)"
            )

    @property
    def row(self) -> np.ndarray:
        """The strategy as the row of numbers that `planned` reads."""
        numbers = [float(getattr(self, field.name)) for field in fields(self)]
        return np.array([*numbers, *[0.0] * (ROW - len(numbers))])

    @property
    def memory(self) -> np.ndarray:
        """What a client that begins remembers: no gap, no silence, a median gap of t_0, one loss in ten."""
        return np.array([0.0, 0.0, self.t0_s, 1.0, 10.0])

    def after(self, t: float, k: int, active: bool = True, u: float = 0.5) -> float:
        """The interval planned by a client that begins and observes k losses in t seconds, before t_min and t_max.

        >>> Adaptive().after(20, k=0), Adaptive().after(20, k=1), Adaptive().after(20, k=3)
        (40.0, 15.0, 12.5)
        >>> MultiplicativeDecrease().after(20, k=2), Constant().after(5, k=2), RandomSelection().after(5, k=0, u=0.25)
        (10.0, 20.0, 15.0)
        """
        return float(planned(self.code, self.row, float(t), k, active, self.t0_s, u, self.memory))


@dataclass(frozen=True)
class Constant(Strategy):
    """t_i = t_0 always (Table I)."""

    code: ClassVar[int] = CONSTANT


@dataclass(frozen=True)
class RandomSelection(Strategy):
    """t_i uniform in (a, b) (Table I)."""

    code: ClassVar[int] = RANDOM
    a_s: float = 10.0
    b_s: float = 30.0

    def __post_init__(self) -> None:
        super().__post_init__()
        if not 0 < self.a_s <= self.b_s:
            raise WorkbenchError(f"{self!r}: expected 0 < a_s <= b_s")


@dataclass(frozen=True)
class MultiplicativeDecrease(Strategy):
    """t_i = factor · t_{i-1} after losses, else t_0 (Table I)."""

    code: ClassVar[int] = DECREASE
    factor: float = 0.5

    def __post_init__(self) -> None:
        super().__post_init__()
        if not 0 < self.factor < 1:
            raise WorkbenchError(f"{self!r}: expected 0 < factor < 1")


@dataclass(frozen=True)
class Adaptive(Strategy):
    """Equation (3): t_{i-1} + delta without losses, else (1 + alpha k) / (k + 1) · t_{i-1}."""

    code: ClassVar[int] = ADAPTIVE
    alpha: float = 0.5
    delta_s: float = 20.0

    def __post_init__(self) -> None:
        super().__post_init__()
        if not (0 < self.alpha < 1 and self.delta_s > 0):
            raise WorkbenchError(f"{self!r}: expected 0 < alpha < 1 and delta_s > 0 (Active Control, section V)")


@dataclass(frozen=True)
class Prompt(Strategy):
    """t_0 while no gap is known, t_min until a known gap is recovered; a failed check is repeated after at most 2 t_0.

    >>> Prompt(t0_s=300).after(5, k=0, active=False), Prompt(t0_s=300).after(5, k=1, active=False)
    (300.0, 1.0)
    """

    code: ClassVar[int] = PROMPT


@dataclass(frozen=True)
class Receding(Strategy):
    """`Prompt` whose interval grows `growth`-fold with every check that finds nothing: news comes after news.

    >>> Receding(growth=2.0).after(20, k=0), Receding(growth=2.0).after(20, k=1)
    (40.0, 20.0)
    """

    code: ClassVar[int] = RECEDING
    growth: float = 2.0

    def __post_init__(self) -> None:
        super().__post_init__()
        if not 1 <= self.growth < inf:
            raise WorkbenchError(f"{self!r}: expected growth >= 1")


@dataclass(frozen=True)
class SquareRoot(Strategy):
    """`Prompt` whose intervals are those of least cost when a check is worth `worth_s` seconds of staleness.

    Suppose that a share p of the notifications is lost, and that the gap between two exceeds x with chance m / (m + x).
    After a silence of x, then, losses come at the rate h = p / (m + x), and a loss that happens v before the next check
    waits m ln(1 + v / m) on average: for the check, or for a notification that shows the gap. Checks y apart cost
    (worth + h ∫_0^y m ln(1 + v / m) dv) / y a second, least where y / m - ln(1 + y / m) = q = worth (m + x) / (p m²).
    Here: y = m (sqrt(2 q) + q), at most a sixth longer. Where checks are denser than notifications, the root alone
    counts (Keller, *Optimum checking schedules for systems subject to random failure*, 1974); where they are rarer, the
    interval grows in proportion to the silence. p and m, the median gap, are the client's own estimates from the
    numbers; they begin as 1/10 and t_0. (Where k_i is estimated from the connection, its own failed checks look like
    lost notifications to it, and it checks far too often.)

    >>> round(SquareRoot(t0_s=20, worth_s=1.0).after(30, k=0), 2)  # q = 1.25
    56.62
    """

    code: ClassVar[int] = SQUARE_ROOT
    worth_s: float = 1.0

    def __post_init__(self) -> None:
        super().__post_init__()
        if not 0 < self.worth_s < inf:
            raise WorkbenchError(f"{self!r}: expected worth_s > 0")
