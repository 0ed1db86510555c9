"""A report is one file that says what came out, whatever data are called, and costs no result."""

import copy
import functools
import html.parser
import json
import re
import shutil
import subprocess
import sys
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from matplotlib import image
from scipy import stats

from gpflow_bsvm import cli, metrics, plotting
from gpflow_bsvm.compare import (
    BASELINES,
    Comparison,
    FoldScore,
    Settings,
    Trace,
    report,
)
from gpflow_bsvm.datasets import Dataset
from gpflow_bsvm.page import contests, markup, methods, pictures, words, write

FAST = ["--target", "kind", "--folds", "2", "--num-inducing", "5", "--no-progress"]
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
            done.held_out.setdefault(model, []).append((y[rows], P))
            scores = metrics.evaluate(y[rows], P)
            done.fold_scores.append(FoldScore(*about, "ok", scores, 0.1 + fold + number, 5.0))
    return done


def three(**options):
    return made_up({"bsvm": 2.0, "svgp": 1.95, "svc": 0.5}, **options)


class Reader(html.parser.HTMLParser):
    """Checks that elements are closed in turn, and keeps what there is."""

    VOID = ("meta", "path", "use", "rect", "image", "stop")

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


# --- who is best, and who ties -------------------------------------------------------------------


@pytest.mark.parametrize("score", contests.ROW_LOSSES)
@pytest.mark.parametrize("num_classes", [2, 4])
def test_row_losses_have_the_metric_as_mean(score, num_classes):
    for y, P in made_up({"a": 1.0}, num_classes=num_classes).held_out["a"]:
        expected = metrics.METRICS[score].function(y, P)
        np.testing.assert_allclose(
            contests.ROW_LOSSES[score](y, P).mean(), expected, rtol=1e-12, atol=1e-15
        )


def test_a_contest_is_a_paired_t_test_at_a_level_for_all():
    done = three()
    held = contests.contest(done, "nll")
    assert list(held.losses) == ["bsvm", "svgp", "svc"] and held.num_rows == 200
    rows = {
        name: np.concatenate([contests.ROW_LOSSES["nll"](*fold) for fold in done.held_out[name]])
        for name in held.losses
    }
    for name, lost in held.behind.items():
        expected = stats.ttest_rel(rows[name], rows["bsvm"])
        low, high = expected.confidence_interval(0.975)  # 0.95 for two of them together
        np.testing.assert_allclose(lost, [held.losses[name][0] - held.losses["bsvm"][0], low, high])
    low, high = stats.ttest_1samp(rows["svc"], 0).confidence_interval(0.95)
    np.testing.assert_allclose(held.losses["svc"], [rows["svc"].mean(), low, high])
    assert not held.behind["svc"].has_zero
    assert "svc" not in held.level


@pytest.mark.filterwarnings("error")  # Student's t of equal numbers would warn
def test_equal_losses_have_no_spread():
    losses = np.full(7, 0.7)
    assert contests._interval(losses, 0.95) == (losses.mean(),) * 3
    assert contests._interval(losses[:1], 0.95) == (0.7, 0.7, 0.7)


def test_equal_predictions_tie():
    done = made_up({"a": 1.0, "b": 1.0})
    for score in contests.ROW_LOSSES:
        held = contests.contest(done, score)
        assert held.level == ["a", "b"] and held.behind["b"] == (0, 0, 0)


def test_a_model_without_a_fold_takes_no_part():
    done = three(failing=[("bsvm", 1)])
    assert set(contests.contest(done, "nll").losses) == {"svgp", "svc"}
    all_short = three(failing=[("bsvm", 1), ("svgp", 1), ("svc", 1)])
    assert contests.contest(all_short, "nll").num_rows == 100
    other_folds = made_up({"a": 1.0, "b": 1.0}, failing=[("a", 0), ("b", 1)])
    assert contests.contest(other_folds, "nll") is None  # no row is in common
    assert contests.contest(Comparison(done.dataset, done.settings), "nll") is None


