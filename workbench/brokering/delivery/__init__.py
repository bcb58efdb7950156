"""Active control: notifications through a channel that loses some, to clients that check (Vdovenko and Korzun, 2014).

strategies   when a client checks                   recurrence   model (A): losses drawn from the interval
channels     what becomes of a message              delivered    model (B): a notifications table, delivered
rules        what broker and client agree on        simulated    model (B) in SimPy, one broker for all
overload     many clients at one broker             paper        the paper's tables beside ours
frontier     staleness against checks
"""

from workbench.brokering.delivery.channels import Channel, GilbertElliott, Independent, Outages, gaps
from workbench.brokering.delivery.delivered import Delivered, delivered
from workbench.brokering.delivery.rules import Rules
from workbench.brokering.delivery.strategies import (
    Adaptive,
    Constant,
    MultiplicativeDecrease,
    Prompt,
    RandomSelection,
    Receding,
    SquareRoot,
    Strategy,
)

__all__ = [
    "Channel", "Independent", "GilbertElliott", "Outages", "gaps",
    "Strategy", "Adaptive", "MultiplicativeDecrease", "RandomSelection", "Constant", "Prompt", "Receding", "SquareRoot",
    "Rules", "Delivered", "delivered",
]  # fmt: skip
