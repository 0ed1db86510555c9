"""What a reader of the papers types is there; that it needs no import: `release`."""

import importlib
import inspect
import pkgutil

import pytest

import gpflow_bsvm as gb


def methods(module):
    """:return: the public methods and properties of the public classes that a module defines."""
    for cls in vars(module).values():
        if inspect.isclass(cls) and cls.__module__ == module.__name__ and cls.__name__[0] != "_":
            for name, member in vars(cls).items():
                if name[0] != "_" and (inspect.isfunction(member) or isinstance(member, property)):
                    yield f"{cls.__qualname__}.{name}", member


def test_every_method_has_a_docstring_of_its_own_or_of_the_method_that_it_overrides():
    for found in pkgutil.walk_packages(gb.__path__, "gpflow_bsvm."):
        module = importlib.import_module(found.name)
        bare = [name for name, member in methods(module) if not inspect.getdoc(member)]
        assert not bare, (found.name, bare)


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
