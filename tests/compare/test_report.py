"""A report is one file that says what came out, whatever data are called."""

import base64
import functools
import io
import re
import shutil
import subprocess
from dataclasses import replace

import numpy as np
import pytest
from comparisons import FAILED, NASTY, Reader, made_up, three
from matplotlib import image

from gpflow_bsvm.compare import page, pictures, report
from gpflow_bsvm.compare.protocol import Comparison

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
        text = page.page(sets, command=command, pictures=with_pictures)
        path.write_text(text, encoding="utf-8")
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
        for held in report.contests(one):
            for name in list(held.losses)[1:]:
                lost = held.behind[name, held.leaders[0]]
                assert page.rounded(lost) in read.text
        for sentence in report.verdicts(one):
            assert sentence in read.text
        for record in report.summary(one.fold_scores):
            if record["mean"]["nll"] is not None:
                assert f"{record['mean']['nll']:.3f}" in read.text
    assert f"svc, 1 of 2 folds: {FAILED}" in read.text
    for needed in ("gpflow_bsvm", "processor", "tensorflow", "num_inducing", "Settings"):
        assert needed in read.text


@pytest.mark.slow
def test_the_picture_of_a_set_is_that_of_the_results(written, tmp_path):
    sets, path = written(True)
    shown = re.findall(r'src="data:image/png;base64,([^"]*)"', path.read_text(encoding="utf-8"))
    assert len(shown) == 2
    pictures.draw(sets[0], tmp_path / "picture.png")
    drawn = image.imread(tmp_path / "picture.png")
    np.testing.assert_array_equal(image.imread(io.BytesIO(base64.b64decode(shown[0]))), drawn)


def test_bold_are_the_best_and_their_ties():
    text = page.page([three()], pictures=False)
    assert "<img" not in text
    scores = text[text.index("<caption>Scores") :]
    rows = re.findall(r'<tr><th scope="row">(\w+)</th>(.*?)</tr>', scores, flags=re.S)[:3]
    bold = [name for name, cells in rows if "<b>" in cells.split("</td>")[2]]  # of NLL
    assert bold == report.contests(three())[-1].leaders


@pytest.mark.slow
def test_dollar_signs_in_names_are_no_formulas(tmp_path):
    pictures.draw(three(name=r"$\frac$", num_classes=3), tmp_path / "picture.png")
    assert (tmp_path / "picture.png").stat().st_size > 10_000


def test_a_page_of_failures_only():
    done = three(failing=[(name, fold) for name in ("bsvm", "svgp", "svc") for fold in (0, 1)])
    read = Reader(page.page([done]))
    assert "there is no result" in read.text and f"bsvm, 2 of 2 folds: {FAILED}" in read.text


def test_nothing_to_report():
    done = three()
    done.fold_scores = []
    with pytest.raises(ValueError, match="no model was fitted to any fold"):
        page.page([done])


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


# --- what is missing, and what is best ------------------------------------------------------------


def test_an_early_end_is_told():
    done = three()
    done.fold_scores = done.fold_scores[:-1]
    del done.held_out["svc"][1]
    later = Comparison(replace(done.dataset, name="later"), done.settings)
    read = Reader(page.page([done, later], pictures=False))
    assert "moons ended early" in read.text and "later was not started." in read.text


def test_sets_that_are_won_are_counted():
    sets = [three(), three(name="again")]
    leaders = [held.leaders for held in report.contests(sets[0])]
    expected = {
        name: [(2 * (name in best), 2) for best in leaders] for name in ("bsvm", "svgp", "svc")
    }
    assert dict(page._wins(sets)) == expected and page._wins(sets[:1]) == []


@pytest.mark.parametrize(
    "numbers, text",
    [
        ((0.1234, 0.1, 0.15), "0.123 [0.100, 0.150]"),
        ((0.017, -0.0022, 0.036), "0.017 [-0.002, 0.036]"),
        ((0.022, 0.00049, 0.044), "0.0220 [0.0005, 0.0440]"),
        ((0.5, 0.0, 1.0), "0.500 [0.000, 1.000]"),
        ((0.0, 0.0, 0.0), "0.000 [0.000, 0.000]"),
    ],
)
def test_an_interval_has_decimals_enough_to_show_whether_it_excludes_0(numbers, text):
    assert page.rounded(report.Interval(*numbers)) == text


def test_a_page_explains_what_takes_part_and_nothing_else():
    for models, there in (("svc", []), ("svgp,svc", ["Adam", "at most 7 "])):
        done = made_up(dict.fromkeys(models.split(","), 1.0))
        done.settings = replace(done.settings, fixed_kernel=False)
        text = page.page([done], pictures=False)
        words = ("bsvm ", "VEM", "Adam", "BSVMClassifier", "at most 7 ")
        assert [word for word in words if word in text.replace("gpflow-bsvm ", "")] == there
        assert ("M = 7" in report.table(done)) == bool(there)
    assert "svgp and bsvm have the same kernel" not in page.page([three()], pictures=False)  # fixed
