"""Where seconds are felt: fits and predictions beside peers, and beside an older version.

    BESIDE=FOLDER python run.py seconds     also an older checkout's classifier, in turn with ours

Every line is a process of its own, with one thread. `seconds` is processor time, the median where
something is repeated; the first fit or call, which traces, does not count (but in "first").
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
import warnings
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

import numpy as np
from store import Kept

HERE = Path(__file__).resolve().parents[2]
DEFAULT_SETS = ("breast-cancer", "banana-like", "even-digits", "iris")
MANY = ("digits", "vowel", "mfeat-karhunen")
REPEATS = 3


def run() -> list[dict]:
    kept = Kept("seconds")
    folders = {"this": HERE, "older": os.environ.get("BESIDE")}
    for line in LINES:
        for version, folder in folders.items():
            if folder:
                key = {"line": line, "version": version}
                kept.complete(line, key, partial(_rows, folder, line))
    return kept.rows("line", "data", "version", "method")


def _rows(folder: str | Path, line: str) -> list[dict]:
    """:return: rows of a line, by the package in `folder`."""
    path = os.pathsep.join([str(folder), str(HERE / "benchmarks")])
    env = os.environ | {"PYTHONPATH": path, "OMP_NUM_THREADS": "1", "TF_CPP_MIN_LOG_LEVEL": "3"}
    own = [] if Path(folder) == HERE else ["older"]
    call = [sys.executable, "-m", "measurements.seconds", line, *own]
    done = subprocess.run(call, env=env, cwd="/", text=True, stdout=subprocess.PIPE, check=True)
    return json.loads(done.stdout.splitlines()[-1])


def _default_set(name: str, older: bool) -> Iterator[dict]:
    """The classifier beside GPflow's SVGP at its M; `bsvm` and `svgp` at the same M and kernel."""
    X, y, *_ = _split(name)
    classifier = _classifier()
    yield {"data": name, "method": "BSVMClassifier", **_again(partial(classifier.fit, X, y))}
    if not older:
        for method, fit in _gaussian_processes(X, y, _size(classifier)).items():
            yield {"data": name, "method": method, **_again(fit)}


def _gaussian_processes(X: np.ndarray, y: np.ndarray, size: int) -> dict[str, Callable]:
    from gpflow_bsvm.compare.baselines import KernelSettings
    from gpflow_bsvm.compare.gp_baselines import make_baseline

    kernel = KernelSettings(np.sqrt(X.shape[1]), 4.0, learn=True)

    def fit(method: str, size: int) -> Callable:
        from gpflow_bsvm.inducing_points import kmeans

        model = make_baseline(method, int(y.max()) + 1)
        Z = kmeans(X, min(size, len(X)))
        return lambda: model.fit(X, y, Z, kernel, 0)

    at_its_size = {"svgp, its M": fit("svgp", size)}
    return at_its_size | {"svgp, M = 50": fit("svgp", 50), "bsvm, M = 50": fit("bsvm", 50)}


def _first(older: bool) -> Iterator[dict]:
    """The README's example, twice in a new process."""
    X, y, *_ = _split("breast-cancer")
    first, second = (
        _seconds(lambda: _classifier().fit(X, y)),
        _again(lambda: _classifier().fit(X, y), 3),
    )
    yield {"data": "breast-cancer", "method": "first", "seconds": first}
    yield {"data": "breast-cancer", "method": "second", **second}


def _sizes(older: bool) -> Iterator[dict]:
    """make_classification with 2000 and 50 000 rows."""
    from sklearn.datasets import make_classification

    for n in (2_000, 50_000):
        X, y = make_classification(n + 5_000, 20, n_informative=10, random_state=0)
        classifier = _classifier()
        took = _again(partial(classifier.fit, X[:n], y[:n]), 3)
        scores = _scores(classifier, X[n:], y[n:])
        yield {"data": f"make_classification, {n} rows", "method": "BSVMClassifier"} | took | scores


