"""Data, a model that remembers, comparisons without fits, a reader of pages: for `compare`."""

import copy
import functools
import html.parser
from typing import ClassVar

import numpy as np
from sklearn.datasets import load_iris, make_moons

from gpflow_bsvm import metrics
from gpflow_bsvm.compare import regression
from gpflow_bsvm.compare.protocol import Comparison, FoldScore, Settings
from gpflow_bsvm.compare.registry import BASELINES
from gpflow_bsvm.datasets import Dataset

#: Models for a fixed kernel, and which of them are for two classes only, and for more only.
ALL = [
    name
    for name, entry in BASELINES.items()
    if name != "BSVMClassifier" and (entry.suits(2) or entry.suits(3))
]
TWO_ONLY = {"probit-engine", "svgp-probit"}
MORE_ONLY = {"one-vs-rest", "svgp-robustmax"}

NASTY = '<script>alert("$x$")</script> & Söhne'
FAILED = "failed: RuntimeError: <b>out of luck</b>"


def made_up(certainty, name="moons", num_classes=2, failing=()):
    """
    A comparison without fits: each model gives the label the logit `certainty[model]`, and noise.
    """
    return copy.deepcopy(_made_up(tuple(certainty.items()), name, num_classes, tuple(failing)))


@functools.cache
def _made_up(certainty, name, num_classes, failing, num_rows=200, folds=2):
    random = np.random.default_rng(0)
    y = np.arange(num_rows) % num_classes
    labels = np.array([rf"{c} $\frac$ {NASTY}" for c in range(num_classes)])
    X = random.normal(size=(num_rows, 3))
    done = Comparison(
        Dataset(name, X, labels[y], ("a", "b", "c")),
        Settings(folds=folds, num_inducing=7, fixed_kernel=True),
        [model for model, _ in certainty],
    )
    for fold in range(folds):
        rows = np.flatnonzero(np.arange(num_rows) // num_classes % folds == fold)
        noise = random.normal(size=(len(rows), num_classes))
        for number, (model, much) in enumerate(certainty):
            about = (name, model, fold)
            if (model, fold) in failing:
                scores = dict.fromkeys(metrics.METRICS, float("nan"))
                done.fold_scores.append(FoldScore(*about, FAILED, scores))
                continue
            P = np.exp(noise + much * np.eye(num_classes)[y[rows]])
            P /= P.sum(axis=1, keepdims=True)
            done.held_out.setdefault(model, {})[fold] = (y[rows], P)
            scores = metrics.evaluate(y[rows], P)
            done.fold_scores.append(FoldScore(*about, "ok", scores, 0.1 + fold + number, 5.0))
    return done


def three(**options):
    return made_up({"bsvm": 2.0, "svgp": 1.95, "svc": 0.5}, **options)


def numbers(noises, num_rows=90, folds=3, name="numbers"):
    """A comparison of regressors without fits: each is off by noise of its deviation, and knows."""
    random = np.random.default_rng(0)
    X, y = random.normal(size=(num_rows, 2)), random.normal(size=num_rows)
    settings = Settings(folds=folds, num_inducing=7, task="regression")
    done = Comparison(Dataset(name, X, y, ("a", "b")), settings, list(noises))
    for fold in range(folds):
        true = y[fold::folds]
        for number, (model, noise) in enumerate(noises.items()):
            P = regression.gaussian(true + noise * random.normal(size=len(true)), noise, true)
            done.held_out.setdefault(model, {})[fold] = (true, P)
            scores = regression.evaluate(true, P)
            done.fold_scores.append(FoldScore(name, model, fold, "ok", scores, 1.0 + number, 5.0))
    return done


def moons(num_rows=70, seed=0):
    X, y = make_moons(num_rows, noise=0.2, random_state=seed)
    return Dataset("moons", 3 + 5 * X, np.where(y == 1, "yes", "no"), ("x1", "x2"))


def iris():
    X, y = load_iris(return_X_y=True)
    X = X + np.random.default_rng(0).normal(0, 0.2, X.shape)  # less well apart
    return Dataset("iris", X, np.array(["setosa", "versicolor", "virginica"])[y], tuple("abcd"))


class Spy:
    """Remembers what it is given, predicts the base rate."""

    note, last_gain = "", float("nan")
    made: ClassVar[list] = []

    def __init__(self):
        self.fits, self.tests = [], []
        Spy.made.append(self)

    def fit(self, X, y, Z, kernel, seed):
        self.fits.append((X, y, Z, kernel, seed))

    def predict_proba(self, X):
        self.tests.append(X)
        y = self.fits[-1][1]
        return np.tile(np.bincount(y) / len(y), (len(X), 1))


class Reader(html.parser.HTMLParser):
    """A strict reader of HTML: checks that elements are closed in turn, and keeps all of them."""

    VOID = ("meta", "img", "path", "use", "rect", "image", "stop")

    def __init__(self, text):
        super().__init__()
        self.open, self.tags, self.ids, self.texts = [], [], [], []
        self.feed(text)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag, attributes):
        given = dict(attributes)
        self.tags.append((tag, given))
        self.ids += [given["id"]] if "id" in given else []
        if tag not in self.VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag, attributes):
        self.handle_starttag(tag, attributes)
        if tag not in self.VOID:
            self.open.pop()

    def handle_endtag(self, tag):
        if tag not in self.VOID:
            assert self.open.pop() == tag

    def handle_data(self, text):
        self.texts.append(text)

    @property
    def text(self):
        return " ".join(" ".join(self.texts).split())
