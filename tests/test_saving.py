"""What is saved comes back to the last bit, and nothing that is read is executed."""

import copy
import json
import os
import pickle
import subprocess
import sys
import zipfile
from pathlib import Path

import gpflow
import joblib
import numpy as np
import pytest
import tensorflow as tf
import tensorflow_probability as tfp
from conftest import ard, log_normal, make_data, make_model, randomise
from gpflow import kernels as k
from scipy.sparse import csr_array

import gpflow_bsvm as gb
from gpflow_bsvm import likelihoods as lik
from gpflow_bsvm.engine.projection import compiled_project
from gpflow_bsvm.engine.statistics import compiled_marginals
from gpflow_bsvm.engine.structure import structure_of
from gpflow_bsvm.inference import CAVI, SVI
from gpflow_bsvm.models.linear import WeightKernel
from gpflow_bsvm.saving import registry


@pytest.fixture(scope="module")
def rows():
    return make_data(24)


@pytest.fixture
def path(tmp_path):
    return tmp_path / "model.bsvm"


@pytest.fixture
def again(path):
    """What a file makes of it."""

    def save_and_load(model):
        gb.save(model, path)
        return gb.load(path)

    return save_and_load


def assert_same(one, two, X):
    """Predictions, parameters, what is trainable of them and their priors: the same."""
    f, other = one.predict_f(X), two.predict_f(X)
    np.testing.assert_array_equal(f, other)
    y = (model.likelihood.predict_mean_and_var(X, *f) for model in (one, two))
    np.testing.assert_array_equal(*y)
    ours, theirs = (gpflow.utilities.parameter_dict(model) for model in (one, two))
    assert ours.keys() == theirs.keys()
    for name, parameter in ours.items():
        other = theirs[name]
        np.testing.assert_array_equal(parameter, other)
        assert parameter.trainable == other.trainable
        if isinstance(parameter, gpflow.Parameter):
            assert structure_of((parameter.prior,))[0] == structure_of((other.prior,))[0]
            assert parameter.prior_on == other.prior_on


KERNELS = {
    "squared exponential": lambda: ard(),
    "matern12": lambda: k.Matern12(2.0, active_dims=[1]),
    "matern32": lambda: k.Matern32(2.0, [0.5, 2.0], active_dims=slice(0, 2)),
    "matern52": lambda: k.Matern52(),
    "exponential": lambda: k.Exponential(lengthscales=2.0),
    "cosine": lambda: k.Cosine() + k.White(0.1),
    "rational quadratic": lambda: k.RationalQuadratic(alpha=0.3, lengthscales=[1.0, 3.0]),
    "linear": lambda: k.Linear([1.0, 2.0]) + k.Constant(0.3),
    "polynomial": lambda: k.Polynomial(2.0, offset=0.7),
    "periodic": lambda: k.Periodic(k.Matern32(active_dims=[0]), period=[1.7]),
    "arc cosine": lambda: k.ArcCosine(1, weight_variances=[1.0, 2.0]),
    "change points": lambda: (
        k.ChangePoints([k.Matern12(), k.Matern32()], [0.1], 3.0) * k.Matern12()
    ),
    "nested": lambda: (
        k.Matern12(active_dims=[0]) * (k.Matern32(active_dims=[1]) + k.Constant(0.5)) + k.White(0.1)
    ),
    "weights": lambda: WeightKernel(2, [1.0, 2.0, 3.0]),
}


@pytest.mark.parametrize("name", KERNELS)
def test_kernels(rows, again, name):
    X, _ = rows if name != "change points" else (rows[0][:, :1], None)
    model = make_model((X, None), kernel=KERNELS[name](), num_inducing=5)
    randomise(model)
    assert_same(model, again(model), X)


def points(X, number):
    return [gpflow.inducing_variables.InducingPoints(X[n : n + 5].copy()) for n in range(number)]


def shared_points(X):
    return gpflow.inducing_variables.SharedIndependentInducingVariables(points(X, 1)[0])