def test_mean_ranks():
    sets = [three() for _ in range(4)]
    found = contests.mean_ranks(sets, "nll")
    assert found.means == {"bsvm": 1.0, "svgp": 2.0, "svc": 3.0}
    columns = np.array([[1, 2, 3]] * 4).T
    assert found.p_value == pytest.approx(stats.friedmanchisquare(*columns).pvalue)
    q = 2.343  # three models, Table 5 of Demsar (2006), whose last digit is cut off
    assert found.critical_difference == pytest.approx(q * np.sqrt(3 * 4 / (6 * 4)), rel=5e-4)
    assert contests.mean_ranks(sets, "auc").means["svc"] == 3  # where greater is better
    assert contests.mean_ranks(sets[:1], "nll") is None
    assert contests.mean_ranks([*sets, made_up({"bsvm": 1.0, "svgp": 0.5})], "nll") is None
    alike = [made_up({"a": 1.0, "b": 1.0, "c": 1.0})] * 2
    assert contests.mean_ranks(alike, "nll").p_value == 1


# --- in words ------------------------------------------------------------------------------------


def test_a_winner_is_told_with_its_lead():
    done = made_up({"svc": 0.2, "bsvm": 3.0})
    held = contests.contest(done, "nll")
    mean, low, high = held.behind["svc"]
    nll, error = words.outcome(done)
    assert f"bsvm is best with {words.number(held.losses['bsvm'].mean)} (" in nll
    assert f"svc by {mean:.3f} ({low:.3f} to {high:.3f})." in nll
    assert "a tie" not in nll and "bsvm is best" in error


def test_a_tie_is_told_as_one():
    nll, error = words.outcome(made_up({"a": 1.0, "b": 1.0}))
    for sentence in (nll, error):
        assert "it is a tie: the two cannot be told apart" in sentence and "best" not in sentence
    nll, _ = words.outcome(made_up({"a": 1.0, "b": 1.0, "c": -2.0}))
    assert "a is best" in nll and ", b cannot be told apart from it, and worse is c by" in nll


def test_one_model_is_no_contest():
    nll, _ = words.outcome(made_up({"a": 1.0}))
    assert "a, which nothing is compared with, has" in nll


def test_who_failed_is_told():
    told = words.outcome(three(failing=[("svc", 1)]))
    assert told[-1] == f"svc has no result on 1 of 2 folds ({FAILED})."
    lost = three(failing=[(name, fold) for name in ("bsvm", "svgp", "svc") for fold in (0, 1)])
    assert words.outcome(lost)[0] == "No model could be fitted to moons, so there is no result."
    assert "No model could be fitted" in words.overview([lost])


def test_an_early_end_is_told():
    done = three()
    done.fold_scores = done.fold_scores[:-1]
    del done.held_out["svc"][-1]
    later = Comparison(replace(done.dataset, name="later"), done.settings)
    text = words.overview([done, later])
    assert "The comparison ended early on moons" in text and "It did not come to later." in text


def test_the_overview_counts_sets():
    text = words.overview([three(), three(name="again")])
    assert text.startswith("Three classifiers, bsvm, svgp and svc, were cross-validated on moons (")
    assert "2 stratified folds" in text and "at most 7 inducing points" in text
    assert "bsvm on 2 of 2 data sets" in text and "svc on none" in text


@pytest.mark.parametrize(
    "value, text", [(0.1234, "0.123"), (0.00123, "0.0012"), (0, "0.000"), (-0.5, "-0.500")]
)
def test_numbers(value, text):
    assert words.number(value) == text


# --- markup --------------------------------------------------------------------------------------


def test_text_is_escaped_and_markup_is_not():
    inner = markup.element("b", "<")
    assert inner == "<b>&lt;</b>"
    assert markup.element("p", inner, "&", id='"') == '<p id="&quot;"><b>&lt;</b>&amp;</p>'
    assert markup.element("meta", name="a", http_equiv="b") == '<meta name="a" http-equiv="b">'
    assert markup.join(["<", inner], "|") == "&lt;|<b>&lt;</b>"


