"""From the cosine of one model to a similarity that means the same for every model.

Two random sentences have a cosine of .85 under one model and .20 under another. The map is monotone and
linear between four points, fitted on random pairs of what is stored: their median becomes .3, their 99th
percentile .7, their 99.95th .85, and 1 stays 1.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import numpy as np

QUANTILES = ((0.5, 0.3), (0.99, 0.7), (0.9995, 0.85))
"""Share of random pairs below, and the similarity that this point gets."""


@dataclass(frozen=True, slots=True)
class Calibration:
    """A monotone map given by rising (cosine, similarity) points.

    >>> Calibration.identity()(0.5)
    0.5
    """

    points: tuple[tuple[float, float], ...]

    def __call__(self, cosine: float) -> float:
        """Map one cosine to [0, 1]."""
        if cosine <= self.points[0][0]:
            (x0, y0), (x1, y1) = self.points[0], self.points[1]
            return max(0.0, y0 + (cosine - x0) * (y1 - y0) / (x1 - x0))
        for (x0, y0), (x1, y1) in zip(self.points, self.points[1:], strict=False):
            if cosine <= x1:
                return y0 + (cosine - x0) * (y1 - y0) / (x1 - x0)
        return 1.0

    @classmethod
    def identity(cls) -> "Calibration":
        """The map that changes nothing."""
        return cls(((0.0, 0.0), (1.0, 1.0)))

    @classmethod
    def fit(cls, cosines: Sequence[float]) -> "Calibration":
        """Fit the map on the cosines of random pairs; points that coincide are dropped."""
        if not cosines:
            return cls.identity()
        ranked = sorted(cosines)
        points: list[tuple[float, float]] = []
        for share, similarity in QUANTILES:
            cosine = ranked[min(len(ranked) - 1, int(share * len(ranked)))]
            if cosine < 1 and (not points or cosine > points[-1][0]):
                points.append((cosine, similarity))
        return cls((*points, (1.0, 1.0))) if len(points) > 0 else cls.identity()


def random_pairs(vectors: "np.ndarray", count: int, seed: int = 0) -> list[float]:
    """Draw the cosines of `count` random pairs of different rows of unit vectors."""
    import numpy as np

    if len(vectors) < 2:
        return []
    generator = np.random.default_rng(seed)
    left, right = generator.integers(0, len(vectors), (2, count))
    apart = left != right
    return list(map(float, np.einsum("ij,ij->i", vectors[left[apart]], vectors[right[apart]])))
