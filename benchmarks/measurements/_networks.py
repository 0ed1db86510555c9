"""Images, a small convolutional network, and how it is trained: by softmax, and as a hybrid."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from gpflow.keras import tf_keras
from scipy.optimize import minimize_scalar
from scipy.special import log_softmax, softmax

from gpflow_bsvm.datasets import data_directory
from gpflow_bsvm.deep import head, hybrid
from gpflow_bsvm.inference import CAVI, ML2
from gpflow_bsvm.likelihoods import OneVsRestLevelHinge
from gpflow_bsvm.models import BSVM

NUM_CLASSES, NUM_FEATURES, NUM_POINTS, BATCH = 10, 32, 50, 200
layers = tf_keras.layers


class Images(NamedTuple):
    """Pixels in 0..1, flat."""

    X: np.ndarray  # [N, D]
    y: np.ndarray  # [N]
    X_test: np.ndarray
    y_test: np.ndarray
    shape: tuple[int, ...]


def images(name: str, rows: int | None = None) -> Images:
    """:param rows: of training; None: all."""
    held = np.load(data_directory() / "images" / f"{name}.npz")
    X, X_test = (held[part].reshape(len(held[part]), -1) / 255 for part in ("x_train", "x_test"))
    y, y_test = (held[part].astype(int).ravel() for part in ("y_train", "y_test"))
    shape = (*held["x_train"].shape[1:], 1)[:3]
    return Images(X[:rows], y[:rows], X_test, y_test, shape)


def network(shape: tuple[int, ...], seed: int = 0) -> Any:
    """
    The layout of Wistuba & Rawat (2018, section 4.2), conv - conv - dense - dense, with a twentieth
    of its products: strides in the place of pooling, fewer channels.
    """
    tf_keras.utils.set_random_seed(seed)
    return tf_keras.Sequential(
        [
            layers.InputLayer(shape),
            layers.Conv2D(16, 5, 2, "same", activation="relu"),
            layers.Conv2D(32, 5, 2, "same", activation="relu"),
            layers.Flatten(),
            layers.Dropout(0.25),
            layers.Dense(128, activation="relu"),
            layers.Dropout(0.25),
            layers.Dense(NUM_FEATURES),
        ]
    )


Watch = Callable[[int, Any], None]


def _ignore(*_: Any) -> None:
    return


class Softmax:
    """
    The network with a softmax layer, by Adam at Keras' own rate.

    :ivar features: the network without it.
    :ivar temperature: what logits are divided by.
    :ivar seconds: of training until now, of processor time: other work beside it does not count.
    """

    seconds = 0.0

    def __init__(self, shape: tuple[int, ...], seed: int = 0) -> None:
        self.features, self._shape, self.temperature = network(shape, seed), shape, 1.0
        last = [layers.Activation("relu"), layers.Dense(NUM_CLASSES)]
        self.model = tf_keras.Sequential([self.features, *last])
        loss = tf_keras.losses.SparseCategoricalCrossentropy(from_logits=True)
        self.model.compile(tf_keras.optimizers.Adam(), loss)

    def train(self, X: np.ndarray, y: np.ndarray, epochs: int, watch: Watch = _ignore) -> None:
        """:param watch: is told of every epoch."""
        rows = self._rows(X)
        for number in range(1, epochs + 1):
            start = time.process_time()
            self.model.fit(rows, y, BATCH, 1, verbose=0)
            self.seconds += time.process_time() - start
            watch(number, self)

    def logits(self, X: np.ndarray) -> np.ndarray:
        return np.asarray(self.model.predict(self._rows(X), 1000, verbose=0), float)

    def predict(self, X: np.ndarray) -> np.ndarray:
        return softmax(self.logits(X) / self.temperature, axis=1)

    def calibrate(self, X: np.ndarray, y: np.ndarray) -> None:
        """The temperature of the best NLL on rows that were not trained on (Guo et al. 2017)."""
        logits = self.logits(X)
        rows = np.arange(len(y))

        def nll(log_temperature: float) -> float:
            return float(-log_softmax(logits / np.exp(log_temperature), axis=1)[rows, y].mean())

        self.temperature = float(np.exp(minimize_scalar(nll, bounds=(-3, 3)).x))

    def _rows(self, X: np.ndarray) -> np.ndarray:
        return X.reshape(-1, *self._shape).astype(np.float32)


class Hybrid:
    """
    A Bayesian SVM on the network, all learned together; after the last epoch q to the end by CAVI.

    :ivar model: the `BSVM`.
    :ivar seconds: of training until now, of processor time: other work beside it does not count.
    """

    def __init__(
        self,
        features: Any,
        X: np.ndarray,
        seed: int = 0,
        likelihood: Any = None,
        normalise: bool = True,
        **options: Any,
    ) -> None:
        """
        :param features: the network, new or trained.
        :param options: of `ML2`.
        """
        likelihood = likelihood or OneVsRestLevelHinge(NUM_CLASSES)
        start = time.process_time()
        self.model: BSVM = hybrid(
            features, likelihood, X, NUM_POINTS, normalise=normalise, seed=seed
        )
        self.seconds = time.process_time() - start
        rates = {"learning_rate": 0.1, "optimizer": 0.01, "network_optimizer": 1e-3}
        self._options = {"batch_size": BATCH, "every": 1, "seed": seed, **rates, **options}

    def train(self, X: np.ndarray, y: np.ndarray, epochs: int, watch: Watch = _ignore) -> None:
        """:param watch: is told of every epoch."""
        steps, start = len(X) // BATCH, time.process_time()

        def note(step: int, _: Any) -> None:
            nonlocal start
            self.seconds += time.process_time() - start
            watch(step // steps, self)
            start = time.process_time()

        algorithm = ML2(max_steps=epochs * steps, record_every=steps, **self._options)
        data = (X, y[:, None].astype(float))
        algorithm.run(self.model, data, callback=note, progress=False)

    def finish(self, X: np.ndarray, y: np.ndarray) -> None:
        """q to the end, on what the network gives without dropout."""
        start = time.process_time()
        F = self.model.kernel.features_of(X)
        CAVI().run(head(self.model), (F, y[:, None].astype(float)), progress=False)
        self.seconds += time.process_time() - start

    def predict(self, X: np.ndarray) -> np.ndarray:
        P = [self.model.predict_y(X[n : n + 2000])[0] for n in range(0, len(X), 2000)]
        return np.concatenate(P)