# --- the page ------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def written(tmp_path_factory):
    """
    Writes once a page of two sets with nasty names, one of three classes, and a model that failed.
    """
    sets = [three(name=NASTY, failing=[("svc", 0)]), three(name="three", num_classes=3)]
    folder = tmp_path_factory.mktemp("page")

    @functools.cache
    def written_with(with_pictures):
        path = folder / f"{with_pictures}" / "report.html"
        path.parent.mkdir()
        command = f"gpflow-bsvm compare '{NASTY}'"
        write.write_page(sets, path, command=command, pictures=with_pictures)
        return sets, path

    return written_with


@pytest.mark.parametrize("with_pictures", [False, pytest.param(True, marks=pytest.mark.slow)])
def test_the_page_is_well_formed_and_whole(written, with_pictures):
    _, path = written(with_pictures)
    text = path.read_text(encoding="utf-8")
    read = Reader(text)
    assert len(read.ids) == len(set(read.ids))
    assert not {tag for tag, _ in read.tags} & {"script", "link", "iframe", "object"}
    for _, given in read.tags:
        for name, value in given.items():
            assert not name.startswith("on")
            if name in ("src", "href", "xlink:href", "srcset", "data"):
                assert value.startswith(("#", "data:"))
                assert not value.startswith("#") or value[1:] in read.ids
    assert not re.search(r"url\((?!#)|@import", text)
    assert set(re.findall(r"url\(#([^)]*)\)", text)) <= set(read.ids)
    assert [one.name for one in path.parent.iterdir()] == ["report.html"]  # nothing half done


def test_the_page_shows_what_came_out(written):
    sets, path = written(False)
    read = Reader(path.read_text(encoding="utf-8"))
    assert read.text.count(NASTY) > 3
    for one in sets:
        for sentence in words.outcome(one):
            assert sentence in read.text
        for record in write.summary(one.fold_scores):
            if record["mean"]["nll"] is not None:
                assert f"{record['mean']['nll']:.3f}" in read.text
    assert f"svc, 1 of 2 folds: {FAILED}" in read.text
    for needed in ("gpflow_bsvm", "processor", "tensorflow", "num_inducing", "Settings"):
        assert needed in read.text


@pytest.mark.slow
def test_pictures_take_the_pages_colours(written):
    text = written(True)[1].read_text(encoding="utf-8")
    assert not [color for color in pictures._COLORS if color in text]
    for name in set(re.findall(r"var\((--[a-z0-9-]+)\)", text)):
        assert text.count(f"{name}:") == 3  # by day, by night, on paper
    # Per set 3 scores, time, 3 reliabilities; a confusion matrix of three classes.
    assert text.count("<figure") == text.count("<svg") == 2 * 7 + 1
    assert r"0 $\frac$ &lt;s" in text  # a class's name, letter for letter


def test_bold_are_the_best_and_their_ties():
    text = write.page([three()], pictures=False)
    assert "<svg" not in text
    rows = re.findall(r'<tr><th scope="row">(\w+)</th>(.*?)</tr>', text)[:3]
    bold = [name for name, cells in rows if "<b>" in cells.split("</td>")[2]]  # of NLL
    assert bold == contests.contest(three(), "nll").level


@pytest.mark.slow
def test_dollar_signs_in_names_are_no_formulas(tmp_path):
    report.draw(three(name=r"$\frac$", num_classes=3), tmp_path / "picture.png")
    assert (tmp_path / "picture.png").stat().st_size > 10_000


@pytest.mark.drill
@pytest.mark.slow
def test_a_page_of_ranks_and_of_curves():
    sets = [three(name=str(n)) for n in range(2)]
    sets[0].traces = {
        "bsvm": Trace([0.1, 0.2, 0.4], [-9.0, -5.0, -4.0], [0.4, 0.3, 0.2], [3, 2, 1])
    }
    # Two of curves on the first set; mean ranks in two scores.
    assert write.page(sets).count("<figure") == 2 * 7 + 2 + 2


