"""Rows and a classifier of them, for the files of this folder."""

import pytest
from helpers import fixed_classifier as fixed
from sklearn.datasets import make_moons


@pytest.fixture(scope="module")
def moons():
    return make_moons(120, noise=0.3, random_state=0)


@pytest.fixture(scope="module")
def fitted(moons):
    return fixed(num_inducing=15, random_state=0).fit(*moons)
