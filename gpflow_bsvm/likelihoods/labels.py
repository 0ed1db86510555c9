"""Labels and latent functions: their numbers, shapes and encodings."""

from __future__ import annotations

from typing import Any

import numpy as np
import tensorflow as tf
from check_shapes import check_shapes
from gpflow.base import AnyNDArray, TensorType
from gpflow.config import default_float
from gpflow.likelihoods import (
    Bernoulli,
    Likelihood,
    MultiClass,
    ScalarLikelihood,
    Softmax,
    SwitchedLikelihood,
)
from gpflow.utilities import to_default_float

from ..checks import check_whole

#: GPflow's likelihoods whose predicted mean is a class probability.
_CLASSIFIERS = (Bernoulli, MultiClass, Softmax)


def label_columns(likelihood: Likelihood, num_latents: int) -> int | None:
    """
    :return: the number of columns of Y if every latent function has its own column, as for two
        classes (plus the index column of a `SwitchedLikelihood`); else None.
    """
    if not isinstance(likelihood, ScalarLikelihood):
        return None
    return num_latents + isinstance(likelihood, SwitchedLikelihood)


def num_latents(likelihood: Likelihood, num_columns: int | None = None, given: Any = None) -> int:
    """
    :param given: the user's `num_latent_gps`, if any.
    :return: L of a model for labels Y [N, num_columns], or for one column if `num_columns` is None.
    :raise TypeError: as in `check_is_likelihood`.
    :raise ValueError: if the given number is not a positive whole number.
    """
    check_is_likelihood(likelihood)
    if given is not None:
        check_whole(1, num_latent_gps=given)
        return int(given)
    columns = (num_columns or 1) - isinstance(likelihood, SwitchedLikelihood)
    return int(likelihood.latent_dim or max(columns, 1))


def check_is_likelihood(likelihood: Any) -> None:
    """:raise TypeError: for anything but a likelihood, for example its name."""
    if not isinstance(likelihood, Likelihood):
        raise TypeError(
            f"expected a likelihood, such as gpflow_bsvm.likelihoods.Hinge(), got {likelihood!r}"
        )


def check_latents(likelihood: Likelihood, number: int | None, kernel: Any = None) -> None:
    """
    :raise TypeError: as in `check_is_likelihood`.
    :raise ValueError: unless likelihood and kernel work with this number of latent functions.
    """
    check_is_likelihood(likelihood)
    of_kernel = getattr(kernel, "num_latent_gps", None)
    for part, needed in ((likelihood, likelihood.latent_dim), (kernel, of_kernel)):
        if None not in (needed, number) and number != needed:
            raise ValueError(
                f"{type(part).__name__} needs a model with num_latent_gps={needed}, got {number}"
            )


def check_one_label(likelihood: Likelihood, num_latents: int) -> None:
    """
    :raise ValueError: for a likelihood without class probabilities, or if rows have several binary
        labels, or choose between likelihoods.
    """
    if isinstance(likelihood, SwitchedLikelihood):
        raise ValueError(
            "a SwitchedLikelihood predicts a column for each of its likelihoods, not for each "
            "class: take the desired column from model.predict_y"
        )
    if not (hasattr(likelihood, "probabilities") or isinstance(likelihood, _CLASSIFIERS)):
        raise ValueError(
            f"{type(likelihood).__name__} has no class probabilities, which this measure requires: "
            "use a likelihood of classes, such as Hinge or CrammerSinger"
        )
    if label_columns(likelihood, num_latents) not in (None, 1):
        raise ValueError(
            f"each row has {num_latents} binary labels, but must have one here: CrammerSinger and "
            "OneVsRest use a single label for C classes"
        )


@check_shapes("p: [batch..., C]", "return: [batch..., D]")
def with_both_classes(p: Any) -> Any:
    """:return: probabilities of all classes, given these or the single column p(y = 1)."""
    joined = tf.concat if tf.is_tensor(p) else np.concatenate
    return joined([1 - p, p], axis=-1) if p.shape[-1] == 1 else p


def check_columns(Y: Any, columns: int | None, what: str, otherwise: str = "") -> None:
    """
    Check the shape of labels: a wrong shape would broadcast against f and give wrong results.

    :param Y: an array or tensor; in graphs only the known part of its shape is checked.
    :raise ValueError: unless Y is [..., columns].
    """
    *batch, found = Y.shape
    if found != columns and (not batch or None not in (found, columns)):
        hint = "use Y[:, None]" if not batch else otherwise
        raise ValueError(f"{what}, got shape {tuple(Y.shape)}{hint and f'; {hint}'}")


def check_class_column(Y: Any) -> None:
    """:raise ValueError: unless Y is [..., 1]."""
    what = "class labels must form one column of integers"
    check_columns(Y, 1, what, "for one-hot rows use Y.argmax(axis=1)[:, None]")