def separate_points(X):
    return gpflow.inducing_variables.SeparateIndependentInducingVariables(points(X, 3))


SHARED = lambda: k.SharedIndependent(k.Matern32(), output_dim=3), shared_points
SEPARATE = (
    lambda: k.SeparateIndependent([k.Matern12(), k.Matern32(), k.Matern52()]),
    separate_points,
)


@pytest.mark.drill
@pytest.mark.parametrize(
    ("kernel", "of_points"), [SHARED, pytest.param(*SEPARATE, marks=pytest.mark.slow)]
)
def test_several_outputs(rows, again, kernel, of_points):
    model = gb.models.BSVM(kernel(), lik.OneVsRest(3), of_points(rows[0]), num_latent_gps=3)
    randomise(model)
    other = again(model)
    assert_same(model, other, rows[0][:3])
    assert type(other.inducing_variable) is type(model.inducing_variable)


LIKELIHOODS = {
    "hinge": lambda: lik.Hinge(3.0, "augmented", normalizer=True),
    "wenzel": lambda: lik.Hinge(link="wenzel2017"),
    "squared": lambda: lik.SquaredHinge(0.7, normalizer=True),
    "normalized": lambda: lik.NormalizedHinge(1.5),
    "probit": lambda: lik.Probit(quadrature=gpflow.quadrature.NDiagGHQuadrature(1, 7)),
    "logistic": lambda: lik.PolyaGammaLogistic(),
    "levels": lambda: lik.LevelHinge(2.0, levels=lik.location_spread(5, 0.3), normalizer=True),
    "own levels": lambda: lik.LevelHinge(
        levels=lik.Levels([0.2, 0.6], [[1.0, 0.5], [0.0, 1.0]], [0, 0.1])
    ),
    "smooth levels": lambda: lik.LevelHinge(levels=lik.smooth(5, 2, 1.5), bound="augmented"),
    "crammer singer": lambda: lik.CrammerSinger(3, 4.0, "wistuba2018"),
    "one vs rest": lambda: lik.OneVsRest(3, bound="augmented", normalizer=True),
    "levels of classes": lambda: lik.OneVsRestLevelHinge(3, levels=lik.independent([0.3, 0.7])),
    "bernoulli": lambda: gpflow.likelihoods.Bernoulli(tf.sigmoid),
    "multiclass": lambda: gpflow.likelihoods.MultiClass(3),
}


@pytest.mark.parametrize("name", LIKELIHOODS)
def test_likelihoods(rows, again, name):
    X, _ = rows
    model = make_model(
        rows,
        likelihood=LIKELIHOODS[name](),
        num_latent_gps=LIKELIHOODS[name]().latent_dim or 1,
        num_inducing=5,
    )
    randomise(model)
    link = getattr(model.likelihood, "link_parameters", {})
    for number, parameter in enumerate(link.values()):
        parameter.assign(1.3 + number)
    other = again(model)
    assert_same(model, other, X)
    assert structure_of((model.likelihood,))[0] == structure_of((other.likelihood,))[0]


def unwhitened(rows):
    return make_model(rows, whiten=False, num_data=100, num_inducing=5)


def linear(rows):
    covariance = np.array([[2.0, 0.5, 0.0], [0.5, 1.0, 0.0], [0.0, 0.0, 3.0]])
    return gb.models.LinearBSVM(2, lik.Hinge(), covariance)


def linear_without_bias(rows):
    return gb.models.LinearBSVM(2, lik.CrammerSinger(3), [1.0, 2.0], bias=False, num_data=24)


def batch(rows):
    return gb.models.BatchBSVM(rows, ard(), lik.Hinge(), mean_function=gpflow.functions.Constant(1))


