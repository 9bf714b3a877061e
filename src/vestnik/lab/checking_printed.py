"""What the paper prints, and whether it agrees with itself."""

from __future__ import annotations

from typing import NamedTuple


class Printed(NamedTuple):
    """A column of table 2 or 3, as it is printed."""

    table: int
    strategy: str
    delta: int  # 0 where the strategy has none
    k_avg: str
    t_avg: str
    ratio: str
    ratio_avg: str

    @property
    def quotient(self) -> float:
        """k_avg / t_avg, which `ratio` is said to be."""
        return float(self.k_avg) / float(self.t_avg)

    @property
    def is_consistent(self) -> bool:
        """Whether numbers that are rounded to these can have this ratio."""
        (least_k, most_k), (least_t, most_t), (least, most) = map(_rounded, (self.k_avg, self.t_avg, self.ratio))
        return least_k / most_t <= most and most_k / least_t >= least


def _rounded(text: str) -> tuple[float, float]:
    """Between which numbers one is that is rounded to this."""
    half = 0.5 / 10 ** len(text.partition(".")[2]) if "." in text else 0.0
    return float(text) - half, float(text) + half


PRINTED = (
    Printed(2, "multiplicative decrease", 0, "0.59", "14.23", "0.042", "0.078"),
    Printed(2, "random", 0, "1.19", "19.87", "0.06", "0.06"),
    Printed(2, "constant", 0, "0.89", "20", "0.045", "0.045"),
    Printed(2, "adaptive", 20, "1.23", "28.8", "0.041", "0.043"),
    Printed(3, "adaptive", 10, "1.06", "22.01", "0.048", "0.047"),
    Printed(3, "adaptive", 20, "1.14", "24.76", "0.046", "0.045"),
    Printed(3, "adaptive", 40, "0.89", "32.6", "0.047", "0.046"),
    Printed(3, "adaptive", 60, "1.23", "43.86", "0.054", "0.054"),
)
QUANTITIES = ("k_avg", "t_avg", "ratio", "ratio_avg")


def case_1(t0: float, delta: float, i: int) -> float:
    """The interval t_i where nothing is lost, as it is printed."""
    return t0 + delta * (i - 1)


def case_2(t0: float, alpha: float, k: int, i: int) -> float:
    """The interval t_i where k are lost in each, as it is printed."""
    return t0 * ((alpha * k + 1) / (k + 1)) ** (i - 1)
