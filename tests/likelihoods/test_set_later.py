"""Attributes of likelihoods that are set after construction take effect, or are an error."""

import gpflow
import numpy as np
import pytest
import tensorflow as tf
from gpflow.utilities import positive

from gpflow_bsvm import likelihoods
from gpflow_bsvm.checks import may_hold
from gpflow_bsvm.engine.structure import BOOKKEEPING
from gpflow_bsvm.likelihoods import Hinge, LevelHinge, Levels, Ordinal, Quantile, location_spread
from gpflow_bsvm.papers.gold2003 import SquaredHinge
from gpflow_bsvm.papers.seeger2000 import NormalizedHinge

GIVEN = {"CrammerSinger": (3,), "OneVsRest": (3,), "OneVsRestLevelHinge": (3,), "Ordinal": (3,)}
BASES = {"BinaryLikelihood", "HingeSum", "Hooks"}
KINDS = [getattr(likelihoods, name) for name in likelihoods.__all__ if name not in BASES]
KINDS = [kind for kind in KINDS if isinstance(kind, type) and issubclass(kind, tf.Module)]
ROW = np.zeros((1, 1)), np.zeros((1, 1)), np.ones((1, 1)), np.ones((1, 1))


@pytest.mark.parametrize("kind", [*KINDS, SquaredHinge, NormalizedHinge])
def test_no_attribute_takes_an_invalid_value(kind):
    likelihood = kind(*GIVEN.get(kind.__name__, ()))
    names = {name for name in vars(likelihood) if name[0] != "_"} - BOOKKEEPING
    names -= {"quadrature"}  # GPflow's, who calls it: what is none is an error there
    assert {"input_dim", "latent_dim"} < names
    for name in names:
        before = getattr(likelihood, name)
        with pytest.raises((AttributeError, ValueError), match=name):
            setattr(likelihood, name, "typo")
        assert getattr(likelihood, name) is before


def test_errors_say_what_to_do():
    with pytest.raises(ValueError, match="bound must be one of 'exact', 'augmented', got 'typo'"):
        Hinge().bound = "typo"
    with pytest.raises(AttributeError, match=r"levels cannot change, .*construct another Quantile"):
        Quantile().levels = [0.2, 0.8]
    with pytest.raises(AttributeError, match=r"penalty is a parameter: use likelihood\.penalty\.a"):
        Hinge().penalty = 3.0
    whole = LevelHinge(levels=Levels([0.3, 0.6], np.eye(2), np.zeros(2)))
    with pytest.raises(ValueError, match="'stationary' needs more levels than latent functions"):
        whole.link = "stationary"


def test_a_bound_and_a_link_take_effect():
    hinge = Hinge()
    hinge.bound = "augmented"
    for mine, theirs in zip(hinge.sites(*ROW), Hinge(bound="augmented").sites(*ROW)):
        np.testing.assert_array_equal(mine, theirs)
    levels = LevelHinge(levels=location_spread(5, 0.0))
    levels.link = "stationary"
    other = LevelHinge(levels=location_spread(5, 0.0), link="stationary")
    np.testing.assert_array_equal(levels.log_odds(*ROW[:2]), other.log_odds(*ROW[:2]))


@pytest.mark.parametrize("value", [-1.0, [1.0, 2.0]])
def test_a_parameter_is_replaced_by_one_of_valid_values(value):
    hinge = Hinge()
    with pytest.raises(AttributeError, match=r"a gpflow\.Parameter of shape \(\) with valid val"):
        hinge.penalty = gpflow.Parameter(value)
    hinge.penalty = gpflow.Parameter(3.0, transform=positive())
    assert hinge.penalty.numpy() == 3.0


def test_thresholds_stay_in_order():
    ordinal = Ordinal(3)
    with pytest.raises(AttributeError, match="thresholds is a parameter"):
        ordinal.thresholds = gpflow.Parameter([1.0, 0.0])


def test_a_value_of_another_shape_is_refused_before_the_transform_sees_it():
    factor = gpflow.Parameter(np.eye(2)[None], transform=gpflow.utilities.triangular())
    assert [may_hold(factor, value) for value in (1.0, np.eye(3), np.eye(2)[None])] == [0, 0, 1]
