# ---
# jupyter:
#   jupytext:
#     text_representation:
#       extension: .py
#       format_name: percent
#   kernelspec:
#     display_name: Python 3
#     language: python
#     name: python3
# ---

# %% [markdown]
# # Replacing SVC(probability=True)
#
# scikit-learn 1.9 deprecates `SVC(probability=True)`, and version 1.11 removes it. This notebook
# compares three classifiers on the same folds: this SVC, the replacement that scikit-learn
# recommends, and `BSVMClassifier`. It also shows what changes for existing code.

# %%
import sys
import time
import warnings
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from sklearn.calibration import CalibratedClassifierCV
from sklearn.datasets import load_breast_cancer, load_wine
from sklearn.model_selection import GridSearchCV, StratifiedKFold
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC

import gpflow_bsvm as gb
from gpflow_bsvm import BSVMClassifier, metrics

sys.path.append(str(Path(gb.__file__).parents[1] / "benchmarks"))
from generated import SusyLike  # of this repository

warnings.filterwarnings("ignore", category=FutureWarning, message=".*probability.*")

# %% short="NAMES, FOLDS, ROWS, NEW_ROWS = ['generated'], 2, 150, 2000"
NAMES, FOLDS, ROWS, NEW_ROWS = ["breast cancer", "wine", "generated"], 3, 900, 50_000

# %% [markdown]
# ## 1. Before and after
#
# | before | after |
# | --- | --- |
# | `make_pipeline(StandardScaler(), SVC(probability=True))` | `BSVMClassifier()` |
# | `C` and `gamma` by `GridSearchCV` | chosen and learned inside, or given: `penalty`, `kernel` |
# | `kernel="linear"` | `kernel="linear"` |
# | `class_weight`, `sample_weight` | the same |
# | `random_state` (of Platt's folds) | `random_state` (it matters beyond 2000 rows) |
# | `predict_proba`, `predict_log_proba`, `predict` | the same |
# | `decision_function`: distance from the border | the same sign: Phi^-1(p); more classes: log p |
# | `support_vectors_` | `prediction.soft_support_vectors(classifier, ...)` |
# | `pickle` | `gpflow_bsvm.save` and `load`, without pickles |
#
# Below, `old` is the deprecated SVC. `tuned` is SVC at its best: with C and gamma from a grid
# search, and then with the recommended calibration. `quick` is a `BSVMClassifier` that chooses
# nothing, and does not learn its kernel.

# %%
GRID = {"svc__C": [0.1, 1, 10, 100, 1000], "svc__gamma": [0.001, 0.003, 0.01, 0.03, 0.1, 0.3]}


def old(seed=0, **options):
    if "probability" in SVC().get_params():
        return make_pipeline(StandardScaler(), SVC(probability=True, random_state=seed, **options))
    machine = CalibratedClassifierCV(SVC(**options), ensemble=False)  # from 1.11 on
    return make_pipeline(StandardScaler(), machine)


def recommended(**options):
    return CalibratedClassifierCV(make_pipeline(StandardScaler(), SVC(**options)), ensemble=False)


def tuned(X, y):
    search = GridSearchCV(make_pipeline(StandardScaler(), SVC()), GRID, cv=3, refit=False)
    best = search.fit(X, y).best_params_
    options = {name.removeprefix("svc__"): value for name, value in best.items()}
    return recommended(**options).fit(X, y)


METHODS = {
    "SVC(probability=True)": lambda X, y: old().fit(X, y),
    "SVC, calibrated": lambda X, y: recommended().fit(X, y),
    "SVC, grid, calibrated": tuned,
    "BSVMClassifier, quick": lambda X, y: BSVMClassifier(
        loss="levels", penalty=2.0, learn_kernel=False, num_inducing=100, random_state=0
    ).fit(X, y),
    "BSVMClassifier()": lambda X, y: BSVMClassifier(random_state=0).fit(X, y),
}


# %% [markdown]
# ## 2. Scores
#
# Every row is predicted once, from a fit to the other folds.


# %%
def generated():
    X, Y = SusyLike(ROWS).arrays()
    return X, Y[:, 0].astype(int)


DATA = {
    "breast cancer": lambda: load_breast_cancer(return_X_y=True),
    "wine": lambda: load_wine(return_X_y=True),
    "generated": generated,
}
rows, pooled = [], {}
for name in NAMES:
    X, y = DATA[name]()
    folds = [*StratifiedKFold(FOLDS, shuffle=True, random_state=0).split(X, y)]
    for method, fit in METHODS.items():
        P, labels, seconds = np.zeros((len(y), y.max() + 1)), np.zeros_like(y), 0.0
        for train, test in folds:
            start = time.process_time()
            model = fit(X[train], y[train])
            seconds += time.process_time() - start
            P[test], labels[test] = model.predict_proba(X[test]), model.predict(X[test])
        about = {"data": name, "method": method, "seconds": seconds}
        disagree = int((P.argmax(axis=1) != labels).sum())
        rows.append(about | {"disagree": disagree} | metrics.evaluate(y, P))
        rows[-1]["error"] = np.mean(labels != y)  # what `predict` says
        pooled[name, method] = y, P
