"""What a GPU with TensorFloat-32 would do to products in single precision, simulated on a CPU.

Such a GPU rounds the factors of a single-precision product to ten bits, and sums in single
precision. Here, `tf.matmul` and `tf.einsum` round their factors in this way, in a process of its
own. Beside it, the classifier as it is on a CPU (and, in double precision, on such a GPU).
"""

from __future__ import annotations

import multiprocessing
import warnings
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor

import numpy as np
import tensorflow as tf
from sklearn.datasets import make_classification
from sklearn.metrics import log_loss

from gpflow_bsvm import BSVMClassifier
from gpflow_bsvm.compare.protocol import folds

from ._common import numbered

SETS = ("phoneme", "ringnorm", "make_classification")
_DROPPED = 13  # of the 23 bits of a significand


def run() -> Iterator[dict]:
    for data in SETS:
        for rounded in (False, True):
            # A new process, because traced graphs keep the products that they were traced with.
            context = multiprocessing.get_context("spawn")
            with ProcessPoolExecutor(1, mp_context=context) as pool:
                scores = pool.submit(_scores, data, rounded).result()
            yield {"data": data, "factors": "rounded" if rounded else "exact", **scores}


def _scores(data: str, rounded: bool) -> dict:
    warnings.simplefilter("ignore")
    if rounded:
        round_factors()
    fold = next(iter(folds(*_rows(data), 10)))
    classifier = BSVMClassifier(random_state=0).fit(fold.X, fold.y)
    P = classifier.predict_proba(fold.X_test)
    error = 1 - classifier.score(fold.X_test, fold.y_test)
    return {"n": len(fold.y), "error": error, "nll": log_loss(fold.y_test, P)}


def _rows(data: str) -> tuple[np.ndarray, np.ndarray]:
    if data == "make_classification":
        return make_classification(20_000, 20, n_informative=10, random_state=0)
    return numbered(data)


def round_factors() -> None:
    """Replace TensorFlow's products in this process."""
    matmul, einsum = tf.matmul, tf.einsum

    def rounding_matmul(a: tf.Tensor, b: tf.Tensor, *args: object, **options: object) -> tf.Tensor:
        return matmul(_to_ten_bits(a), _to_ten_bits(b), *args, **options)

    def rounding_einsum(equation: str, *factors: tf.Tensor, **options: object) -> tf.Tensor:
        return einsum(equation, *map(_to_ten_bits, factors), **options)

    tf.matmul = tf.linalg.matmul = rounding_matmul
    tf.einsum = rounding_einsum


def _to_ten_bits(x: tf.Tensor) -> tf.Tensor:
    x = tf.convert_to_tensor(x)
    if x.dtype != tf.float32:
        return x
    bits = tf.bitcast(x, tf.int32) + 2 ** (_DROPPED - 1)
    return tf.bitcast(tf.bitwise.bitwise_and(bits, -(2**_DROPPED)), tf.float32)
