"""Labels and latent functions: how many of them, of what shape, and which is which."""

from __future__ import annotations

from typing import Any

import numpy as np
import tensorflow as tf
from gpflow.base import AnyNDArray, TensorType
from gpflow.likelihoods import Likelihood, ScalarLikelihood
from gpflow.utilities import to_default_float


def is_scalar(likelihood: Likelihood) -> bool:
    """:return: whether every latent function has a column of labels, as for two classes."""
    return isinstance(likelihood, ScalarLikelihood)


def is_binary(likelihood: Likelihood, num_latents: int) -> bool:
    """:return: whether a row's label is one of two classes, so that p(y = 1) tells both."""
    return num_latents == 1 or likelihood.observation_dim == 1


def num_latents(likelihood: Likelihood, num_columns: int = 1) -> int:
    """
    :return: L of a model for labels Y [N, num_columns].
    :raise TypeError: for what is no likelihood, such as its name.
    """
    if not isinstance(likelihood, Likelihood):
        raise TypeError(
            f"expected a likelihood, such as gpflow_bsvm.likelihoods.Hinge(), got {likelihood!r}"
        )
    return likelihood.latent_dim or num_columns


def check_latents(likelihood: Likelihood, F: tf.Tensor) -> None:
    """:raise ValueError: if F [..., L] is of another number of latent functions."""
    if F.shape[-1] not in (None, likelihood.latent_dim):
        raise ValueError(
            f"{type(likelihood).__name__} needs a model with num_latent_gps="
            f"{likelihood.latent_dim}, got {F.shape[-1]} latent functions"
        )


def check_one_label(likelihood: Likelihood, num_latents: int) -> None:
    """
    :raise ValueError: if a row has several binary labels.
    """
    if is_scalar(likelihood) and num_latents > 1:
        raise ValueError(
            f"a row has {num_latents} binary labels here; one is needed (of C classes "
            "CrammerSinger or OneVsRest make one label)"
        )


def with_both_classes(p: AnyNDArray) -> AnyNDArray:
    """
    :param p: [..., 1], p(y = 1) of two classes, or [..., C].
    :return: [..., 2] or [..., C], probabilities of all classes.
    """
    return np.concatenate([1 - p, p], axis=-1) if p.shape[-1] == 1 else p


def check_columns(Y: Any, columns: int | None, what: str, otherwise: str = "") -> None:
    """
    Labels of another shape would be broadcast against f, and give numbers that are wrong.

    :param Y: array or tensor; of its shape that is looked at which is known while a graph is built.
    :raise ValueError: unless Y is [..., columns].
    """
    *batch, found = Y.shape
    if found != columns and (not batch or None not in (found, columns)):
        hint = "use Y[:, None]" if not batch else otherwise
        shape = tuple(Y.shape)
        raise ValueError(f"{what}, got shape {shape}{hint and f'; {hint}'}")


def check_binary_labels(Y: Any, *, minibatch: bool = False) -> None:
    """
    :param minibatch: whether a class may be absent.
    :raise ValueError: unless Y holds both classes, in one encoding: {0, 1} or {-1, +1}.
    """
    labels = np.unique(np.asarray(Y))
    if not any(np.isin(labels, encoding).all() for encoding in ((0, 1), (-1, 1))):
        shown = ", ".join(str(label) for label in labels[:5])
        raise ValueError(
            f"binary labels must be in {{0, 1}} or in {{-1, +1}}, got {{{shown}"
            f"{', ...' if len(labels) > 5 else ''}}}; recode Y, or use gpflow_bsvm.BSVMClassifier, "
            "which takes any labels, or CrammerSinger for several classes"
        )
    if len(labels) < 2 and not minibatch:
        raise ValueError(
            f"Y holds one class only ({labels[0]}); a classifier needs rows of both classes"
        )


def signs(Y: TensorType, F: TensorType) -> tf.Tensor:
    """
    Labels in {0, 1} or {-1, +1} as y in {-1, +1}. Any other label becomes NaN: inside a graph
    nothing can be raised cheaply, and a NaN objective is better than a silent wrong answer.

    :param F: [..., L], what the labels belong to.
    :raise ValueError: unless Y is [..., L].
    """
    Y, L = to_default_float(Y), tf.convert_to_tensor(F).shape[-1]
    check_columns(Y, L, f"binary labels must have shape [..., {L}], one for each latent function")
    one = tf.ones_like(Y)
    negative = tf.where((Y == 0) | (Y == -1), -one, np.nan * one)
    return tf.where(Y == 1, one, negative)