def test_a_page_of_failures_only():
    done = three(failing=[(name, fold) for name in ("bsvm", "svgp", "svc") for fold in (0, 1)])
    read = Reader(write.page([done]))
    assert "there is no result" in read.text and f"bsvm, 2 of 2 folds: {FAILED}" in read.text


def test_nothing_to_report(tmp_path):
    done = three()
    done.fold_scores = []
    with pytest.raises(ValueError, match="no model was fitted to any fold"):
        write.write_page([done], tmp_path / "page.html")
    assert list(tmp_path.iterdir()) == []


def test_an_old_page_stays_until_the_new_one_is_whole(tmp_path, monkeypatch):
    path = tmp_path / "page.html"
    path.write_text("old")

    def fail(*args):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("os.fsync", fail)
    with pytest.raises(OSError, match="No space left"):
        write.write_page([three()], path, pictures=False)
    assert path.read_text() == "old" and len(list(tmp_path.iterdir())) == 1


def test_fingerprints_know_rows_labels_and_order():
    dataset = three().dataset
    prints = {methods.fingerprint(dataset)}
    prints.add(methods.fingerprint(replace(dataset, name="another")))
    assert len(prints) == 1
    prints.add(methods.fingerprint(replace(dataset, X=dataset.X[::-1])))
    prints.add(methods.fingerprint(replace(dataset, y=dataset.y[::-1])))
    prints.add(methods.fingerprint(replace(dataset, X=dataset.X + 1e-15)))
    assert len(prints) == 4


@pytest.mark.parametrize(
    "value, text",
    [
        (np.array(4.0), "4"),
        (np.array([1.23456, 2]), "1.235, 2"),
        (np.arange(30.0).reshape(2, 15), "2 x 15 numbers from 0 to 29"),
        ([0.1, 1.0], "0.1, 1"),
        ("two\nlines", "two lines"),
        (None, "None"),
    ],
)
def test_parameters_as_text(value, text):
    assert methods.as_text(value) == text


def test_what_differs_between_data_sets_has_a_line_for_each(monkeypatch):
    sets = [three(name="one"), three(name="two")]
    for number, done in enumerate(sets):
        told = {"svc": {"C": number, "cv": 5}}
        monkeypatch.setattr(done, "parameters", lambda told=told: told)
    text = write.page(sets, pictures=False)
    assert [text.count(row) for row in (">C, one<", ">C, two<", ">cv<", ">C<")] == [1, 1, 1, 0]


def test_score_dots():
    _, (ax,) = plotting.figure(1, 1)
    plotting.score_dots(ax, {"a": 2.0, "b": 1.0}, {"a": [1.5, 2.5]}, {"b": (0.5, 1.5)}, what="NLL")
    assert [tick.get_text() for tick in ax.get_yticklabels()] == ["a", "b"]
    shown = [line.get_xdata() for line in ax.lines]
    assert [list(np.ravel(x)) for x in shown] == [[1.5, 2.5], [2.0], [], [0.5, 1.5], [1.0]]
    assert ax.get_ylim()[0] > ax.get_ylim()[1]  # the first is on top
    with pytest.raises(ValueError, match="expected models of"):
        plotting.score_dots(ax, {}, {})
    with pytest.raises(ValueError, match=r"expected models of \['a'\], got \['b'\]"):
        plotting.score_dots(ax, {"a": 1.0}, {"b": [1.0]})


# --- the command ---------------------------------------------------------------------------------


class BaseRate:
    has_trace, note = False, ""

    def fit(self, X, y, Z, kernel, seed, watch=None):
        self.p = np.bincount(y) / len(y)

    def predict_proba(self, X):
        return np.tile(self.p, (len(X), 1))

    def parameters(self):
        return {"rate": self.p}


class Crash(BaseRate):
    def fit(self, *args):
        raise RuntimeError("out of luck")

    def parameters(self):
        return {}


class Interrupt(Crash):
    def fit(self, *args):
        raise KeyboardInterrupt


