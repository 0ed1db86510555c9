"""Images, a small convolutional network, and how it is trained: by softmax, and as a hybrid."""

from __future__ import annotations

import contextlib
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np
from gpflow.keras import tf_keras
from scipy.optimize import minimize_scalar
from scipy.special import log_softmax, softmax

from gpflow_bsvm.datasets import data_directory
from gpflow_bsvm.deep import head, hybrid
from gpflow_bsvm.inference import CAVI, ML2, KeepBest
from gpflow_bsvm.likelihoods import OneVsRestLevelHinge
from gpflow_bsvm.models import BSVM
from gpflow_bsvm.prediction import calibrate

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


def network_of_the_paper(shape: tuple[int, ...], seed: int = 0) -> Any:
    """That of Wistuba & Rawat (2018, section 4.2) for MNIST as it is; one fc(100) ends it."""
    tf_keras.utils.set_random_seed(seed)
    return tf_keras.Sequential(
        [
            layers.InputLayer(shape),
            layers.Conv2D(32, 5, padding="same", activation="relu"),
            layers.Conv2D(64, 3, padding="same", activation="relu"),
            layers.MaxPooling2D(),
            layers.Flatten(),
            layers.Dense(1024, activation="relu"),
            layers.Dense(100),
        ]
    )


Watch, Look = Callable[[int, Any], None], Callable[[int], bool]


def _ignore(*_: Any) -> None:
    return


class Trained(ABC):
    """
    :ivar seconds: of training until now, of processor time: other work beside it does not count.
    """

    seconds, _since = 0.0, 0.0

    @contextlib.contextmanager
    def clock(self) -> Iterator[None]:
        """What is done inside is training."""
        self._since = time.process_time()
        yield
        self._stop()

    def _stop(self) -> None:
        self.seconds += time.process_time() - self._since

    def train(
        self,
        X: np.ndarray,
        y: np.ndarray,
        epochs: int,
        watch: Watch = _ignore,
        best: KeepBest | None = None,
    ) -> None:
        """
        :param watch: is told of every epoch, in no time of training.
        :param best: looks at every epoch, and may end it all.
        """

        def look(number: int) -> bool:
            ended = best is not None and best()
            self._stop()
            watch(number, self)
            self._since = time.process_time()
            return ended

        with self.clock():
            self._train(X, y, epochs, look)

    @abstractmethod
    def _train(self, X: np.ndarray, y: np.ndarray, epochs: int, look: Look) -> None:
        """:param look: is to be told the number of each epoch; True from it ends it all."""


class Softmax(Trained):
    """
    The network with a softmax layer, by Adam at Keras' own rate.

    :ivar features: the network without it.
    :ivar temperature: what logits are divided by.
    """

    def __init__(self, shape: tuple[int, ...], seed: int = 0, make: Callable = network) -> None:
        self.features, self._shape, self.temperature = make(shape, seed), shape, 1.0
        last = [layers.Activation("relu"), layers.Dense(NUM_CLASSES)]
        self.model = tf_keras.Sequential([self.features, *last])
        loss = tf_keras.losses.SparseCategoricalCrossentropy(from_logits=True)
        self.model.compile(tf_keras.optimizers.Adam(), loss)

    def _train(self, X: np.ndarray, y: np.ndarray, epochs: int, look: Look) -> None:
        rows = self._rows(X)
        for number in range(1, epochs + 1):
            self.model.fit(rows, y, BATCH, 1, verbose=0)
            if look(number):
                return

    def logits(self, X: np.ndarray) -> np.ndarray:
        return np.asarray(self.model.predict(self._rows(X), 1000, verbose=0), float)

    def predict(self, X: np.ndarray) -> np.ndarray:
        return softmax(self.logits(X) / self.temperature, axis=1)

    def calibrate(self, X: np.ndarray, y: np.ndarray) -> None:
        """The temperature of the best NLL on rows that were not trained on (Guo et al. 2017)."""
        with self.clock():
            logits = self.logits(X)
        rows = np.arange(len(y))

        def nll(log_temperature: float) -> float:
            return float(-log_softmax(logits / np.exp(log_temperature), axis=1)[rows, y].mean())

        self.temperature = float(np.exp(minimize_scalar(nll, bounds=(-3, 3)).x))

    def _rows(self, X: np.ndarray) -> np.ndarray:
        return X.reshape(-1, *self._shape).astype(np.float32)


class Hybrid(Trained):
    """
    A Bayesian SVM on the network, all learned together; after the last epoch q to the end by CAVI.

    :ivar model: the `BSVM`.
    """

    def __init__(
        self,
        features: Any,
        X: np.ndarray,
        seed: int = 0,
        likelihood: Any = None,
        normalize: bool = True,
        **options: Any,
    ) -> None:
        """
        :param features: the network, new or trained.
        :param options: of `ML2`.
        """
        likelihood = likelihood or OneVsRestLevelHinge(NUM_CLASSES)
        with self.clock():
            self.model: BSVM = hybrid(
                features, likelihood, X, NUM_POINTS, normalize=normalize, seed=seed
            )
        rates = {"learning_rate": 0.1, "optimizer": 0.01, "network_optimizer": 1e-3}
        self._options = {"batch_size": BATCH, "every": 1, "seed": seed, **rates, **options}

    def _train(self, X: np.ndarray, y: np.ndarray, epochs: int, look: Look) -> None:
        steps = len(X) // BATCH
        algorithm = ML2(max_steps=epochs * steps, record_every=steps, **self._options)
        callback = lambda step, _: look(step // steps)  # noqa: E731
        algorithm.run(self.model, (X, column(y)), callback=callback, progress=False)

    def finish(
        self, X: np.ndarray, y: np.ndarray, best: KeepBest | None = None, **options: Any
    ) -> None:
        """
        q to the end, on what the network gives without dropout.

        :param best: takes back what is for the worse.
        :param options: of `CAVI`.
        """
        with self.clock():
            F = self.model.kernel.features_of(X)
            CAVI(**options).run(head(self.model), (F, column(y)), progress=False)
            if best is not None:
                best()
                best.restore()

    def calibrate(self, X: np.ndarray, y: np.ndarray) -> None:
        """The scale of log odds of the best NLL on rows that were not trained on."""
        with self.clock():
            calibrate(self.model, (X, column(y)), held_out=True)

    def predict(self, X: np.ndarray) -> np.ndarray:
        P = [self.model.predict_y(X[n : n + 2000])[0] for n in range(0, len(X), 2000)]
        return np.concatenate(P)


def column(y: np.ndarray) -> np.ndarray:
    return y[:, None].astype(float)
