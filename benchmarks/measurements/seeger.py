"""Table 1 of Seeger (2000): six sets, training sets of 80 to 800 rows, test errors counted.

Sets and sizes as printed; all inputs standardised on the whole set, as the paper does. The kernel
is the paper's, C (exp(-1/2d sum w (x - x')^2) + v), from C = 4, w = 1, C v = 1, without a
hyperprior. Rows of kind

- "errors": a split and a method. "posterior" is the sign of the mean of q; "plugged in" that of the
  mode at the learned kernel: the support vector machine (of a bias with a prior), and for the
  logistic likelihood Laplace's. The loss is normalised, of slope 1. To the kernel of the
  variational method a White of variance .1 is added, without which few factors cannot follow the
  prior (see "rank"); "as printed" is without. "VEM" is the same loss under a full covariance,
  without a White. What is cheap has ten splits of all sets, the rest as many as `STAGES` says.
- "rank": crabs, split 0, -F of q at the kernel that `VEM` learns there (C = 16600, lengthscales
  8.3 and 8.7 of the second and third input, no others), against the number of factors.
- "inner": there, with the White, GPflow's `Scipy` with L-BFGS and with conjugate gradients,
  100 iterations of each: evaluations, and the bound that they come to.

    python run.py seeger               fits that are missing, and all rows
    LIMIT=600 python run.py seeger     no fit is begun after ten minutes of processor time

Rows are kept in results/seeger as they come. Seconds are processor time.
"""

from __future__ import annotations

import itertools
import warnings
from collections.abc import Callable, Iterator
from functools import partial

import gpflow
import numpy as np
import tensorflow as tf
from gpflow.kernels import Kernel
from gpflow.likelihoods import ScalarLikelihood
from sklearn.gaussian_process import GaussianProcessClassifier
from sklearn.gaussian_process.kernels import RBF, ConstantKernel
from sklearn.linear_model import LinearRegression
from sklearn.model_selection import GridSearchCV, StratifiedKFold
from sklearn.svm import SVC

import gpflow_bsvm as gb
from gpflow_bsvm.inference import CAVI, VEM
from gpflow_bsvm.papers import gold2003, seeger2000
from gpflow_bsvm.papers.seeger2000 import NestedLoop, NormalizedHinge

from ._kept import Kept
from ._seeger_data import SIZES, Split, split

RANK, NUGGET = 10, 0.1
#: What `VEM` learns of crabs, split 0: C and lengthscales.
LEARNED = 16600.0, (1e4, 8.3, 8.7, 1e4, 1e4)
#: Where the loop ends, if it has not converged: sooner with more rows than this.
FEW_ROWS = 200
LOOP = NestedLoop(max_steps=20, tol=1e-3)
SHORT_LOOP = NestedLoop(max_steps=6, tol=1e-3, inner_iterations=100)
GRID = {"C": np.geomspace(0.1, 1000, 5)}
Fit = Callable[[Split], Iterator[dict]]


def run() -> list[dict]:
    warnings.simplefilter("ignore")
    kept = Kept("seeger")
    for part, key, fit in _wanted():
        kept.complete(part, key, fit)
    return kept.rows("kind", "data", "method", "split", "nugget", "rank")


def _wanted() -> Iterator[tuple[str, dict, Callable]]:
    """Yield file, key of the row and fit."""
    for nugget, rank in itertools.product((0.0, NUGGET), (3, 10, 30)):
        key = {"kind": "rank", "data": "crabs", "nugget": nugget, "rank": rank}
        yield "ranks", key, partial(_rank, nugget, rank)
    for method in ("L-BFGS-B", "CG"):
        key = {"kind": "inner", "data": "crabs", "nugget": NUGGET, "rank": RANK, "method": method}
        yield "inner", key, partial(_inner, method)
    for number, (method, fit, splits), name in itertools.product(range(MANY), STAGES, SIZES):
        if number < splits.get(name, 0):
            key = {"kind": "errors", "data": name, "split": number, "method": method}
            yield name, key, partial(_on, fit, name, number)


def _on(fit: Fit, name: str, number: int) -> Iterator[dict]:
    return fit(split(name, number))


def _kernel(num_features: int, nugget: float = 0.0) -> Kernel:
    ard = gpflow.kernels.SquaredExponential(4.0, lengthscales=[num_features**0.5] * num_features)
    return _with(ard + gpflow.kernels.Constant(1.0), nugget)


def _with(kernel: Kernel, nugget: float) -> Kernel:
    if not nugget:
        return kernel
    white = gpflow.kernels.White(nugget)
    gpflow.set_trainable(white, False)
    return kernel + white


class Logistic(ScalarLikelihood):
    """GPflow's Bernoulli(tf.sigmoid) is minus infinity where f is below -745, as it comes to be."""

    def _scalar_log_prob(self, X: tf.Tensor, F: tf.Tensor, Y: tf.Tensor) -> tf.Tensor:
        return -tf.nn.softplus((1 - 2 * Y) * F)


def _variational(of: Split, logistic: bool = False, nugget: float = NUGGET) -> Iterator[dict]:
    """The paper's method, and the mode at its kernel."""
    likelihood = Logistic() if logistic else NormalizedHinge(1.0)
    gpflow.set_trainable(likelihood, False)
    model = seeger2000.FactorVGP(of.data, _kernel(of.X.shape[1], nugget), likelihood, rank=RANK)
    loop = LOOP if len(of.X) <= FEW_ROWS else SHORT_LOOP
    history = loop.run(model, progress=False)
    yield _learned(of, model, history) | {"converged": history.converged}
    if logistic:
        yield {"method": f"{LOGISTIC}, plugged in", **_counted(of, _laplace(of, model.kernel))}
    else:
        name = PAPERS if nugget else PRINTED
        yield {"method": f"{name}, plugged in", **_plugged(of, model.kernel)}


