"""What a reader of the papers types is there, and starts no import of its own."""

import subprocess
import sys

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


@pytest.mark.slow
def test_the_papers_need_no_import_of_their_own():
    code = "import gpflow_bsvm as gb; print(gb.papers.wistuba2018.ClassByClass().max_steps)"
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert found.stdout.strip() == "200"
