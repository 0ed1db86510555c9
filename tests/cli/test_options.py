"""Options of the commands: how they are written, what a model keeps of them, what errors advise."""

import ast
import shlex
import warnings
from pathlib import Path

import numpy as np
import pytest
from command_line import run

from gpflow_bsvm import BSVMClassifier, cli
from gpflow_bsvm.cli.shared import Parser, in_shell, split, told_in_lines

pandas = pytest.importorskip("pandas")
pytest.importorskip("pyarrow")
HEADER = '"Q1, age",sum,town,id,"Q2, note",y\n'


@pytest.mark.parametrize("names", [[], ["a"], ["a", "b c"], ["Q1, age", 'a "b"', "c"]])
def test_names_are_what_is_written(names):
    option, text = shlex.split(in_shell(f"drop={names}"))
    assert option == "--drop" and split(text) == names


def test_an_option_may_be_given_again():
    parser = Parser()
    cli.shared.add_arguments(parser)
    args = parser.parse_args(["--drop", 'a,"Q1, age"', "--drop", "b", "--na-values", ""])
    assert (args.drop, args.na_values, args.words) == (["a", "Q1, age", "b"], [], None)
    assert in_shell("give drop=['Q1, age', 'b'] or thousands='.'") == (
        "give --drop '\"Q1, age\",b' or --thousands ."
    )
    assert in_shell("give na_values=['[%]', \"it's\"] or drop=['a']") == (
        "give --na-values '[%],it'\"'\"'s' or --drop a"
    )


@pytest.mark.parametrize(
    "names", [["--"], ["---", "x"], ["-x"], ["-"], ["-99", "--"], ["--", "-9"]]
)
def test_advice_on_what_begins_with_a_dash_can_be_typed(names):
    """Such as --na-values -- for cells of dashes, which is another option without its =."""
    parser = Parser()
    cli.shared.add_arguments(parser)
    advice = in_shell(f"give na_values={names} if they mean a missing value")
    args = parser.parse_args(shlex.split(advice)[1:-6])
    assert args.na_values == names


@pytest.mark.parametrize("sign", [",", ".", " ", "'", '"', "\t"])
def test_advice_on_a_sign_is_what_the_option_takes(sign):
    parser = Parser()
    cli.shared.add_arguments(parser)
    for name in ("thousands", "decimal", "separator"):
        args = parser.parse_args(shlex.split(in_shell(f"{name}={sign!r}")))
        assert sign in (args.thousands, args.decimal, args.sep)


@pytest.mark.parametrize("advice", cli.shared._IN_SHELL)
def test_advice_for_the_shell_replaces_some_advice_of_python(advice):
    room = Path(cli.__file__).parent
    texts = [
        node.value
        for path in room.parent.rglob("*.py")
        if path.parent != room
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.Constant) and isinstance(node.value, str)
    ]
    assert any(advice in text for text in texts)


@pytest.mark.filterwarnings("always")
def test_warnings_are_lines(capsys):
    with told_in_lines():
        for advice in ("give inference= more max_steps", "use another"):
            warnings.warn(f"the fit has not converged: {advice}", stacklevel=1)
        warnings.warn("two\nlines; try learn_kernel=False", stacklevel=1)
    told = "the fit has not converged", "two lines"
    assert capsys.readouterr().err == "".join(f"gpflow-bsvm: warning: {one}\n" for one in told)


def rows(number=60):
    """Amounts with points between thousands, words some of which say that there is none."""
    random, lines = np.random.default_rng(0), []
    for row in range(number):
        good = row % 2
        town = random.choice(["unknown", "Oslo", "Rome"])
        amount = f"{random.integers(100, 2000) + 1600 * good:,}".replace(",", ".")
        lines.append(f"{20 + row % 5},{amount},{town},{7 * row},x{row},{['1.3', '1.0'][good]}\n")
    return lines


@pytest.fixture(scope="module")
def model(tmp_path_factory, quick_training):
    folder = tmp_path_factory.mktemp("options")
    (folder / "t.csv").write_text(HEADER + "".join(rows() * 2))
    told = ("--impute", "--na-values", "unknown", "--thousands", ".", "--drop", '"Q2, note"')
    how = (*told, "--drop", "id", "--task", "classification", "--num-inducing", 20, "--no-progress")
    assert run("train", folder / "t.csv", *how, "--output", folder / "m.npz") == 0
    return folder / "m.npz"


@pytest.mark.slow
def test_predict_reads_as_train_did(model, capsys):
    """Amounts would be read as 1.755 for 1755, and missing words as unknown ones."""
    data, out = model.with_name("t.csv"), model.with_name("p.csv")
    assert run("predict", model, data, "--output", out) == 0
    told = "read as in training: --na-values unknown --thousands .\n"
    assert told in capsys.readouterr().out
    found = pandas.read_csv(out, dtype=str)
    truth = pandas.read_csv(data, dtype=str)["y"]
    assert {*found["label"]} == {"1.3", "1.0"} and (found["label"] == truth).mean() > 0.7
    again = ("--na-values", "unknown", "--drop", "id", "--words", "town", "--thousands", ".")
    before = out.read_bytes()
    assert run("predict", model, data, "--output", out, *again) == 0 and out.read_bytes() == before
    capsys.readouterr()
    assert run("predict", model, data, "--output", out, "--decimal", ".") == 0
    assert "read as in training: --na-values unknown\n" in capsys.readouterr().out
    assert out.read_bytes() != before