def _full(of: Split) -> Iterator[dict]:
    """The same loss and kernel under a full covariance, learned by `VEM`."""
    likelihood = NormalizedHinge(1.0)
    gpflow.set_trainable(likelihood, False)
    model = gb.models.BatchBSVM(of.data, _kernel(of.X.shape[1]), likelihood)
    yield _learned(of, model, VEM().run(model, progress=False))
    yield {"method": "VEM, plugged in", **_plugged(of, model.kernel)}


def _learned(of: Split, model: gpflow.models.GPModel, history: gb.inference.History) -> dict:
    """Inputs below a tenth of the largest 1 / lengthscale, and the most relevant, from 1."""
    scales = model.kernel.kernels[0].lengthscales.numpy()
    found = _counted(of, model.predict_f(of.X_test)[0].numpy())
    found |= {"elbo": history.elbo[-1], "steps": len(history)}
    ignored = int(np.sum(scales.min() / scales < 0.1))
    return found | {"ignored": ignored, "first": int(np.argmin(scales)) + 1}


def _plugged(of: Split, kernel: Kernel) -> dict:
    mode = gold2003.svm_mode(kernel, of.data, 1.0)
    f = mode.predict(kernel, of.X, of.X_test)
    return _counted(of, f) | {"support": len(mode.support)}


def _counted(of: Split, f: np.ndarray) -> dict:
    return {"errors": of.errors(f)}


def _laplace(of: Split, kernel: Kernel | None = None) -> np.ndarray:
    """Williams and Barber's, by scikit-learn, which learns the kernel unless one is given."""
    ard, constant = (kernel or _kernel(of.X.shape[1])).kernels[:2]
    C, v = float(ard.variance.numpy()), float(constant.variance.numpy())
    rbf = RBF(ard.lengthscales.numpy(), (1e-2, 1e4))
    both = ConstantKernel(C, (1e-3, 1e5)) * rbf + ConstantKernel(v, (1e-5, 1e4))
    how = {} if kernel is None else {"optimizer": None}
    gpc = GaussianProcessClassifier(both, **how).fit(of.X, of.y)
    return gpc.predict_proba(of.X_test)[:, 1] - 0.5


def _classifier(of: Split) -> np.ndarray:
    classifier = gb.BSVMClassifier().fit(of.X, of.y)
    return classifier.predict_proba(of.X_test)[:, 1] - 0.5


def _svc(of: Split) -> np.ndarray:
    grid = {**GRID, "gamma": np.array([0.03, 0.1, 0.3, 1.0, 3.0]) / (2 * of.X.shape[1])}
    folds = StratifiedKFold(10, shuffle=True, random_state=0)
    return GridSearchCV(SVC(), grid, cv=folds).fit(of.X, of.y).decision_function(of.X_test)


def _linear(of: Split) -> np.ndarray:
    return LinearRegression().fit(of.X, 2 * of.y - 1).predict(of.X_test)


def _one(predict: Callable[[Split], np.ndarray]) -> Fit:
    return lambda of: iter([_counted(of, predict(of))])


def _on_crabs(nugget: float) -> tuple[Split, Kernel, NormalizedHinge]:
    """At what is learned there."""
    likelihood = NormalizedHinge(1.0)
    ard = gpflow.kernels.SquaredExponential(*LEARNED) + gpflow.kernels.Constant(1.0)
    kernel = _with(ard, nugget)
    gpflow.set_trainable(likelihood, False)
    gpflow.set_trainable(kernel, False)
    return split("crabs", 0), kernel, likelihood


def _rank(nugget: float, rank: int) -> Iterator[dict]:
    """Beside the best q, of a full covariance."""
    of, kernel, likelihood = _on_crabs(nugget)
    full = gb.models.BatchBSVM(of.data, kernel, likelihood)
    CAVI(tol=1e-8).run(full, progress=False)
    model = seeger2000.FactorVGP(of.data, kernel, likelihood, rank=rank)
    elbo = NestedLoop(inner_tol=1e-8, inner_iterations=300).run(model, progress=False).elbo[-1]
    yield {"elbo": elbo, "best": float(full.elbo())}


def _inner(method: str) -> Iterator[dict]:
    of, kernel, likelihood = _on_crabs(NUGGET)
    model = seeger2000.FactorVGP(of.data, kernel, likelihood, rank=RANK)
    what = model.training_loss, model.trainable_variables
    found = gpflow.optimizers.Scipy().minimize(*what, method=method, options={"maxiter": 100})
    yield {"evaluations": found.nfev, "elbo": -float(found.fun)}


PAPERS, LOGISTIC, PRINTED = "variational SVM", "variational GP", "as printed, SVM"
FEW, MANY = 3, 10
ALL = dict.fromkeys(SIZES, MANY)
#: Method, fit, and splits of each set.
STAGES: tuple[tuple[str, Fit, dict[str, int]], ...] = (
    ("linear", _one(_linear), ALL),
    ("SVM 10-CV", _one(_svc), ALL),
    ("BSVMClassifier", _one(_classifier), ALL),
    (f"{PAPERS}, posterior", _variational, ALL),
    (f"{PRINTED}, posterior", partial(_variational, nugget=0.0), {"crabs": FEW}),
    (f"{LOGISTIC}, posterior", partial(_variational, logistic=True), ALL),
    ("GP Laplace", _one(_laplace), ALL),
    ("VEM, posterior", _full, ALL),
)
