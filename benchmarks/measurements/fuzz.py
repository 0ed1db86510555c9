"""Fits of anything by anything: each ends in numbers that are right, or in one clear error.

A fit is drawn by its seed: model, kernel, mean function, likelihood, penalty, algorithm, rows
(N 1 to 300, scales 1e-8 to 1e8, constant columns, equal rows, rare and single classes, weights,
denormal numbers, single precision). Its outcome is

    right   all is finite, an evaluation by GPflow's own path confirms the last ELBO where the
            algorithm promises it, no ascent fell, probabilities are probabilities;
    warned  the same, with a warning;
    error   one sentence of this package or of GPflow, no internal error of a library;
    prior   q says nothing of any row, and no warning said so;
    WRONG   anything else, with what was wrong as message.

Rows are kept as they come in results/fuzz/fits.csv, and a fit that has a row is not made again.
Parts of `PART` fits have a process each, so that a crash is seen and graphs do not pile up.
`python benchmarks/measurements/fuzz.py FIRST LAST` makes these, and says what was not right.
"""

from __future__ import annotations

import csv
import os
import re
import subprocess
import sys
import time
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

FITS, PART = 2000, 250
PATH = Path(__file__).parents[1] / "results" / "fuzz" / "fits.csv"
#: A warning with one of these says that q knows nothing of the rows.
TOLD = ("next to nothing", "q is as it was")
#: A warning with this says that digits are gone; another evaluation has others.
ROUNDED = "float64 does not hold this q"
#: An eager evaluation adds in another order: rounding of the ELBO's terms, and of q's conditioning.
TOLERANCE = 1e-6
#: A mean of all |E f - m| below this part of a standard deviation says nothing.
NOTHING = 1e-3
#: What the messages of libraries to programmers have in them.
INTERNAL = ("in user code", "{{", "Traceback", "Op:", "Value passed to parameter")
#: What these need, most of the time: else they say that the likelihood will not do.
DRAWN = {"Gibbs": ("Hinge", "OneVsRest"), "ECM": ("Hinge augmented", "OneVsRest augmented")}
COLUMNS = (
    *("seed", "model", "kernel", "mean", "likelihood", "algorithm", "rows", "n", "m", "d"),
    *("scale", "variance", "penalty", "outcome", "message", "elbo", "eager", "seconds"),
)
MODELS = {"BSVM": 10, "separate": 2, "LinearBSVM": 2, "BatchBSVM": 2, "DualBSVM": 2, "FactorVGP": 1}
KERNELS = (
    *("SquaredExponential", "Matern12", "Matern32", "Matern52", "RationalQuadratic", "Linear"),
    *("Polynomial", "Periodic", "sum", "product", "White", "ARD", "active_dims", "own"),
)
ROWS = {
    **{"plain": 8, "constant column": 1, "equal": 1, "pairs": 1, "imbalanced": 2, "one class": 1},
    **{"weights": 2, "denormal": 1, "float32": 1, "separable": 1},
}
BINARY = {
    **{"Hinge": 3, "Hinge augmented": 2, "SquaredHinge": 1, "NormalizedHinge": 1, "Probit": 1},
    **{"LevelHinge": 2, "Bernoulli": 1, "Hinge normalizer": 1},
}
SEVERAL = {
    **{"CrammerSinger": 3, "CrammerSinger augmented": 1, "OneVsRest": 2, "OneVsRestLevelHinge": 2},
    **{"MultiClass": 1, "Softmax": 1, "OneVsRest augmented": 1},
}
ALGORITHMS = {
    **{"CAVI": 4, "fit": 2, "SVI": 3, "VEM": 3, "ML2": 2, "ECM": 1, "Gibbs": 1, "HMC": 1},
    **{"Streaming": 2, "classifier": 0.3},
}


class Case(NamedTuple):
    """What a seed draws."""

    seed: int
    model: str
    kernel: str
    mean: str
    likelihood: str
    algorithm: str
    rows: str
    n: int
    m: int
    d: int
    scale: float
    variance: float
    penalty: float


class Fitted(NamedTuple):
    """What a fit leaves: `elbo` empty where the algorithm records none, or an estimate of it."""

    model: Any
    elbo: list[float]
    confirmed: bool  #: whether the last ELBO is that of the model
    rises: bool  #: whether the algorithm promises that it does not fall