rows = pd.DataFrame(rows)

# %% [markdown]
# NLL and Brier score punish every wrong probability. The expected calibration error punishes
# probabilities that are wrong on average. To see how useful the doubt of a model is, we begin with
# the least doubtful rows, add more and more doubtful rows, and look at the accuracy.

# %%
name = NAMES[-1]
fig, (left, right) = plt.subplots(1, 2, figsize=(10, 4), layout="constrained")
for method in ("SVC(probability=True)", "SVC, grid, calibrated", "BSVMClassifier()"):
    gb.plotting.reliability_diagram(left, *pooled[name, method], label=method)
    curve = gb.metrics.accuracy_against_coverage(*pooled[name, method])
    right.plot(curve.coverage, curve.accuracy)
left.set(title=f"Reliability, {name}")
left.legend(fontsize="small", loc="upper left")
right.set(ylim=(None, 1.01), title=f"Reject option, {name}")
right.set(xlabel="coverage, share of rows that are answered", ylabel="accuracy on these")
plt.show()

# %% [markdown]
# ## 3. What else changes
#
# - *Disagreement.* In SVC, `predict` returns the side of the border, but `predict_proba` comes from
#   a second model. `predict` of `BSVMClassifier` always gives the most probable class.
# - *Chance.* Platt's sigmoid is fitted on random folds. How much do probabilities change with the
#   seed, and with the order of the rows?
# - *Cost of a prediction*, relative to SVC. SVC uses all support vectors, and `BSVMClassifier` uses
#   its inducing points (100 here).

# %%
X, y = DATA[NAMES[-1]]()
order = np.random.default_rng(0).permutation(len(y))
X_new = np.tile(X, (-(-NEW_ROWS // len(X)), 1))[:NEW_ROWS]
makers = {
    "SVC(probability=True)": lambda seed: old(seed),
    "SVC, calibrated": lambda seed: recommended(random_state=seed),
    "BSVMClassifier, quick": lambda seed: BSVMClassifier(
        loss="levels", penalty=2.0, learn_kernel=False, num_inducing=100, random_state=seed
    ),
}


def cost(model):
    model.predict_proba(X_new)
    start = time.process_time()
    model.predict_proba(X_new)
    return time.process_time() - start


changes = {}
for method, make in makers.items():
    model = make(0).fit(X, y)
    P = model.predict_proba(X)
    by_seed = np.abs(P - make(1).fit(X, y).predict_proba(X)).max()
    by_order = np.abs(P - make(0).fit(X[order], y[order]).predict_proba(X)).max()
    changes[method] = {"seed": by_seed, "order of rows": by_order, "prediction": cost(model)}
changes = pd.DataFrame(changes).T
changes["prediction"] /= changes["prediction"].iloc[0]
assert changes.loc["BSVMClassifier, quick", "order of rows"] == 0
changes.round(4)

# %% [markdown]
# ## 4. All in one table
#
# The error is that of `predict`. `disagree` counts the rows for which `predict` and `predict_proba`
# give different classes. `time` is the processor time of all fits, relative to
# *SVC(probability=True)*, which keeps the default C and gamma. Our times include a few seconds for
# tracing graphs in the first fit of each kind.

# %%
table = rows.set_index(["data", "method"])
unit = table.seconds.xs("SVC(probability=True)", level="method")
table["time"] = table.pop("seconds") / table.index.get_level_values("data").map(unit)
assert (table.disagree.filter(like="BSVM") == 0).all()
table[["error", "disagree", "nll", "brier", "ece", "time"]].round(
    {"error": 4, "nll": 4, "brier": 4, "ece": 4, "time": 0}
)

# %% [markdown]
# ## What we see
#
# On the generated set, `BSVMClassifier()` is the best of the five in all four scores. On wine it
# has the best probabilities, and as many errors as SVC. On breast cancer no method has fewer
# errors, while the tuned SVC has a slightly better NLL and Brier score. `BSVMClassifier()` takes
# two to twelve times as long as SVC with a grid search, and far longer than an SVC that keeps the
# default C and gamma. If classes overlap, `quick` is as good as `BSVMClassifier()`. If classes are
# clean, `quick` is too cautious, as its calibration error on wine shows.
#
# Neither the order of the rows nor the seed changes our results. A seed matters only beyond 2000
# rows, because the kernel is then learned from a random part of them.

# %% [markdown]
# ## What this does not show, and what has no replacement
#
# - More than a thousand rows: the time of SVC grows at least with the square of their number. The
#   time of `BSVMClassifier` grows linearly, but with a larger constant (docs/lab/speed.md has up to
#   100 000 rows).
# - Clear differences on small clean sets: there, methods differ in only a few rows.
# - There is no `kernel="precomputed"`, and no `"poly"` or `"sigmoid"` by name, but any GPflow
#   kernel works. Sparse matrices need `kernel="linear"`. For regression and novelty use
#   `BSVMRegressor` and `OneClassBSVM`.
# - The first fit of a process imports TensorFlow and traces graphs, which takes seconds. If that is
#   too slow, or you need only decisions, SVC without probabilities is the better choice.
