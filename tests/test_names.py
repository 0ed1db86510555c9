"""What a reader of the papers types is there; that it needs no import: `release`."""

import pytest

import gpflow_bsvm as gb


@pytest.mark.parametrize(
    "name",
    [
        "inference.ECM",
        "inference.Adaptive",
        "sampling.Gibbs",
        "likelihoods.Logistic",
        "prediction.local_variables",
        "prediction.augmented_elbo",
        "prediction.predict_f_given",
        "inducing_points.reselect",
        "papers.wistuba2018.ClassByClass",
        "papers.seeger2000.FactorVGP",
    ],
)
def test_a_name_is_where_one_looks_for_it(name):
    found = gb
    for part in name.split("."):
        assert part in found.__all__
        found = getattr(found, part)


@pytest.mark.parametrize("bound", ["exact", "augmented", "wistuba2018"])
def test_bounds_of_several_classes(bound):
    assert gb.likelihoods.CrammerSinger(3, bound=bound).bound == bound
    with pytest.raises(ValueError, match="'exact', 'augmented', 'wistuba2018'"):
        gb.likelihoods.CrammerSinger(3, bound="published")