@pytest.mark.parametrize("make", [unwhitened, linear, linear_without_bias, batch])
def test_models(rows, again, make):
    model = make(rows)
    randomise(model)
    model._jitter = 1e-4
    other = again(model)
    assert_same(model, other, rows[0])
    assert type(other) is type(model)
    for name in ("whiten", "num_data", "_jitter", "num_latent_gps"):
        assert getattr(other, name) == getattr(model, name)
    if make is batch:
        np.testing.assert_array_equal(model.elbo(), other.elbo())


@pytest.mark.slow
def test_dual_model(rows, again):
    model = gb.models.DualBSVM(rows, ard(), lik.Hinge(bound="augmented"), rows[0][:5].copy())
    model.update_sites(1)
    other = again(model)
    assert_same(model, other, rows[0])
    assert isinstance(other.sites, lik.Sites)
    np.testing.assert_array_equal(model.sites.w, other.sites.w)
    assert model.update_sites(1) == other.update_sites(1)


f = gpflow.functions
MEANS = {
    "zero": lambda: f.Zero(),
    "sum": lambda: f.Linear([[1.0], [0.3]], 0.2) + f.Constant(0.5),
    "product": lambda: f.Constant(2.0) * f.Polynomial(2, 2, 1, [1.0, 2.0, 3.0, 4.0, 5.0, 6.0]),
}


@pytest.mark.parametrize("name", MEANS)
def test_mean_functions(rows, again, name):
    model = make_model(rows, mean_function=MEANS[name](), num_inducing=5)
    assert_same(model, again(model), rows[0])


def test_parameters_with_all_that_they_know(rows, again):
    first, second = ard(), k.Matern32()
    d, b = tfp.distributions, tfp.bijectors
    first.variance = gpflow.Parameter(0.4, transform=b.Sigmoid(np.float64(0), np.float64(2)))
    first.lengthscales = gpflow.Parameter(
        [1.0, 2.0],
        transform=b.Chain([b.Shift(np.float64(0.1)), b.Exp()]),
        prior=d.Independent(d.Gamma(np.full(2, 2.0), np.ones(2)), 1),
        prior_on="unconstrained",
        trainable=False,
    )
    second.variance.prior = log_normal(2.0, 0.5)
    second.lengthscales = first.variance  # tied
    third = k.Constant()
    third.variance.unconstrained_variable.assign(-800.0)  # softplus of which is 0
    model = make_model(rows, kernel=first + second + third, num_inducing=5)
    other = again(model)
    assert_same(model, other, rows[0])
    assert other.kernel.kernels[1].lengthscales is other.kernel.kernels[0].variance
    assert structure_of((model,))[0] == structure_of((other,))[0]
    np.testing.assert_array_equal(
        [p.log_prior_density() for p in model.trainable_parameters],
        [p.log_prior_density() for p in other.trainable_parameters],
    )


def test_inducing_points_of_any_number(rows, again):
    Z = tf.Variable(rows[0][:5], shape=tf.TensorShape([None, 2]), trainable=False)
    kernel = gpflow.inducing_variables.InducingPoints(Z)
    other = again(kernel).Z
    assert other.shape.as_list() == [None, 2]
    assert not other.trainable
    np.testing.assert_array_equal(other, Z)


def test_training_goes_on_as_it_would_have(rows, again):
    model = make_model(rows)
    CAVI(max_steps=2).run(model, rows)
    other = again(model)
    traces = compiled_project.num_traces, compiled_marginals.num_traces
    for one in (model, other):
        CAVI(max_steps=1).run(one, rows)
    np.testing.assert_allclose(other.q_mu, model.q_mu, rtol=1e-12)
    np.testing.assert_allclose(other.q_sqrt, model.q_sqrt, rtol=0, atol=1e-12)
    assert (compiled_project.num_traces, compiled_marginals.num_traces) == traces


# --- classifiers -----------------------------------------------------------------------------


OPTIONS = {"loss": "hinge", "penalty": 4.0, "learn_kernel": False, "num_inducing": 5}
LABELS = {
    "strings": np.array(["no", "yes", "perhaps"]),
    "numbers": np.array([3, 7, -1]),
    "floats": np.array([1.0, 2.0, 5.0]),
    "objects": np.array(["no", "yes", "perhaps"], dtype=object),
    "bools": np.array([True, False]),
}