def run() -> list[dict]:
    for first in range(0, FITS, PART):
        command = [sys.executable, __file__, str(first), str(min(first + PART, FITS))]
        while left := _missing(first, min(first + PART, FITS)):
            subprocess.run(command, check=False)
            if not (PATH.parent / f".under-way-{first}").exists() and len(left) == len(
                _missing(first, min(first + PART, FITS))
            ):
                raise RuntimeError(f"no fit from {first} on was begun")
    return sorted(_rows().values(), key=lambda row: int(row["seed"]))


def _rows() -> dict[int, dict]:
    if not PATH.is_file():
        return {}
    with PATH.open(encoding="utf-8", newline="") as file:
        return {int(row["seed"]): row for row in csv.DictReader(file)}


def _missing(first: int, last: int) -> list[int]:
    known = _rows()
    return [seed for seed in range(first, last) if seed not in known]


def _append(row: dict) -> None:
    PATH.parent.mkdir(exist_ok=True, parents=True)
    new = not PATH.is_file()
    with PATH.open("a", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, COLUMNS)
        if new:
            writer.writeheader()
        writer.writerow(row)


def draw(seed: int) -> Case:
    """:return: the case of a seed."""
    random = np.random.default_rng(seed)
    pick = lambda of: str(random.choice(list(of), p=np.array([*of.values()]) / sum(of.values())))  # noqa: E731
    model = pick(MODELS)
    algorithm = pick(ALGORITHMS)
    several = random.random() < 0.4
    if model == "FactorVGP":
        algorithm, several = "NestedLoop", False
    if model == "DualBSVM":
        algorithm = "update_sites"
    if algorithm == "classifier":
        model = "BSVM"
    n = min(300, int(np.exp(random.uniform(0, np.log(301)))))
    n += n == 1 and random.random() < 0.7
    if model in ("BatchBSVM", "FactorVGP"):  # a graph each
        n = int(random.choice([1, 2, 5, 20, 60, 150] + [300] * (model == "BatchBSVM")))
    m = int(random.choice([m for m in (1, 2, 5, 15, 30) if m <= n]))
    likelihood = pick(SEVERAL if several else BINARY)
    if algorithm in DRAWN and random.random() < 0.8:
        likelihood = DRAWN[algorithm][several]
    return Case(
        seed=seed,
        model=model,
        kernel=str(random.choice(KERNELS)),
        mean=pick({"Zero": 8, "Constant": 1, "Linear": 1}),
        likelihood=likelihood,
        algorithm=algorithm,
        rows=pick(ROWS),
        n=n,
        m=m,
        d=int(random.choice([1, 2, 5, 20])),
        scale=float(10.0 ** random.uniform(-8, 8)) if random.random() < 0.5 else 1.0,
        variance=float(pick({"1": 4, "10": 3, "1e-8": 1, "1e6": 1, "1e12": 2})),
        penalty=float(pick({"2": 5, "1e-6": 1, "0.1": 1, "30": 1, "1e3": 2})),
    )


