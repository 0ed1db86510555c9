"""Some rows of the data."""

from __future__ import annotations

from typing import NamedTuple

import tensorflow as tf


class Batch(NamedTuple):
    """Rows as a source gives them; for a prediction, Y has no columns."""

    X: tf.Tensor  #: [N, D]
    Y: tf.Tensor  #: [N, P]
    weight: tf.Tensor  #: [N, 1], powers of the likelihood


def take(batch: Batch, index: tf.Tensor) -> Batch:
    """:return: the rows of these numbers, in this order."""
    return Batch(*(tf.gather(column, index) for column in batch))
