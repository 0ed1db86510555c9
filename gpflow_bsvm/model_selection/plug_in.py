"""A scikit-learn SVC with learned hyperparameters, and a Bayesian SVM that starts from an SVC."""

from __future__ import annotations

from functools import partial
from typing import Any, NamedTuple

import numpy as np
from gpflow.base import AnyNDArray
from gpflow.config import default_float
from gpflow.functions import Zero
from gpflow.kernels import Kernel, Linear, MultioutputKernel, SharedIndependent, SquaredExponential
from scipy.sparse import issparse
from sklearn.frozen import FrozenEstimator
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.svm import SVC
from sklearn.utils.validation import check_is_fitted

from ..engine.projection import values_of
from ..engine.structure import copied
from ..likelihoods import OneClass
from ..likelihoods.base import check_penalty
from ..likelihoods.classes import Classification


def gram_matrix(kernel: Kernel, X: Any, X2: Any = None) -> AnyNDArray:
    """
    :return: k(x, x2), [N, N2].
    :raise TypeError: unless `kernel` is a kernel of one latent function.
    :raise ValueError: if the kernel rejects X, or the matrix is not finite.
    """
    if not isinstance(kernel, Kernel) or isinstance(kernel, MultioutputKernel):
        raise TypeError(
            f"expected a GPflow kernel of one latent function, got {type(kernel).__name__}"
        )
    X, X2 = (one.toarray() if issparse(one) else one for one in (X, X2))
    X, X2 = (one if one is None else np.asarray(one, default_float()) for one in (X, X2))
    try:
        gram: AnyNDArray = np.asarray(kernel(X, X2))
    except Exception:
        values_of(kernel, X[:1])  # its error names the part that rejects X
        raise
    if not np.isfinite(gram).all():
        raise ValueError(
            "the kernel overflows or is NaN on X: standardize X and check the kernel's parameters"
        )
    return gram


def plug_in(fitted: Any, *, rbf: bool = False, **options: Any) -> SVC | Pipeline:
    """
    An SVC with the learned kernel and penalty; call its `fit(X, y)`. It keeps only its support
    vectors, and has LibSVM's unpenalized bias, which the Bayesian SVM lacks.

    For `LevelHinge`, the penalty is the levels' mean slope; several classes are treated one-vs-one,
    as usual for SVC.

    :param fitted: a `BSVMClassifier` (the SVC scales X in the same way), or a `BSVM`, `BatchBSVM`,
        `LinearBSVM` or another object with a kernel and a likelihood with a penalty. The kernel is
        copied.
    :param rbf: use LibSVM's own kernel, with gamma = 1 / (2 lengthscale^2) and C = penalty times
        variance: faster, but only for `SquaredExponential` with a single lengthscale.
    :param options: options of SVC, such as `probability`; `class_weight` is by default the
        classifier's.
    :return: an unfitted SVC; a pipeline if X is scaled.
    :raise TypeError: without a kernel and a likelihood of classes with a penalty (not `OneClass`).
    :raise ValueError: for quadratic slack, a mean function or `impute`, which SVC lacks, or another
        kernel with `rbf`. An unfitted classifier raises scikit-learn's `NotFittedError`.
    """
    if hasattr(fitted, "get_params"):
        check_is_fitted(fitted)
    if getattr(fitted, "fill_", None) is not None:
        raise ValueError(
            "SVC cannot fill missing values, as impute=True does: fill X first, for instance with "
            "sklearn.impute.SimpleImputer, and fit the classifier without impute"
        )
    if "class_weight" not in options:
        options["class_weight"] = _keyed_as_in_svc(getattr(fitted, "class_weight", None))
    scaler = getattr(fitted, "scaler_", None)
    kernel, penalty = _parts(getattr(fitted, "model_", fitted))
    if rbf:
        gamma, variance = _as_rbf(kernel)
        svc = SVC(kernel="rbf", gamma=gamma, C=penalty * variance, **options)
    else:
        svc = SVC(kernel=partial(gram_matrix, copied(kernel)), C=penalty, **options)
    return svc if scaler is None else make_pipeline(FrozenEstimator(scaler), svc)