def as_column(likelihood: Likelihood, Y: Any, F: Any = None) -> Any:
    """
    :param F: latent functions of the same rows, if known.
    :return: Y, as a column if it holds class numbers [N], which GPflow's `MultiClass` accepts.
    """
    if np.ndim(Y) != 1 or np.ndim(F) == 1 or not hasattr(likelihood, "num_classes"):
        return Y
    column = tf.expand_dims(Y, -1) if tf.is_tensor(Y) else np.expand_dims(Y, -1)
    if F is not None:
        check_rows(F, F, column)
    return column


def check_rows(X: Any, F: Any, Y: Any) -> None:
    """
    :param X: inputs; F: values or moments of f there.
    :raise ValueError: if Y does not have as many rows as f, and would be broadcast (only checked
        outside of graphs).
    """
    if tf.executing_eagerly():
        inputs, functions, labels = (tuple(np.shape(part)[:-1]) for part in (X, F, Y))
        if inputs == functions != labels and len(labels) == len(inputs):
            raise ValueError(f"X has {inputs[-1]} rows and Y has {labels[-1]}; they must be equal")


def check_class_labels(Y: Any, num_classes: int, what: str = "class labels") -> AnyNDArray:
    """
    :return: the distinct labels.
    :raise ValueError: unless all are whole numbers in 0..C-1.
    """
    found: AnyNDArray = np.unique(np.asarray(Y))
    numbers = found if found.dtype.kind in "biuf" else np.full(len(found), np.nan)
    wrong = found[(numbers != np.round(numbers)) | (numbers < 0) | (numbers >= num_classes)]
    if len(wrong):
        raise ValueError(f"{what} must be integers in 0..{num_classes - 1}, got {wrong.item(0)!r}")
    return found


def check_labels(likelihood: Likelihood, Y: Any, *, minibatch: bool = False) -> None:
    """
    :param minibatch: whether classes may be absent.
    :raise ValueError: if the likelihood's own `check_labels`, if any, rejects Y; for labels that
        GPflow's likelihood would accept with wrong results.
    """
    if hasattr(likelihood, "check_labels"):
        likelihood.check_labels(Y, minibatch=minibatch)
    elif isinstance(likelihood, Bernoulli):  # treats every label but 1 as 0
        check_binary_labels(Y, minibatch=True)
    elif isinstance(likelihood, (Softmax, MultiClass)):
        check_class_column(Y)
        check_class_labels(Y, likelihood.latent_dim or 1)
    elif isinstance(likelihood, SwitchedLikelihood):
        Y = np.asarray(Y)
        parts = likelihood.likelihoods
        check_class_labels(Y[:, -1], len(parts), "numbers of likelihoods (Y's last column)")
        for n in np.unique(Y[:, -1]).astype(int):
            check_labels(parts[n], Y[Y[:, -1] == n, :-1], minibatch=True)
    else:
        check_numeric(Y)


def check_numeric(Y: Any) -> None:
    """:raise ValueError: if labels are words, dates or other objects."""
    Y = np.asarray(Y)
    if Y.dtype.kind not in "biuf":
        raise ValueError(f"Y must hold numbers, got {Y.dtype}: classes need a classifier")


def label_numbers(likelihood: Likelihood, Y: Any) -> Any:
    """:return: Y as the likelihood computes with it: default floats; integers for `Softmax`."""
    dtype: Any = np.int64 if isinstance(likelihood, Softmax) else default_float()
    return tf.cast(Y, dtype) if tf.is_tensor(Y) else np.asarray(Y, dtype)


def check_binary_labels(Y: Any, *, minibatch: bool = False) -> None:
    """
    :param minibatch: whether a class may be absent.
    :raise ValueError: unless Y holds both classes, in one encoding: {0, 1} or {-1, +1}.
    """
    labels = np.unique(np.asarray(Y))
    if not any(np.isin(labels, encoding).all() for encoding in ((0, 1), (-1, 1))):
        shown = ", ".join(repr(label) for label in labels[:5].tolist())
        raise ValueError(
            f"binary labels must be in {{0, 1}} or in {{-1, +1}}, got {{{shown}"
            f"{', ...' if len(labels) > 5 else ''}}}; recode Y, or use gpflow_bsvm.BSVMClassifier, "
            "which accepts any labels, or CrammerSinger for several classes"
        )
    if len(labels) < 2 and not minibatch:
        raise ValueError(
            f"Y holds one class only ({labels[0]}); a classifier needs rows of both classes"
        )


@check_shapes("F: [broadcast batch..., L]", "return: [broadcast batch..., L]")
def signs(Y: TensorType, F: TensorType) -> tf.Tensor:
    """
    Convert labels in {0, 1} or {-1, +1} to y in {-1, +1}. In a graph, where a check is expensive,
    any other label becomes NaN.

    :param F: latent functions of the same rows.
    :raise ValueError: unless Y is [..., L]; outside of graphs, also for any other label.
    """
    Y = to_default_float(Y)
    L = tf.convert_to_tensor(F).shape[-1]
    check_columns(Y, L, f"binary labels must have shape [..., {L}], one for each latent function")
    if tf.executing_eagerly():
        check_binary_labels(Y, minibatch=True)
    one = tf.ones_like(Y)
    return tf.where(Y == 1, one, tf.where((Y == 0) | (Y == -1), -one, np.nan))
