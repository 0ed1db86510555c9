"""The page for those who come from SVC and SVGP: complete, and every line of the tables runs."""

import inspect
import re
import warnings
from pathlib import Path

import gpflow
import numpy as np
import pytest
import tensorflow as tf
from sklearn.datasets import make_moons
from sklearn.svm import SVC

import gpflow_bsvm as gb
from gpflow_bsvm.estimators.options import check_options

PAGE = Path(__file__).parents[2] / "docs" / "guide" / "coming-from.md"
HEADER = "| you wrote | you write now | what changes |"
#: Of SVC: not shown by its documentation, or scikit-learn's machinery.
UNSEEN = {"epsilon", "nu", "unused_param", "get_metadata_routing"}
UNSEEN |= {"set_fit_request", "set_score_request"}


def page(name):
    """:return: the section "From NAME"."""
    parts = re.split(r"^## From (\w+)$", PAGE.read_text(encoding="utf-8"), flags=re.M)
    return dict(zip(parts[1::2], parts[2::2]))[name]


def rows(name):
    """Rows of the tables as their first two columns, (what was, what is)."""
    found = []
    for table in page(name).split(HEADER)[1:]:
        lines = table.split("\n\n")[0].strip().splitlines()[1:]
        found += [[cell.strip() for cell in line.strip("|").split("|")][:2] for line in lines]
    return found


def code(cell):
    return re.findall(r"`([^`]+)`", cell)


def before(name):
    return " ".join(" ".join(code(row[0])) for row in rows(name))


def names(num_rows=80):  # so few that the classifier has nothing to choose
    X, y = make_moons(num_rows, noise=0.3, random_state=0)
    given = {"X": X, "y": y, "Y": y[:, None].astype(float), "X_new": X[:5]}
    return given | {"sample_weight": np.ones(num_rows), "gb": gb, "gpflow": gpflow, "tf": tf}


def run_page(name, given):
    for block in re.findall(r"```python\n(.*?)```", page(name), flags=re.S):
        exec(compile(block, name, "exec"), given)
    return given


def run_cell(cell, given):
    """:return: what the last expression of a cell is worth."""
    value = None
    for text in code(cell):
        try:
            value = eval(compile(text, text, "eval"), given)
        except SyntaxError:
            exec(compile(text, text, "exec"), given)
    return value


def test_no_row_is_lost():
    for name, least in (("SVC", 45), ("SVGP", 40), ("SVR", 13)):
        table_lines = [line for line in page(name).splitlines() if line.startswith("| `")]
        assert len(rows(name)) == len(table_lines) >= least
        assert all(code(was) for was, _ in rows(name))


def test_all_of_svc_is_there():
    text = before("SVC")
    parameters = [*inspect.signature(SVC).parameters]
    assert not [name for name in parameters if f"{name}=" not in text and f"({name}" not in text]
    X, y = make_moons(20, random_state=0)
    fitted = SVC(kernel="linear").fit(X, y)
    shown = {name for name in dir(SVC) if not name.startswith("_")} | {
        name for name in vars(fitted) if name.endswith("_") and not name.startswith("_")
    }
    shown -= UNSEEN | set(parameters)
    assert not [name for name in shown if not re.search(rf"\.{name}\b", text)]


def test_all_of_svgp_is_there():
    text = page("SVGP").split("### The constructor")[1]
    parameters = set(inspect.signature(gpflow.models.SVGP).parameters)
    assert not [name for name in parameters if not re.search(rf"\b{name}\b", text)]
    methods = set(dir(gpflow.models.SVGP)) - set(dir(tf.Module))
    methods = {name for name in methods if not name.startswith(("_", "calc_"))}
    assert not [name for name in methods if f"svgp.{name}" not in before("SVGP")]


@pytest.mark.drill
@pytest.mark.slow
def test_the_way_from_svc_runs(tmp_path):
    given = run_page("SVC", names())
    assert given["p"].shape == (5, 2)
    back = given["back"][-1]
    np.testing.assert_allclose([back.C, back.gamma], [4.0, 0.5])
    run_imports(given)
    X, y = given["X"], given["y"]
    given |= {
        "svm": given["svc"][-1],
        "path": tmp_path / "file",
        "linear_svc": SVC(kernel="linear"),
    }
    given["linear_svc"].fit(X, y)
    given["seen"] = given["classifier"].scaler_.transform(X)
    given["linear"] = gb.BSVMClassifier("linear", loss="hinge", penalty=1.0, learn_kernel=False)
    given["linear"].fit(X, y)
    has_platt = "probability" in inspect.signature(SVC).parameters  # scikit-learn removes it
    if has_platt:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", FutureWarning)
            given["platt"] = SVC(probability=True, random_state=0).fit(X, y)
    for was, now in rows("SVC"):
        if has_platt or not re.search("platt|probability", was):
            run_cell(was, given)
        value = run_cell(now, given)
        if isinstance(value, gb.BSVMClassifier):
            check_options(value)
    assert (tmp_path / "file").exists()


def run_imports(given):
    exec(
        "import joblib\n"
        "from gpflow.kernels import ArcCosine, Linear, Polynomial, SquaredExponential\n"
        "from sklearn.calibration import CalibratedClassifierCV\n"
        "from sklearn.linear_model import SGDClassifier\n"
        "from sklearn.model_selection import GridSearchCV\n"
        "from sklearn.multiclass import OneVsRestClassifier\n"
        "from sklearn.svm import LinearSVC\n",
        given,
    )


@pytest.mark.drill
@pytest.mark.slow
def test_the_way_from_svgp_runs(tmp_path):
    given = run_page("SVGP", names())
    assert given["history"].converged
    X, Y, Z = (given[name] for name in ("X", "Y", "Z"))
    given |= {"kernel": gpflow.kernels.SquaredExponential(), "likelihood": gb.likelihoods.Hinge()}
    given |= {"levels": gb.likelihoods.LevelHinge(), "data": (X, Y), "path": tmp_path / "file"}
    given |= {"q_mu": np.zeros((20, 1)), "q_sqrt": np.eye(20)[None], "edges": np.array([-1.0, 1.0])}
    given["dataset"] = tf.data.Dataset.from_tensor_slices((X, Y)).batch(20)
    given["numbered"] = gb.models.BSVM(given["kernel"], given["likelihood"], Z, num_data=len(X))
    for number, (was, now) in enumerate(rows("SVGP")):
        given["folder"] = str(tmp_path / f"was{number}")
        run_cell(was, given)
        given["folder"] = str(tmp_path / f"now{number}")
        value = run_cell(now, given)
        assert not isinstance(value, gpflow.models.SVGP) or isinstance(value, gb.models.BSVM)
    assert (tmp_path / "file").exists()


@pytest.mark.slow
def test_the_way_from_svr_runs():
    X = np.random.default_rng(0).normal(size=(60, 2))
    given = names() | {"X": X, "y": np.sin(X[:, 0]), "X_new": X[:5], "sample_weight": np.ones(60)}
    given = run_page("SVR", given)
    assert ((given["quantiles"][:, 0] < given["mean"]) & (given["std"] > 0)).all()
    exec("from sklearn.svm import NuSVR", given)
    for was, now in rows("SVR"):
        run_cell(was, given)
        found = run_cell(now, given)
        if isinstance(found, gb.BSVMRegressor):
            check_options(found)