@pytest.fixture(scope="module")
def classifiers(rows):
    """One for each type of labels, of few traces."""
    X = rows[0]
    number = np.digitize(X[:, 0], [-0.5, 0.5])
    return {
        name: gb.BSVMClassifier(**OPTIONS).fit(X, labels[np.minimum(number, len(labels) - 1)])
        for name, labels in LABELS.items()
    }


@pytest.mark.parametrize("name", LABELS)
def test_classifiers(rows, classifiers, again, name):
    X = rows[0]
    model = classifiers[name]
    other = again(model)
    np.testing.assert_array_equal(other.predict_proba(X), model.predict_proba(X))
    np.testing.assert_array_equal(other.predict(X), model.predict(X))
    assert other.classes_.dtype == model.classes_.dtype
    assert other.history_ == model.history_
    assert (other.loss_, other.penalty_) == (model.loss_, model.penalty_)
    assert other.get_params() == model.get_params()


def test_parameters_of_a_classifier(again):
    options = {
        "kernel": k.Matern32(lengthscales=0.7),
        "class_weight": {"no": 1.0, 3: np.float64(2.0), (1, None): 4},
        "random_state": np.random.RandomState(3),
        "inference": SVI(batch_size=7, learning_rate=gb.inference.RobbinsMonro(30.0)),
    }
    model = gb.BSVMClassifier(**options)
    other = again(model).get_params()
    assert other.keys() == model.get_params().keys()
    assert other.pop("kernel").lengthscales.numpy() == 0.7
    assert other.pop("random_state").randint(1000) == options["random_state"].randint(1000)
    assert other == {name: model.get_params()[name] for name in other}


@pytest.mark.slow
def test_names_of_columns(rows, again):
    pandas = pytest.importorskip("pandas")
    X = pandas.DataFrame(rows[0], columns=["width", "height"])
    model = gb.BSVMClassifier(**OPTIONS, standardize=False).fit(X, rows[1][:, 0])
    other = again(model)
    assert list(other.feature_names_in_) == ["width", "height"]
    assert other.scaler_ is None
    np.testing.assert_array_equal(other.predict_proba(X), model.predict_proba(X))


@pytest.mark.slow
def test_linear_classifier_of_sparse_rows(rows, again, tmp_path):
    X = csr_array(np.where(np.abs(rows[0]) > 0.3, rows[0], 0.0))
    model = gb.BSVMClassifier(**OPTIONS | {"kernel": "linear"}).fit(X, rows[1][:, 0])
    p = model.predict_proba(X)
    np.testing.assert_array_equal(again(model).predict_proba(X), p)
    found = exported(model, tmp_path / "out")
    q = found.predict_proba(X.toarray())["probabilities"]
    np.testing.assert_allclose(q, p, rtol=0, atol=1e-10)


def test_joblib_and_copies_work_as_ever(rows, classifiers, tmp_path):
    model = classifiers["strings"]
    joblib.dump(model, tmp_path / "model.joblib")
    for other in (joblib.load(tmp_path / "model.joblib"), copy.deepcopy(model)):
        np.testing.assert_array_equal(other.predict_proba(rows[0]), model.predict_proba(rows[0]))


# --- what cannot be saved, or read -----------------------------------------------------------


class Scaled(k.Kernel):
    """A kernel of one's own."""

    def __init__(self, base, factor=2.0, variance=1.0):
        super().__init__()
        self.base, self._factor = base, factor
        self.variance = gpflow.Parameter(variance, transform=gpflow.utilities.positive())

    def K(self, X, X2=None):
        return self._factor * self.variance * self.base.K(X, X2)

    def K_diag(self, X):
        return self._factor * self.variance * self.base.K_diag(X)