@pytest.fixture
def models(monkeypatch):
    """Quick stand-ins under the names that the command line knows."""
    for name, model in {"bsvm": BaseRate, "svgp": Crash, "svc": Interrupt}.items():
        entry = replace(BASELINES[name], factory=lambda C, model=model: model())
        monkeypatch.setitem(BASELINES, name, entry)


@pytest.fixture
def compare(models, tmp_path):
    """:return: exit code of the command, whose report is `page.html` unless told otherwise."""
    X = np.random.default_rng(0).normal(size=(60, 2))
    table = pd.DataFrame({"a": X[:, 0], "b": X[:, 1], "kind": X[:, 0] > 0})
    table.to_csv(tmp_path / "ro ws.csv", index=False)

    def run(*options, report=tmp_path / "page.html", names="bsvm", plots="--no-plots"):
        options = [*options, plots] if plots else options
        how = ["--models", names, "--output", tmp_path / "out", "--report", report, *options]
        try:
            return cli.main(["compare", str(tmp_path / "ro ws.csv"), *FAST, *map(str, how)])
        except SystemExit as end:
            return end.code

    return run


def one_line(capsys):
    err = capsys.readouterr().err
    assert err.startswith("gpflow-bsvm: error: ") and err.count("\n") == 1
    return err


@pytest.mark.slow
def test_the_command_writes_a_page_with_itself_on_it(compare, tmp_path, capsys):
    assert compare("--seed", 3, plots=None) == 0
    out = capsys.readouterr().out
    assert out.endswith(f"\nwritten to {tmp_path / 'out'} and {tmp_path / 'page.html'}\n")
    read = Reader((tmp_path / "page.html").read_text(encoding="utf-8"))
    assert (
        f"gpflow-bsvm compare '{tmp_path / 'ro ws.csv'}' --target kind --folds 2 --num-inducing 5 "
        f"--models bsvm --variance 4.0 --seed 3 --output {tmp_path / 'out'} "
        f"--report {tmp_path / 'page.html'}"
    ) in read.text
    assert "rate 0." in read.text  # a parameter of the method
    assert "svg" in {tag for tag, _ in read.tags}


def test_a_page_in_the_directory_of_results(compare, tmp_path):
    assert compare(report=tmp_path / "out" / "page.HTML") == 0
    assert (tmp_path / "out" / "page.HTML").stat().st_size > 1000


@pytest.mark.parametrize(
    "name, message",
    [
        ("report", "expected a name that ends in .html, got"),
        ("report.pdf", "expected a name that ends in .html, got"),
        ("nowhere/report.html", "there is no directory"),
        ("folder.html", "is a directory, and the name of a file is needed"),
    ],
)
def test_a_bad_place_ends_before_training(name, message, compare, tmp_path, capsys, monkeypatch):
    monkeypatch.setattr(Comparison, "run", lambda *args, **kw: pytest.fail("trained"))
    (tmp_path / "folder.html").mkdir()
    assert compare(report=tmp_path / name) == 2
    assert message in one_line(capsys)