def _keyed_as_in_svc(class_weight: Any) -> Any:
    """
    :return: weights; keys such as "1" become whole numbers, because SVC looks for these.
    :raise ValueError: if SVC takes two labels for the same number, or cannot read them.
    """
    if not isinstance(class_weight, dict):
        return class_weight
    found = {}
    for label, weight in class_weight.items():
        try:
            found[int(label)] = weight
        except ValueError:
            found[label] = weight
        except TypeError:  # a date
            break
    if len(found) < len(class_weight):
        raise ValueError(
            f"SVC reads labels of class_weight as numbers, and cannot read {[*class_weight]}: "
            "give class_weight=None, and the weights of rows as sample_weight of its fit"
        )
    return found


def _parts(model: Any) -> tuple[Kernel, float]:
    """:return: kernel and penalty, if an SVC supports them."""
    kernel: Any = getattr(model, "kernel", None)
    likelihood: Any = getattr(model, "likelihood", None)
    kernel = kernel.kernel if isinstance(kernel, SharedIndependent) else kernel
    classes = isinstance(likelihood, Classification) and not isinstance(likelihood, OneClass)
    if not (isinstance(kernel, Kernel) and classes and hasattr(likelihood, "penalty")):
        raise TypeError(
            "expected a BSVMClassifier, or a model with a kernel and a likelihood of classes with "
            f"a penalty, such as Hinge (not OneClass); got {type(model).__name__} with likelihood "
            f"{type(likelihood).__name__}"
        )
    if getattr(likelihood, "slack", "linear") != "linear":
        raise ValueError(
            "SVC has linear slack: for SquaredHinge(penalty) use gpflow_bsvm.papers.gold2003."
            "svm_mode(kernel, data, 2 * penalty, slack='quadratic') and its predict"
        )
    mean_function = getattr(model, "mean_function", None)
    if not (mean_function is None or isinstance(mean_function, Zero)):
        raise ValueError(
            f"SVC has no mean function, but the model has {type(mean_function).__name__}; use a "
            "Constant or Linear kernel instead"
        )
    return kernel, float(likelihood.penalty.numpy())


def _as_rbf(kernel: Kernel) -> tuple[float, float]:
    whole = isinstance(kernel.active_dims, slice) and kernel.active_dims == slice(None)
    scales = np.unique(kernel.lengthscales.numpy()) if type(kernel) is SquaredExponential else []
    if not whole or len(scales) != 1:
        raise ValueError(
            "rbf=True needs a SquaredExponential with one lengthscale for all columns, got "
            f"{type(kernel).__name__}{' with several' if len(scales) > 1 else ''}; leave rbf out"
        )
    return float(0.5 / scales[0] ** 2), float(kernel.variance.numpy())


class Start(NamedTuple):
    """A kernel and a penalty (of `Hinge`), the initial values of a Bayesian SVM."""

    kernel: Kernel
    penalty: float


def start_from(svc: Any, *, penalty: float | None = None) -> Start:
    """
    Convert an SVC's C and kernel, for instance from a grid search, to initial values of a Bayesian
    SVM: the same machine without its unpenalized bias. If the SVC has a `class_weight`, give the
    fit these weights as `sample_weight`.

    :param svc: an SVC with kernel "rbf" or "linear", fitted unless its gamma is a number; or a
        fitted search over such SVCs, such as `GridSearchCV` (its best SVC is used).
    :param penalty: initial penalty; if None, C. The variance is adjusted, because only the product
        of penalty and variance matters.
    :raise TypeError: for any other `svc`.
    :raise ValueError: for another kernel or C, or a gamma that is 0 or requires a fit.
    """
    svc = getattr(svc, "best_estimator_", svc)
    if not isinstance(svc, SVC):
        raise TypeError(
            "expected a scikit-learn SVC, or a fitted search over SVCs, got "
            f"{type(svc).__name__}; give the SVC of a pipeline, such as pipeline[-1]"
        )
    C = check_penalty(svc.C, "the SVC's C")
    penalty = C if penalty is None else check_penalty(penalty)
    variance = C / penalty
    if svc.kernel == "rbf":
        named = isinstance(svc.gamma, str)
        gamma = getattr(svc, "_gamma", svc.gamma) if named else svc.gamma  # fitted: a number
        if isinstance(gamma, str):
            raise ValueError(f'gamma="{gamma}" depends on X: fit the SVC first')
        if not gamma > 0:
            raise ValueError(f"with gamma = {gamma}, the kernel is the same for all rows: raise it")
        return Start(SquaredExponential(variance, lengthscales=(0.5 / gamma) ** 0.5), penalty)
    if svc.kernel == "linear":
        return Start(Linear(variance), penalty)
    raise ValueError(f'start_from needs an SVC with kernel "rbf" or "linear", got {svc.kernel!r}')