@pytest.fixture
def scaled(rows):
    model = make_model(rows, kernel=k.Constant() + Scaled(ard(), 3.0, 0.5), num_inducing=5)
    randomise(model)
    return model


@pytest.fixture
def forget(monkeypatch):
    monkeypatch.setattr(registry, "_registered", {})


def test_a_kernel_that_is_not_known_is_refused_and_the_old_file_stays(rows, path, scaled):
    gb.save(ard(), path)
    before = path.read_bytes()
    with pytest.raises(TypeError, match=r"model\.kernel\.kernels\[1\] is a .*Scaled.*register"):
        gb.save(scaled, path)
    assert path.read_bytes() == before
    assert os.listdir(path.parent) == [path.name]


def test_a_kernel_that_is_made_known(rows, path, scaled, forget):
    gb.saving.register(Scaled, factor="_factor")
    gb.save(scaled, path)
    assert_same(scaled, gb.load(path), rows[0])
    registry._registered.clear()
    with pytest.raises(ValueError, match=r"model\.bsvm.*Scaled.*register"):
        gb.load(path)


def test_register_says_what_it_lacks(path, scaled, forget):
    with pytest.raises(TypeError, match=r"takes \('base', 'factor', 'variance'\), got \['power'\]"):
        gb.saving.register(Scaled, power="_power")
    with pytest.raises(TypeError, match="takes a class"):
        gb.saving.register(scaled)
    gb.saving.register(Scaled)
    with pytest.raises(TypeError, match=r"no attribute 'factor'.*register\(Scaled, factor="):
        gb.save(scaled, path)


def test_an_object_that_would_come_back_as_another_is_refused(rows, path, scaled, forget):
    gb.saving.register(Scaled, factor=lambda kernel: 1.0)
    with pytest.raises(TypeError, match=r"kernels\[1\]: Scaled would not come back as it is"):
        gb.save(scaled, path)
    model = make_model(rows)
    model.note = "mine"
    with pytest.raises(TypeError, match=r"attributes that a file cannot hold, \['note'\]"):
        gb.save(model, path)
    assert not path.exists()


@pytest.mark.parametrize(
    ("change", "place"),
    [
        (lambda m: setattr(m, "mean_function", lambda X: X[:, :1]), r"model\.mean_function"),
        (
            lambda m: setattr(
                m.kernel, "variance", gpflow.Parameter(2.0, transform=tfp.bijectors.Sinh())
            ),
            r"model\.kernel\.variance\.transform .*one of Identity",
        ),
        (
            lambda m: setattr(m.kernel.variance, "prior", tfp.distributions.Zipf(np.float64(2))),
            r"model\.kernel\.variance\.prior .*one of Normal",
        ),
        (lambda m: setattr(m, "num_data", object()), r"model\.num_data is a builtins\.object"),
    ],
)
def test_other_parts_that_are_refused(rows, path, change, place):
    model = make_model(rows)
    change(model)
    with pytest.raises(TypeError, match=place):
        gb.save(model, path)


class Malicious:
    def __init__(self, flag):
        self.flag = str(flag)

    def __reduce__(self):
        return (Path.touch, (Path(self.flag),))


