"""Files as people have them: after training and predicting, labels are what the file says."""

import gzip
import io
from decimal import Decimal

import numpy as np
import pytest
from command_line import run

pandas = pytest.importorskip("pandas")
pa = pytest.importorskip("pyarrow")
parquet_files = pytest.importorskip("pyarrow.parquet")

N = 36
RNG = np.random.default_rng(0)
A, B = RNG.integers(-40, 40, size=(2, N)) / 8  # all of them exact
FIRST = A + B > 0
WORDS = np.where(FIRST, "yes", "no")


def text(labels=WORDS, sep=",", header="a,b,y", row=None, end="\n", a=A, b=B):
    """A table of text, line by line."""
    row = row or (lambda a, b, y: f"{a}{sep}{b}{sep}{y}")
    lines = [header.replace(",", sep) if header and sep != "," else header]
    lines += [row(*values) for values in zip(a, b, labels)]
    return end.join(line for line in lines if line is not None) + end


def labels_of(one, other):
    return np.where(FIRST, one, other)


def comma(number):
    return str(number).replace(".", ",")


def parquet(column, **more):
    stream = io.BytesIO()
    parquet_files.write_table(pa.table({"a": A, "b": B, "y": column, **more}), stream)
    return stream.getvalue()


def arff(labels, kinds):
    head = (
        f"% about\n@relation r\n@attribute a numeric\n@attribute 'b' real\n@attribute y {kinds}\n"
    )
    return head + "@data\n" + "".join(f"{a},{b},{y}\n" for a, b, y in zip(A, B, labels)) + "% end\n"


def svmlight(labels):
    return "".join(f"{y} 1:{a} 3:{b}\n" for a, b, y in zip(A, B, labels))


