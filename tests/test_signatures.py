"""What a user types: an editor can tell all keyword arguments of public names, with their types."""

import importlib
import inspect
import pkgutil
from dataclasses import fields

import gpflow

import gpflow_bsvm as gb
from gpflow_bsvm import datasets, papers
from gpflow_bsvm.models.sparse import SparseOptions
from gpflow_bsvm.tables.reading import Options, Reading

#: Where keyword arguments may be anything, and why.
ANYTHING = {
    "model_selection.plug_in": "arguments of scikit-learn's SVC",
    "plotting.reliability_diagram": "arguments of a line of Matplotlib",
    "BSVMClassifier.set_params": "any options, as in scikit-learn, which checks their names",
    "BSVMRegressor.set_params": "the same",
    "OneClassBSVM.set_params": "the same",
    "saving.check_can_save": "any values, by the names that an error is to have",
}


def public():
    """:return: public functions, and constructors and methods of public classes, by name."""
    names = [name for _, name, _ in pkgutil.iter_modules(papers.__path__, f"{papers.__name__}.")]
    modules = [gb, datasets, *map(importlib.import_module, names)]
    modules += [
        part for part in (getattr(gb, name) for name in gb.__all__) if inspect.ismodule(part)
    ]
    for module in modules:
        for name in getattr(module, "__all__", vars(module)):
            value = getattr(module, name)
            home = getattr(value, "__module__", None) or ""
            listed = hasattr(module, "__all__") and home.startswith("gpflow_bsvm")
            if name[0] != "_" and callable(value) and (listed or home == module.__name__):
                where = f"{module.__name__}.{name}".removeprefix("gpflow_bsvm.")
                yield where, value
                for method, function in inspect.getmembers(value, inspect.isfunction):
                    if method[0] != "_" and function.__module__.startswith("gpflow_bsvm"):
                        yield f"{where}.{method}", function


def untyped(function):
    """:return: whether it takes keyword arguments of any name and type."""
    try:
        parameters = inspect.signature(function).parameters.values()
    except ValueError:  # of a built-in base
        return False
    kinds = {str(p.annotation) for p in parameters if p.kind is p.VAR_KEYWORD}
    return bool(kinds & {"Any", "typing.Any", str(inspect.Parameter.empty)})


def test_keyword_arguments_have_names_or_types():
    found = dict(public())
    assert len(found) > 250 and "models.BSVM" in found and "inference.CAVI.run" in found
    names = {name for name, value in found.items() if untyped(value)}
    assert names == {*ANYTHING}


def keywords(function):
    parameters = inspect.signature(function).parameters.values()
    return {p.name for p in parameters if p.kind is p.KEYWORD_ONLY}


def test_shared_options_are_what_the_functions_take():
    assert set(SparseOptions.__annotations__) == keywords(gpflow.models.SVGP) - {"q_diag"}
    assert set(Options.__annotations__) == {part.name for part in fields(Reading)} - {"target"}


def positional(function):
    parameters = inspect.signature(function).parameters.values()
    return [p.name for p in parameters if p.kind is p.POSITIONAL_OR_KEYWORD]


def test_models_take_what_those_of_gpflow_take_in_the_same_order():
    assert positional(gb.models.BatchBSVM) == positional(gpflow.models.VGP)
    assert positional(gb.models.BSVM) == positional(gpflow.models.SVGP)


def test_fit_takes_what_an_algorithm_takes():
    of_run = inspect.signature(gb.inference.CAVI.run).parameters
    of_fit = inspect.signature(gb.fit).parameters
    assert {name: p for name, p in of_run.items() if name != "self"} == dict(of_fit)