def rows_of(case: Case) -> tuple[np.ndarray, np.ndarray, np.ndarray | None]:
    """:return: X, Y and weights."""
    random = np.random.default_rng([case.seed, 1])
    C = 2 if case.likelihood in BINARY else min(int(random.choice([2, 3, 4])), max(2, case.n))
    X = random.normal(size=(case.n, case.d))
    noise = 0.0 if case.rows == "separable" else 0.5
    score = X[:, 0] + noise * random.normal(size=case.n)
    edges = 2.0 if case.rows == "imbalanced" else np.linspace(-1, 1, C + 1)[1:-1]
    Y = np.digitize(score, np.atleast_1d(edges)).astype(float)
    if random.random() < 0.9:  # else few rows may lack a class, which is an error
        Y[:C] = np.arange(C)[: case.n]
    if case.rows == "one class":
        Y[:] = 0
    if case.rows == "constant column":
        X[:, -1] = 3.0
    if case.rows == "equal":
        X[:] = X[0]
    if case.rows == "pairs":
        X[1::2] = X[: len(X) // 2 * 2 : 2][: len(X[1::2])]
    X *= 1e-310 if case.rows == "denormal" else case.scale
    if case.rows == "float32":
        X = X.astype(np.float32)
    weight = random.integers(0, 4, case.n) + (0.5 if random.random() < 0.5 else 1.0)
    return X, Y[:, None], weight if case.rows == "weights" else None


def kernel_of(case: Case, random: np.random.Generator) -> Any:
    import gpflow

    k, scale = gpflow.kernels, case.scale if random.random() < 0.8 else 1.0
    how = {"variance": case.variance, "lengthscales": np.sqrt(case.d) * scale}
    made: dict[str, Callable[[], Any]] = {
        "Linear": lambda: k.Linear(case.variance / scale**2),
        "Polynomial": lambda: k.Polynomial(3, case.variance, 1.0),
        "Periodic": lambda: k.Periodic(k.SquaredExponential(**how), period=2.0 * scale),
        "sum": lambda: k.SquaredExponential(**how) + k.Linear(1 / scale**2) + k.Constant(1.0),
        "product": lambda: k.Matern32(**how) * k.SquaredExponential(1.0, 2.0 * scale),
        "White": lambda: k.SquaredExponential(**how) + k.White(0.1),
        "ARD": lambda: k.SquaredExponential(case.variance, np.full(case.d, scale)),
        "active_dims": lambda: k.Matern52(**how, active_dims=[case.d - 1]),
        "own": lambda: own_kernel()(**how),
    }
    return made.get(case.kernel, lambda: getattr(k, case.kernel)(**how))()


def own_kernel() -> Any:
    """:return: a class as users write them."""
    if not _OWN:
        import gpflow
        import tensorflow as tf

        class Smooth(gpflow.kernels.IsotropicStationary):
            def K_r2(self, r2: Any) -> Any:
                return self.variance / tf.square(1 + r2)

        _OWN.append(Smooth)
    return _OWN[0]


_OWN: list[Any] = []


def likelihood_of(case: Case, num_classes: int) -> Any:
    import gpflow

    from gpflow_bsvm import likelihoods as own

    name, *option = case.likelihood.split()
    if name == "Bernoulli":
        return gpflow.likelihoods.Bernoulli()
    if name in ("MultiClass", "Softmax"):
        return getattr(gpflow.likelihoods, name)(num_classes)
    options: dict[str, Any] = {"augmented": {"bound": "augmented"}, "normalizer": {}}
    how = options[option[0]] if option else {}
    if option == ["normalizer"]:
        how = {"normalizer": True}
    several = (num_classes,) if case.likelihood in SEVERAL else ()
    if name == "Probit":
        return own.Probit()
    if name in ("NormalizedHinge", "SquaredHinge"):
        from gpflow_bsvm.papers import gold2003, seeger2000

        home = seeger2000 if name == "NormalizedHinge" else gold2003
        return getattr(home, name)(case.penalty)
    return getattr(own, name)(*several, penalty=case.penalty, **how)


def model_of(case: Case, X: np.ndarray, Y: np.ndarray) -> Any:
    """:return: the model; it is told the classes that there are to be."""
    import gpflow

    import gpflow_bsvm as gb
    from gpflow_bsvm.papers import seeger2000, wenzel2017

    random = np.random.default_rng([case.seed, 2])
    classes = max(2, int(Y.max()) + 1) + (case.seed % 40 == 0)
    likelihood = likelihood_of(case, classes)
    kernel = kernel_of(case, random)
    latents = {"LevelHinge": 2, "OneVsRestLevelHinge": 2 * classes}.get(
        case.likelihood, classes if case.likelihood in SEVERAL else 1
    )
    how: dict[str, Any] = {"num_latent_gps": latents}
    if case.mean == "Constant":
        how["mean_function"] = gpflow.functions.Constant(np.full(latents, 0.3))
    if case.mean == "Linear":
        how["mean_function"] = gpflow.functions.Linear(np.full((case.d, latents), 0.1 / case.scale))
    if case.model == "LinearBSVM":
        return gb.models.LinearBSVM(case.d, likelihood, case.variance, **how)
    if case.model == "BatchBSVM":
        return gb.models.BatchBSVM((X, Y), kernel, likelihood, **how)
    if case.model == "FactorVGP":
        how.pop("num_latent_gps")
        return seeger2000.FactorVGP((X, Y), kernel, likelihood, rank=min(3, case.n), **how)
    Z = X[random.permutation(case.n)[: case.m]].astype(float)
    if case.model == "DualBSVM":
        return wenzel2017.DualBSVM((X, Y), kernel, likelihood, Z, **how)
    inducing: Any = Z
    if case.model == "separate":
        kernel = gpflow.kernels.SeparateIndependent(
            [kernel_of(case, random) for _ in range(latents)]
        )
        inducing = gpflow.inducing_variables.SharedIndependentInducingVariables(
            gpflow.inducing_variables.InducingPoints(Z)
        )
    return gb.models.BSVM(kernel, likelihood, inducing, **how)


def fit(case: Case, X: np.ndarray, Y: np.ndarray, weight: np.ndarray | None) -> Fitted:
    """:return: the fitted model and what its history promises."""
    import gpflow_bsvm as gb
    from gpflow_bsvm import inference as i
    from gpflow_bsvm.papers import seeger2000

    if case.algorithm == "classifier":
        made = gb.BSVMClassifier(num_inducing=case.m, random_state=0)
        return Fitted(made.fit(X, Y[:, 0], weight), [], False, False)
    model = model_of(case, X, Y)
    data = None if case.model in ("BatchBSVM", "FactorVGP") else (X, Y)
    if case.algorithm == "update_sites":
        exact = weight is None and case.likelihood != "Softmax"  # whose expectations are draws
        return Fitted(model, [model.update_sites(2) for _ in range(5)], exact, exact)
    if case.algorithm in ("Gibbs", "HMC"):
        made = {"Gibbs": i.Gibbs(20, 5, 2), "HMC": i.HMC(10, 10, 2)}[case.algorithm]
        samples = made.run(model, data, sample_weight=weight)
        if not np.isfinite(samples.s).all():
            raise AssertionError("draws are not finite")
        return Fitted(samples, [], False, False)
    minibatches = {"batch_size": 20, "max_steps": 100, "record_every": 25}
    algorithms: dict[str, Callable[[], Any]] = {
        "CAVI": lambda: i.CAVI(max_steps=50),
        "SVI": lambda: i.SVI(**minibatches),
        "VEM": lambda: i.VEM(max_steps=6),
        "ML2": lambda: i.ML2(**minibatches),
        "ECM": lambda: i.ECM(max_steps=50),
        "NestedLoop": lambda: seeger2000.NestedLoop(max_steps=2, inner_iterations=100),
        "Streaming": lambda: i.Streaming(max_steps=50),
    }
    if case.algorithm == "fit":
        history = gb.fit(model, data, sample_weight=weight)
    elif case.algorithm == "Streaming" and case.n > 1 and data is not None:
        half = case.n // 2
        parts = (None, None) if weight is None else (weight[:half], weight[half:])
        i.CAVI(max_steps=50).run(model, (X[:half], Y[:half]), sample_weight=parts[0])
        history = algorithms["Streaming"]().run(model, (X[half:], Y[half:]), sample_weight=parts[1])
    else:
        history = algorithms[case.algorithm]().run(model, data, sample_weight=weight)
    exact = case.algorithm in ("CAVI", "VEM", "NestedLoop", "fit")
    exact &= case.likelihood != "Softmax"
    rises = exact or case.algorithm in ("ECM", "Streaming")
    return Fitted(model, history.elbo, exact and case.algorithm != "SVI", rises)


def eager_elbo(
    model: Any, X: np.ndarray, Y: np.ndarray, weight: np.ndarray | None
) -> tuple[float, float]:
    """:return: the ELBO by GPflow's prediction, likelihood and divergence; its terms' magnitude."""
    if not hasattr(model, "prior_kl"):
        value = float(model.elbo())
        return value, abs(value)
    from gpflow_bsvm.likelihoods.labels import class_numbers

    Y = class_numbers(model.likelihood, Y)  # as a fit does
    expected = model.likelihood.variational_expectations(X, *model.predict_f(X), Y).numpy()
    expected = expected * (1 if weight is None else weight)
    kl = float(model.prior_kl())
    return float(expected.sum() - kl), float(np.abs(expected).sum() + abs(kl))


def judge(
    case: Case, fitted: Fitted, X: np.ndarray, Y: np.ndarray, weight: np.ndarray | None
) -> tuple[str, float | str]:
    """:return: what is wrong, "" for nothing or "prior"; and the eager ELBO."""
    model, X, eager = fitted.model, X.astype(float), ""
    if case.algorithm == "classifier":
        return _wrong_probabilities(model.predict_proba(X)), eager
    for parameter in getattr(model, "parameters", ()):
        if not np.isfinite(parameter.numpy()).all():
            return f"{parameter.name} is not finite", eager
    if not np.isfinite(fitted.elbo).all():
        return "an ELBO is not finite", eager
    own = not hasattr(model, "prior_kl")  # its ELBO is that of its own data, without weights
    if case.algorithm not in ("Gibbs", "HMC") and (weight is None or not own):
        eager, size = eager_elbo(model, X, Y, weight)
        if not np.isfinite(eager):
            return "the eager ELBO is not finite", eager
        gap = abs(fitted.elbo[-1] - eager) if fitted.elbo and fitted.confirmed else 0.0
        if gap > TOLERANCE * (1 + size):
            return f"the last ELBO is off by {gap:.3g}", eager
        falls = -np.diff(fitted.elbo) if fitted.rises else np.zeros(0)
        if len(falls) and falls.max() > 1e-9 * (1 + size):
            return f"the bound falls by {falls.max():.3g}", eager
    new = np.concatenate([X, 0.5 * X + 0.5 * X[::-1]])
    p = np.asarray(model.predict_y(new)[0])
    # GPflow's robust maximum takes its probabilities one by one, by quadrature.
    if wrong := _wrong_probabilities(p if case.likelihood != "MultiClass" else p[:, :1]):
        return wrong, eager
    mean, variance = (np.asarray(part) for part in model.predict_f(X))
    if case.algorithm in ("Gibbs", "HMC", "update_sites"):  # draws, and a step which is no fit
        return "", eager
    prior = np.asarray(model.mean_function(X))
    said = np.abs(mean - prior) / np.sqrt(np.maximum(variance, 1e-300))
    return "prior" if said.max() < NOTHING else "", eager


def _wrong_probabilities(p: np.ndarray) -> str:
    if not np.isfinite(p).all():
        return "a probability is not finite"
    if p.min() < -1e-9 or p.max() > 1 + 1e-9:
        return f"probabilities from {p.min():.3g} to {p.max():.3g}"
    if p.shape[-1] > 1 and np.abs(p.sum(-1) - 1).max() > 1e-6:
        return "probabilities of classes do not sum to one"
    return ""


def unclear(error: Exception) -> bool:
    """:return: whether it is a library's internal error, not a sentence for a user."""
    known = isinstance(error, ValueError | TypeError | FloatingPointError)
    text = str(error)
    internal = any(sign in text for sign in INTERNAL) or isinstance(error, np.linalg.LinAlgError)
    return not known or internal or len(text) < 20


def outcome(case: Case) -> dict:
    """:return: the row of a case."""
    start, eager, elbo = time.process_time(), "", ""
    X, Y, weight = rows_of(case)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            fitted = fit(case, X, Y, weight)
            elbo = fitted.elbo[-1] if fitted.elbo else ""
            wrong, eager = judge(case, fitted, X, Y, weight)
            said = [str(w.message) for w in caught if issubclass(w.category, UserWarning)]
            named = "warned" if said else "right"
            if wrong:
                words = TOLD if wrong == "prior" else (ROUNDED,) if " ELBO is " in wrong else ()
                told = any(word in text for text in said for word in words)
                named = "warned" if told else "prior" if wrong == "prior" else "WRONG"
            message = wrong if named in ("WRONG", "prior") else " | ".join(dict.fromkeys(said))
        except Exception as error:
            named = "WRONG" if unclear(error) else "error"
            message = f"{type(error).__name__}: {error}"
    message = re.sub(r"\s+", " ", message)[:300]
    found = {"outcome": named, "message": message, "elbo": elbo, "eager": eager}
    return {**case._asdict(), **found, "seconds": round(time.process_time() - start, 2)}


def part(first: int, last: int) -> Iterator[dict]:
    """Yield the rows of those that have none; the fit in which a process died has its row, too."""
    under_way = PATH.with_name(f".under-way-{first}")
    PATH.parent.mkdir(exist_ok=True, parents=True)
    if under_way.exists():
        seed = int(under_way.read_text())
        if _missing(seed, seed + 1):
            died = {"outcome": "WRONG", "message": "the process died", "elbo": "", "eager": ""}
            yield {**draw(seed)._asdict(), **died, "seconds": ""}
    for seed in _missing(first, last):
        under_way.write_text(str(seed))
        yield outcome(draw(seed))
    under_way.unlink(missing_ok=True)


if __name__ == "__main__":
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")
    sys.path.insert(0, str(Path(__file__).parents[2]))
    for found in part(int(sys.argv[1]), int(sys.argv[2])):
        _append(found)
        if found["outcome"] in ("WRONG", "prior"):
            print(*(f"{found[name]}" for name in COLUMNS), flush=True)