@pytest.mark.slow
def test_predict_advises_what_it_can_do(model, capsys):
    data = model.with_name("new.csv")
    data.write_text(HEADER + "20,5,Oslo,1,x,\nold,2,Rome,2,x,\n")
    for given, message in [
        ((), "column 'Q1, age' holds numbers and words such as 'old' (row 1): give --na-values"),
        (("--words", '"Q1, age"'), "in training, these columns held numbers"),
        (("--drop", "sum"), "columns that are read as features, target or weight cannot be left"),
    ]:
        assert run("predict", model, data, "--output", model.with_name("q.csv"), *given) == 2
        error = capsys.readouterr().err
        assert message in error and "--drop '" not in error and "words=" not in error


@pytest.mark.slow
@pytest.mark.usefixtures("quick_training")
def test_rows_are_those_of_the_file(tmp_path, capsys):
    """Equal rows were merged before they were counted."""
    (tmp_path / "t.csv").write_text(HEADER + "".join(rows(30) * 2))
    how = ("--impute", "--thousands", ".", "--drop", '"Q2, note",id', "--num-inducing", 3)
    how += ("--task", "classification", "--no-progress", "--output", tmp_path / "m.npz")
    assert run("train", tmp_path / "t.csv", *how) == 0
    assert "\n60 rows, 5 columns, " in capsys.readouterr().out


@pytest.mark.slow
@pytest.mark.usefixtures("quick_training")
def test_a_linear_model_knows_the_numbers_of_sparse_columns(tmp_path, capsys):
    """It took a column 0 that no row had, and those that were to be left out."""
    random, folder = np.random.default_rng(0), tmp_path / "rows"
    folder.mkdir()
    for name in "ab":
        X = random.normal(size=(20, 3)).round(3)
        lines = [f"{int(x[0] > 0)} 1:{x[0]} 2:{x[1]} 3:{x[2]}\n" for x in X]
        (folder / f"{name}.svm").write_text("".join(lines))
    model, zero = tmp_path / "m.npz", tmp_path / "zero.svm"
    how = ("--linear", "--no-progress", "--drop", "x3", "--output", model)
    assert run("train", folder, *how) == 0
    told = capsys.readouterr().out
    assert "\n40 rows, 2 columns, " in told and "inducing points" not in told
    out = ("--output", tmp_path / "p.csv")
    assert run("predict", model, folder, *out) == 0
    truth = [line[0] for name in "ab" for line in (folder / f"{name}.svm").read_text().splitlines()]
    assert (pandas.read_csv(out[1], dtype=str)["label"] == truth).mean() > 0.8
    zero.write_text("1 0:0.5 1:0.25\n")
    assert run("predict", model, zero, *out) == 2
    assert "zero.svm count from 0, but in the training file from 1" in capsys.readouterr().err


def test_labels_that_may_be_numbers_are_classes_where_that_is_said(tmp_path, capsys):
    (tmp_path / "t.csv").write_text("a,y\n" + "1,1.3\n2,1.0\n3,2.0\n" * 4)
    for command in ("train", "compare"):
        assert run(command, tmp_path / "t.csv", "--output", tmp_path / "m.npz") == 2
        error = capsys.readouterr().err
        assert "such as 1.3: they look like numbers" in error
        assert "Use --task regression for numbers; for classes, use --task classification" in error


@pytest.fixture(scope="module")
def mixed(tmp_path_factory):
    """A model of times with a zone, numbers some of which are missing, words and ordered labels."""
    folder, random = tmp_path_factory.mktemp("mixed"), np.random.default_rng(0)
    a, b = random.normal(size=(2, 60))
    level = pandas.Categorical.from_codes(
        np.digitize(b, [-0.5, 0.5]), ["low", "medium", "high"], ordered=True
    )
    when = [f"2024-01-{1 + n % 28:02}T12:00:00+01:00" for n in range(60)]
    a[::9] = np.nan
    table = pandas.DataFrame({"when": when, "a": a, "b": b, "town": [*"uvw"] * 20, "y": level})
    table.to_parquet(folder / "t.parquet")
    return folder


def train_mixed(folder, *options):
    how = ("--dates", "when", "--num-inducing", 8, "--no-progress", *options)
    return run("train", folder / "t.parquet", *how, "--output", folder / "m.npz")


@pytest.mark.slow
@pytest.mark.usefixtures("quick_training")
def test_what_is_missing_is_told_and_what_columns_are_is_kept(mixed, capsys, monkeypatch):
    # A hinge takes no order.
    monkeypatch.setitem(BSVMClassifier.__init__.__kwdefaults__, "loss", "auto")
    assert train_mixed(mixed, "--impute") == 0
    told = "medians replace 7 missing values; columns of 0 and 1 mark them in a\n"
    out = capsys.readouterr().out
    assert told in out and "classes 'low', 'medium', 'high':" in out
    model, output = mixed / "m.npz", mixed / "p.csv"
    assert run("predict", model, mixed / "t.parquet", "--output", output) == 0
    assert capsys.readouterr().out == (
        f"read as in training: --dates when\nnot used: 'y'\n{told}60 rows written to {output}\n"
    )
    found = pandas.read_csv(output)
    assert [*found] == ["p(low)", "p(medium)", "p(high)", "label"]
    truth = pandas.read_parquet(mixed / "t.parquet")["y"].astype(str)
    assert (found["label"] == truth).mean() > 0.7
    table = pandas.read_parquet(mixed / "t.parquet")
    local = table["when"].str.removesuffix("+01:00")
    for wrong, message in [
        (
            table.assign(when=local),
            "training had dates with a time zone, so convert the column",
        ),
        (table.drop(columns="town"), "lacks 'town'; it has when, a, b, y; columns 'when', 'a'"),
    ]:
        wrong.to_csv(mixed / "new.csv", index=False)
        assert run("predict", model, mixed / "new.csv", "--output", mixed / "n.csv") == 2
        assert message in capsys.readouterr().err