def traits():
    """Name: file name, content, options, and the labels that must come back."""
    zero, codes = labels_of("007", "012"), pa.array(WORDS.tolist())
    ordered = pandas.Series(pandas.Categorical(WORDS, ["yes", "no"], ordered=True))
    big = labels_of("12345678901234567890", "12345678901234567891")
    decimals = pa.array([Decimal(int(y)) for y in FIRST], pa.decimal128(1, 0))
    day, other = labels_of("2020-01-05", "2020-01-06"), labels_of("12:30", "9:15")
    table = {
        "leading zeros": ("t.csv", text(zero), [], zero),
        "signs": ("t.csv", text(labels_of("+1", "-1")), [], labels_of("+1", "-1")),
        "only signs": ("t.csv", text(labels_of("+", "-")), [], labels_of("+", "-")),
        "truth": ("t.csv", text(labels_of("true", "false")), [], labels_of("true", "false")),
        "exponents": ("t.csv", text(labels_of("1e3", "1000")), [], labels_of("1e3", "1000")),
        "hexadecimal": ("t.csv", text(labels_of("0x1A", "26")), [], labels_of("0x1A", "26")),
        "points": ("t.csv", text(labels_of("1.0", "1.00")), [], labels_of("1.0", "1.00")),
        "too large": ("t.csv", text(big), [], big),
        "dates as labels": ("t.csv", text(day), [], day),
        "times as labels": ("t.csv", text(other), [], other),
        "NA as a label": (
            *("t.csv", text(labels_of("NA", "DE")), ["--na-values", ""]),
            labels_of("NA", "DE"),
        ),
        "semicolons and decimal commas": (
            *("t.csv", text(sep=";", row=lambda a, b, y: f"{comma(a)};{comma(b)};{y}"), []),
            WORDS,
        ),
        "thousands": (
            "t.tsv",
            text(sep="\t", row=lambda a, b, y: f"{a * 8e3:,.0f}\t{b}\t{y}"),
            ["--thousands", ","],
            WORDS,
        ),
        "commas in names": (
            "t.csv",
            text(header="Größe, cm;Gewicht, kg;y", row=lambda a, b, y: f"{a};{b};{y}"),
            [],
            WORDS,
        ),
        "spaces after commas": (
            *("t.csv", text(labels_of("<=50K", ">50K"), sep=", "), []),
            labels_of("<=50K", ">50K"),
        ),
        "runs of spaces": (
            "t.txt",
            text(row=lambda a, b, y: f" {a:8}   {b:8} {y}", sep=" "),
            [],
            WORDS,
        ),
        "R's write.table": (
            "t.txt",
            text(header='"a" "b" "y"', row=lambda a, b, y: f'"{a * 9 + b}" {a} {b} "{y}"'),
            [],
            WORDS,
        ),
        "R's with commas": (
            "t.csv",
            text(header='"a","b","y"', row=lambda a, b, y: f'"r{a} {b}",{a},{b},"{y}"'),
            [],
            WORDS,
        ),
        "pandas' index": (
            *("t.csv", text(header=",a,b,y", row=lambda a, b, y: f"1,{a},{b},{y}"), []),
            WORDS,
        ),
        "no header": ("t.data", text(header=None), ["--names", "a,b,y"], WORDS),
        "Windows' lines and a mark": ("t.csv", ("\ufeff" + text(end="\r\n")).encode(), [], WORDS),
        "Latin-1": (
            "t.csv",
            text(labels_of("für", "ähm")).encode("latin-1"),
            ["--encoding", "latin-1"],
            labels_of("für", "ähm"),
        ),
        "UTF-16": (
            "t.csv",
            text(labels_of("für", "ähm")).encode("utf-16"),
            [],
            labels_of("für", "ähm"),
        ),
        "compressed": ("t.csv.gz", gzip.compress(text(zero).encode()), [], zero),
        "quoted line ends": (
            *("t.csv", text(row=lambda a, b, y: f'{a},{b},"{y}, ""so""\nit is"'), []),
            [f'{y}, "so"\nit is' for y in WORDS],
        ),
        "missing numbers": (
            *("t.csv", text(a=["?", *A[1:]], b=[*B[:-1], "NA"]), ["--impute"]),
            WORDS,
        ),
        "a name, a date and a word": (
            "t.csv",
            text(
                header="who,when,a,b,y",
                row=lambda a, b, y: (
                    f"n{a}{b},2020-0{1 + int(abs(a))}-11,{'v' if a > 0 else 'u'},{b},{y}"
                ),
            ),
            ["--drop", "who", "--dates", "when"],
            WORDS,
        ),
        "chosen columns, words among them": (
            "t.csv",
            text(
                header="who,a,b,y", row=lambda a, b, y: f"n{a}{b},{'v' if a > 0 else 'u'},{b},{y}"
            ),
            ["--features", "a,b"],
            WORDS,
        ),
        "ARFF": ("t.arff", arff(labels_of("'a b'", "1"), "{'a b',1}"), [], labels_of("a b", "1")),
        "ARFF of numbers": (
            "t.arff",
            arff(labels_of("01", "1"), "numeric"),
            [],
            labels_of("01", "1"),
        ),
        "svmlight": ("t.svm", svmlight(labels_of("+1", "-1")), [], labels_of("+1", "-1")),
        "svmlight, linear": (
            "a9a",
            svmlight(labels_of("+1", "-1")),
            ["--linear"],
            labels_of("+1", "-1"),
        ),
        "Parquet dictionaries": ("t.parquet", parquet(codes.dictionary_encode()), [], WORDS),
        "Parquet's views": (
            "t.parquet",
            parquet(codes.cast(getattr(pa, "string_view", pa.string)())),
            [],
            WORDS,
        ),
        "Parquet's order": ("t.parquet", parquet(pa.Array.from_pandas(ordered)), [], WORDS),
        "Parquet's decimals": ("t.parquet", parquet(decimals), [], labels_of("1", "0")),
        "Parquet's dates": ("t.parquet", parquet(pa.array(day.tolist()).cast("date32")), [], day),
        "Parquet's truth": ("t.parquet", parquet(pa.array(FIRST)), [], labels_of("True", "False")),
        "Parquet's long integers": (
            *("t.parquet", parquet(pa.array([2**63 + int(y) for y in FIRST], pa.uint64())), []),
            [str(2**63 + int(y)) for y in FIRST],
        ),
    }
    return table


TRAITS = traits()
#: In `make test`; the others are slow.
FEW = ("leading zeros",)


def mark(number, name):
    """Each is a fit of its own: the first always, every fifth in CI, all with `make drills`."""
    marks = [pytest.mark.slow] * (name not in FEW) + [pytest.mark.drill] * (number % 5 > 0)
    return pytest.param(name, marks=[] if name in FEW else marks)


@pytest.mark.usefixtures("quick_training")
@pytest.mark.parametrize("name", [mark(*each) for each in enumerate(TRAITS)])
def test_what_a_file_says_comes_back(tmp_path, capsys, name):
    file, content, options, labels = TRAITS[name]
    path, model, out = tmp_path / file, tmp_path / "m.npz", tmp_path / "p.csv"
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    how = ["--target", "y", "--num-inducing", 4, "--no-progress"]
    assert run("train", path, *how, "--output", model, *options) == 0, capsys.readouterr().err
    about = capsys.readouterr().out
    told = [repr(str(label))[1:-1] for label in {*labels}]
    assert all(label in about for label in told)  # the classes
    reading = [one for one in options if one not in ("--impute", "--linear")]
    if "--features" in reading:
        reading = []
    assert run("predict", model, path, *reading, "--output", out) == 0, capsys.readouterr().err
    found = pandas.read_csv(out, dtype=str, keep_default_na=False)
    assert {*found["label"]} <= {*labels}
    assert (found["label"] == np.asarray(labels)).mean() > 0.8
    assert sorted(found.columns) == sorted([*(f"p({label})" for label in {*labels}), "label"])