def bad_files(folder, good):
    """Contents of files that are none, by name."""
    flag = folder / "flag"
    objects = folder / "objects.npz"
    np.savez(objects, description=np.array([Malicious(flag)], dtype=object))
    np.savez(folder / "foreign.npz", X=np.ones(3))
    np.save(folder / "array.npy", np.ones(3))
    text = folder / "archive.zip"
    with zipfile.ZipFile(text, "w") as archive:
        archive.writestr("word/document.xml", "<xml/>")
    middle = bytearray(good)
    middle[len(good) // 2] ^= 255
    return {
        "pickle": pickle.dumps(Malicious(flag)),
        "objects": objects.read_bytes(),
        "png": b"\x89PNG\r\n\x1a\n" + bytes(100),
        "empty": b"",
        "start": good[:100],
        "truncated": good[:-100],
        "flipped": bytes(middle),
        "foreign": (folder / "foreign.npz").read_bytes(),
        "array": (folder / "array.npy").read_bytes(),
        "archive": text.read_bytes(),
    }


def test_files_of_another_kind_are_refused_and_nothing_in_them_runs(rows, path):
    gb.save(make_model(rows), path)
    files = bad_files(path.parent, path.read_bytes())
    for content in files.values():
        path.write_bytes(content)
        with pytest.raises(ValueError, match=r"model\.bsvm (is no file|cannot be loaded)"):
            gb.load(path)
    assert not (path.parent / "flag").exists()
    pickle.loads(files["pickle"])  # would have
    assert (path.parent / "flag").exists()
    with pytest.raises(FileNotFoundError):
        gb.load(path.parent / "nothing")
    with pytest.raises(FileNotFoundError, match="no directory"):
        gb.save(ard(), path.parent / "nowhere" / "model")


def rewrite(path, change):
    """Another description in the same file."""
    with np.load(path) as archive:
        arrays = dict(archive)
    header = json.loads(arrays["description"].tobytes())
    change(header)
    arrays["description"] = np.frombuffer(json.dumps(header).encode(), np.uint8)
    with path.open("wb") as file:
        np.savez(file, **arrays)


@pytest.mark.parametrize(
    ("change", "what"),
    [
        (lambda header: header.update(format=2), "has format 2.*reads format 1"),
        (lambda header: header["content"].update({"class": "os.system"}), "holds a os.system"),
        (lambda header: header["content"].update({"kind": "code"}), "cannot be loaded"),
        (lambda header: header["content"]["arguments"].update(ham=3), "cannot be loaded.*ham"),
        (lambda header: header.pop("format"), "no file of"),
    ],
)
def test_descriptions_that_fit_nothing(path, change, what):
    gb.save(ard(), path)
    rewrite(path, change)
    with pytest.raises(ValueError, match=rf"model\.bsvm.*{what}"):
        gb.load(path)


def test_a_file_sets_nothing_but_what_an_estimator_learns(path):
    gb.save(gb.BSVMClassifier(), path)
    for name in ("fit", "__dict__", "_formats_"):
        state = {name: {"kind": "dict"}}
        rewrite(path, lambda header, state=state: header["content"].update(state=state))
        with pytest.raises(ValueError, match=f"'{name}' is nothing that"):
            gb.load(path)


def test_settings_that_differ(rows, path):
    gb.save(make_model(rows), path)
    gpflow.config.set_default_jitter(1e-5)
    with pytest.warns(UserWarning, match="saved at a default jitter of 1e-06, here it is 1e-05"):
        gb.load(path)
    gpflow.config.set_default_float(np.float32)
    with pytest.raises(ValueError, match=r"saved in float64.*set_default_float\(np.float64\)"):
        gb.load(path)


def test_single_precision(again):
    gpflow.config.set_default_float(np.float32)
    kernel = again(k.Matern32(0.3))
    assert kernel.variance.dtype == np.float32
    assert kernel.variance.numpy() == k.Matern32(0.3).variance.numpy()


def test_a_write_that_fails_leaves_the_old_file(path, monkeypatch):
    gb.save(ard(), path)
    before = path.read_bytes()

    def fail(file, **arrays):
        file.write(b"half")
        raise OSError("disk full")

    monkeypatch.setattr(np, "savez", fail)
    with pytest.raises(OSError, match="disk full"):
        gb.save(k.Matern32(), path)
    assert path.read_bytes() == before
    assert os.listdir(path.parent) == [path.name]


# --- elsewhere -------------------------------------------------------------------------------


def exported(model, folder):
    gb.export(model, folder)
    return tf.saved_model.load(str(folder))


@pytest.mark.slow
@pytest.mark.parametrize("name", ["strings", pytest.param("bools", marks=pytest.mark.slow)])
def test_exported_classifiers(rows, classifiers, tmp_path, name):
    model, X = classifiers[name], rows[0]
    found = exported(model, tmp_path / "out")
    for number in (1, len(X)):  # a batch of any size
        p = found.predict_proba(X[:number])["probabilities"]
        np.testing.assert_allclose(p, model.predict_proba(X[:number]), rtol=0, atol=1e-10)
    signature = found.signatures["predict_f"](X=tf.constant(X))
    mean, variance = model.model_.predict_f(model.scaler_.transform(X))
    np.testing.assert_allclose(signature["mean"], mean, rtol=0, atol=1e-10)
    np.testing.assert_allclose(signature["variance"], variance, rtol=0, atol=1e-10)
    about = json.loads((tmp_path / "out" / "about.json").read_text())
    assert about["classes"] == model.classes_.tolist()
    assert about["version"] == gb.__version__


@pytest.mark.slow
def test_exported_models(rows, tmp_path):
    model = unwhitened(rows)
    model.mean_function = gpflow.functions.Constant(0.3)
    dual = gb.models.DualBSVM(rows, ard(), lik.Hinge(), rows[0][:5].copy())
    for number, one in enumerate((model, dual)):
        found = exported(one, tmp_path / str(number))
        p = found.predict_proba(rows[0])["probabilities"]
        np.testing.assert_allclose(p, one.predict_y(rows[0])[0], rtol=0, atol=1e-10)


@pytest.mark.slow
def test_a_kernel_of_ones_own_is_exported(rows, scaled, tmp_path):
    found = exported(scaled, tmp_path / "out")
    p = found.predict_proba(rows[0])["probabilities"]
    np.testing.assert_allclose(p, scaled.predict_y(rows[0])[0], rtol=0, atol=1e-10)


def test_export_refuses(rows, tmp_path):
    (tmp_path / "file").write_text("mine")
    with pytest.raises(FileExistsError, match="export to a new directory"):
        gb.export(make_model(rows), tmp_path)
    with pytest.raises(TypeError, match=r"got Matern32"):
        gb.export(k.Matern32(), tmp_path / "new")
    with pytest.raises(ValueError, match="not fitted"):
        gb.export(gb.BSVMClassifier(), tmp_path / "new")
    assert os.listdir(tmp_path) == ["file"]


def in_a_fresh_process(code, folder):
    """What the code writes, to the folder that it runs in."""
    environment = {**os.environ, "PYTHONPATH": str(Path(gb.__file__).parent.parent)}
    subprocess.run([sys.executable, "-c", code], cwd=folder, env=environment, check=True)
    return np.load(folder / "p.npy")


@pytest.mark.drill
@pytest.mark.slow
def test_an_exported_model_needs_tensorflow_only(rows, classifiers, tmp_path):
    model = classifiers["strings"]
    gb.export(model, tmp_path / "out")
    np.save(tmp_path / "X.npy", rows[0])
    code = """
import sys, numpy as np, tensorflow as tf
model = tf.saved_model.load("out")
np.save("p.npy", model.predict_proba(np.load("X.npy"))["probabilities"])
assert not {"gpflow", "gpflow_bsvm", "tensorflow_probability"} & set(sys.modules)
"""
    p = in_a_fresh_process(code, tmp_path)
    np.testing.assert_allclose(p, model.predict_proba(rows[0]), rtol=0, atol=1e-10)


@pytest.mark.slow
def test_a_file_is_loaded_in_a_fresh_process(rows, classifiers, tmp_path):
    gb.save(classifiers["strings"], tmp_path / "model.bsvm")
    np.save(tmp_path / "X.npy", rows[0])
    code = """
import numpy as np, gpflow_bsvm as gb
np.save("p.npy", gb.load("model.bsvm").predict_proba(np.load("X.npy")))
"""
    p = in_a_fresh_process(code, tmp_path)
    np.testing.assert_array_equal(p, classifiers["strings"].predict_proba(rows[0]))