def test_without_matplotlib_only_without_pictures(compare, tmp_path, capsys, monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    assert compare(plots=None) == 2
    assert 'pip install "gpflow_bsvm[compare]"' in one_line(capsys)
    assert not (tmp_path / "page.html").exists()
    assert compare() == 0
    assert "<svg" not in (tmp_path / "page.html").read_text(encoding="utf-8")


def test_a_report_that_fails_costs_no_result(compare, tmp_path, capsys, monkeypatch):
    monkeypatch.setattr(words, "overview", lambda sets: 1 / 0)
    assert compare() == 1
    line = one_line(capsys)
    assert f"results are in {tmp_path / 'out'}, but no report {tmp_path / 'page.html'}" in line
    assert "ZeroDivisionError: division by zero" in line
    assert json.loads((tmp_path / "out" / "results.json").read_text())["summary"]
    assert not (tmp_path / "page.html").exists()


def test_an_interrupt_leaves_a_page_of_what_is_done(compare, tmp_path):
    assert compare(names="bsvm,svc") == 130
    text = (tmp_path / "page.html").read_text(encoding="utf-8")
    assert "The comparison ended early on ro ws" in text


def test_an_interrupt_before_the_first_row_spares_an_old_page(compare, tmp_path):
    (tmp_path / "page.html").write_text("old")
    assert compare(names="svc") == 130
    assert (tmp_path / "page.html").read_text() == "old"


def test_a_page_where_all_models_crash(compare, tmp_path, capsys):
    assert compare(names="svgp") == 1
    assert "no model could be fitted" in one_line(capsys)
    assert "failed: RuntimeError: out of luck" in (tmp_path / "page.html").read_text()


@pytest.mark.slow
@pytest.mark.parametrize("name", ["classifier", "bsvm", "svgp", "svc", "gpc"])
def test_every_kind_of_model_tells_its_parameters(name):
    random = np.random.default_rng(0)
    dataset = Dataset("few", random.normal(size=(40, 2)), np.arange(40) % 2, ("a", "b"))
    done = Comparison(dataset, Settings(folds=2, num_inducing=5, fixed_kernel=name != "classifier"))
    done.run([name], with_traces=False, progress=False)
    assert done.fold_scores[0].ok
    told = done.parameters()[name]
    expected = {
        "classifier": "penalty",
        "bsvm": "likelihood.penalty",
        "svgp": "kernel.lengthscales",
        "svc": "searched C",
        "gpc": "optimizer",
    }
    assert expected[name] in told
    assert all(methods.as_text(value) for value in told.values())


# --- in a browser --------------------------------------------------------------------------------

BROWSER = next(filter(None, map(shutil.which, ("chromium", "google-chrome", "chrome"))), None)
in_a_browser = pytest.mark.skipif(
    BROWSER is None, reason="NO BROWSER: install chromium to see the report as a reader does"
)


def browse(path, *options):
    """:return: what a headless browser without a network has printed."""
    profile = path.parent / "profile"
    quiet = ["--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage"]
    quiet += ["--hide-scrollbars", f"--user-data-dir={profile}"]
    offline = ["--host-resolver-rules=MAP * ~NOTFOUND", "--enable-logging=stderr"]
    done = subprocess.run(
        [BROWSER, *quiet, *offline, *options, path.as_uri()],
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert done.returncode == 0, done.stderr
    assert "CONSOLE" not in done.stderr, done.stderr  # nothing was refused, nothing is wrong
    return done.stdout


def screenshot(path, width, *options):
    picture = path.with_name(f"{width}.png")
    browse(path, f"--window-size={width},1600", f"--screenshot={picture}", *options)
    return image.imread(picture)[..., :3]


@pytest.mark.slow
@in_a_browser
def test_the_page_by_day_and_by_night(written):
    _, path = written(True)
    day, night = screenshot(path, 1100), screenshot(path, 1100, "--force-dark-mode")
    assert np.median(day) > 0.95 and np.median(night) < 0.15
    for seen in (day, night):
        colours = np.unique(np.round(seen.reshape(-1, 3), 2), axis=0)
        assert np.count_nonzero(np.ptp(colours, axis=1) > 0.3) > 10  # pictures are drawn


@pytest.mark.slow
@in_a_browser
@pytest.mark.parametrize("width", [360, 1100])
def test_nothing_sticks_out_on_a_phone(written, width):
    _, path = written(True)
    frame = path.with_name("frame.html")
    frame.write_text(
        f"""<iframe src="{path.name}" width="{width}" height="700" onload="
        const page = this.contentDocument.scrollingElement;
        document.title = page.scrollWidth + ' of ' + page.clientWidth"></iframe>"""
    )
    told = browse(frame, "--allow-file-access-from-files", "--dump-dom")
    wide, room = map(int, re.search(r"<title>(\d+) of (\d+)</title>", told).groups())
    assert wide <= room and room >= width - 20


@pytest.mark.slow
@in_a_browser
def test_the_page_can_be_printed(written):
    _, path = written(True)
    paper = path.with_name("page.pdf")
    browse(path, f"--print-to-pdf={paper}")
    assert paper.read_bytes().startswith(b"%PDF") and paper.stat().st_size > 20_000