def _many_classes(name: str, older: bool) -> Iterator[dict]:
    X, y, X_new, y_new = _split(name)
    models = {"BSVMClassifier": _classifier(), **({} if older else _peers())}
    for method, model in models.items():
        took = _again(partial(model.fit, X, y), 1)
        yield {"data": name, "method": method} | took | _scores(model, X_new, y_new)


def _peers() -> dict:
    from sklearn.calibration import CalibratedClassifierCV
    from sklearn.gaussian_process import GaussianProcessClassifier
    from sklearn.gaussian_process.kernels import RBF
    from sklearn.model_selection import GridSearchCV
    from sklearn.svm import SVC

    grid = {"C": 10.0 ** np.arange(-1, 4), "gamma": 10.0 ** np.arange(-3.0, 1.0)}
    svc = CalibratedClassifierCV(GridSearchCV(SVC(), grid, cv=3), cv=5, ensemble=False)
    return {"svc, grid": svc, "sklearn GPC": GaussianProcessClassifier(1.0 * RBF(2.0))}


def _predictions(older: bool) -> Iterator[dict]:
    """One row and 10 000 rows, beside a compiled `predict_y` of a plain SVGP of the same M."""
    import gpflow
    import tensorflow as tf
    from sklearn.datasets import make_classification

    X, y = make_classification(12_000, 20, n_informative=10, random_state=0)
    classifier = _classifier().set_params(num_inducing=100).fit(X[:2_000], y[:2_000])
    Z = X[: _size(classifier)]
    kernel = gpflow.kernels.SquaredExponential(lengthscales=np.ones(20))
    svgp = gpflow.models.SVGP(kernel, gpflow.likelihoods.Bernoulli(), Z)
    shape = [tf.TensorSpec([None, 20], tf.float64)]
    predict_y = tf.function(lambda X: svgp.predict_y(X)[0], input_signature=shape)
    calls = {"BSVMClassifier": classifier.predict_proba, "svgp": lambda X: predict_y(X).numpy()}
    for rows, repeats in ((1, 300), (10_000, 9)):
        new = X[2_000 : 2_000 + rows]
        for method, call in calls.items():
            took = _again(partial(call, new), repeats)
            yield {"data": f"{rows} rows", "method": method} | took


LINES = {
    "first fit": _first,
    "predictions": _predictions,
    "sizes": _sizes,
    **{f"many classes: {name}": partial(_many_classes, name) for name in MANY},
    **{f"default: {name}": partial(_default_set, name) for name in DEFAULT_SETS},
}


def _classifier():
    from gpflow_bsvm import BSVMClassifier

    return BSVMClassifier(random_state=0)


def _size(classifier) -> int:
    """:return: M."""
    return len(classifier.model_.q_mu.numpy())


def _split(name: str) -> tuple[np.ndarray, ...]:
    """:return: X, y of three quarters of the rows, standardised, and of the rest."""
    from sklearn.model_selection import train_test_split
    from sklearn.preprocessing import StandardScaler

    from ._common import numbered

    X, y = numbered(name)
    X, X_new, y, y_new = train_test_split(X, y, test_size=0.25, stratify=y, random_state=0)
    scaler = StandardScaler().fit(X)
    return scaler.transform(X), y, scaler.transform(X_new), y_new


def _again(call: Callable, repeats: int = REPEATS) -> dict[str, float]:
    """:return: the median of the times after a first one."""
    call()
    return {"seconds": float(np.median([_seconds(call) for _ in range(repeats)]))}


def _seconds(call: Callable) -> float:
    start = time.process_time()
    call()
    return time.process_time() - start


def _scores(model, X: np.ndarray, y: np.ndarray) -> dict[str, float]:
    from sklearn.metrics import log_loss

    P = model.predict_proba(X)
    return {"error": float((P.argmax(axis=1) != y).mean()), "nll": float(log_loss(y, P))}


if __name__ == "__main__":
    import tensorflow as tf

    tf.config.threading.set_intra_op_parallelism_threads(1)
    tf.config.threading.set_inter_op_parallelism_threads(1)
    warnings.simplefilter("ignore")
    print(json.dumps(list(LINES[sys.argv[1]](len(sys.argv) > 2))))
