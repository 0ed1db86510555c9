"""Images, a small convolutional network, and how it is trained: by softmax, and as a hybrid."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from gpflow.keras import tf_keras

from gpflow_bsvm.datasets import data_directory

layers = tf_keras.layers
NUM_CLASSES, NUM_FEATURES, BATCH = 10, 32, 200
PENALTY = 4.0


class Images(NamedTuple):
    """Pixels in 0..1, flat."""

    X: np.ndarray  # [N, D]
    y: np.ndarray  # [N]
    X_test: np.ndarray
    y_test: np.ndarray
    shape: tuple[int, int, int]


def images(name: str, rows: int | None = None) -> Images:
    """:param rows: of training; None: all."""
    held = np.load(data_directory() / "images" / f"{name}.npz")
    flat = [held[part].reshape(len(held[part]), -1) / 255.0 for part in ("x_train", "x_test")]
    labels = [held[part].astype(int).ravel() for part in ("y_train", "y_test")]
    shape = (*held["x_train"].shape[1:], 1)[:3]
    return Images(flat[0][:rows], labels[0][:rows], flat[1], labels[1], shape)


def network(shape: tuple[int, int, int], seed: int = 0, features: int = NUM_FEATURES):
    """Two convolutions of stride 2 and a dense layer: what two cores do in seconds an epoch."""
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
            layers.Dense(features),
        ]
    )
