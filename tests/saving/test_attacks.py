"""Files from strangers: each of these attacks did what it wanted before files were mended."""

import inspect
import io
import json
import re
import struct
import sys
import zipfile
import zlib

import gpflow
import keras
import numpy as np
import pytest
from gpflow.keras import tf_keras
from helpers import ard

import gpflow_bsvm as gb
from gpflow_bsvm.deep import DeepKernel
from gpflow_bsvm.saving import objects

KERAS = {"tf_keras": tf_keras, "keras": keras}


@pytest.fixture
def path(tmp_path):
    return tmp_path / "model.bsvm"


def parts_of(path):
    """:return: the arrays of a file, the name of that with the description, and what it tells."""
    with np.load(path) as archive:
        arrays = dict(archive)
    name = next(name for name in arrays if name in ("description", "header"))
    return arrays, name, json.loads(arrays[name].tobytes())


def rewrite(path, change):
    """Change the description in a file."""
    arrays, name, header = parts_of(path)
    change(header)
    arrays[name] = np.frombuffer(json.dumps(header).encode(), np.uint8)
    with path.open("wb") as file:
        np.savez(file, **arrays)


def of_layers(name="tf_keras", *layers):
    """:return: a `DeepKernel` on a `Sequential` of 2 columns."""
    tools = KERAS[name].layers
    shape = tools.InputLayer((2,)) if name == "tf_keras" else tools.Input((2,))
    return DeepKernel(KERAS[name].Sequential([shape, *(layers or [tools.Dense(2)])]), ard())


def refuses(path, what=""):
    """The file is named, by one error, and nothing beside it has come or gone."""
    before = sorted(path.parent.iterdir())
    with pytest.raises(ValueError) as error:
        gb.load(path)
    assert sorted(path.parent.iterdir()) == before
    error.match(rf"(?s)model\.bsvm.*{what}")
    return error


# --- networks ------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", KERAS)
def test_no_layer_is_made_of_a_file(path, name, monkeypatch):
    gb.save(of_layers(name), path)
    layers = {"module": "keras.layers", "class_name": "Lambda", "config": {"name": "l"}}
    rewrite(path, lambda header: state_of(header)["features"].update(keras=name, layers=layers))
    monkeypatch.setattr(KERAS[name].saving, "deserialize_keras_object", None)
    refuses(path, "give the network")
    assert type(gb.load(path, network=of_layers(name).features)) is DeepKernel


# --- what a file sets ----------------------------------------------------------------------------

NAMES = ["K", "__init__", "__setattr__", "_self_setattr_tracking", "__class__", "__dict__", "_name"]
NAMES += ["submodules", "active_dims"]


def state_of(header):
    return header["content"]["state"]


@pytest.mark.parametrize("name", NAMES)
def test_a_file_sets_data_only(path, name):
    gb.save(ard(), path)
    constant = {"kind": "function", "name": "exp"}
    for value in (constant, True, 3.0, [1], {"kind": "dict", "pairs": []}):
        rewrite(path, lambda header, v=value: state_of(header).update({name: v}))
        refuses(path, f"'{name}' of a .* may not be set")


def test_no_constructor_is_called(path, monkeypatch):
    gb.save(ard(), path)
    monkeypatch.setattr(gpflow.kernels.SquaredExponential, "__init__", None)
    assert type(gb.load(path)) is gpflow.kernels.SquaredExponential


@pytest.mark.parametrize("cls", ["os.system", "collections.Counter", "antigravity.Named"])
def test_named_tuples_are_named_tuples(path, cls):
    gb.save(ard(), path)
    named = {"kind": "named", "class": cls, "items": []}
    rewrite(path, lambda header: header.update(content=named))
    refuses(path, f"{cls} is not a NamedTuple")
    assert "antigravity" not in sys.modules


def test_known_classes_are_of_these_rooms_and_take_no_paths():
    modules = [name for name in sys.modules if name.startswith(("gpflow", "sklearn", "tensorflow"))]
    found = {
        objects.find_class(f"{home}.{name}") for home in modules for name in vars(sys.modules[home])
    }
    classes = found - {None}
    assert len(classes) > 50
    assert {cls.__module__.split(".")[0] for cls in classes} == {"gpflow", "gpflow_bsvm"}
    for cls in classes:
        taken = " ".join(inspect.signature(cls.__init__).parameters)
        assert not any(word in taken for word in ("path", "file", "directory", "checkpoint"))


# --- arrays --------------------------------------------------------------------------------------


def with_bytes(path, name, content, method=zipfile.ZIP_STORED):
    """Another entry in the file."""
    with zipfile.ZipFile(path) as archive:
        entries = {n: archive.read(n) for n in archive.namelist()}
    entries[name or max(entries, key=lambda n: n.startswith(("header", "desc")))] = content
    with zipfile.ZipFile(path, "w", method) as archive:
        for n, text in entries.items():
            archive.writestr(n, text)


def npy(header):
    text = header.encode() + b"\n"
    return b"\x93NUMPY\x01\x00" + len(text).to_bytes(2, "little") + text + bytes(16)


def of_shape(shape, kind="<f8"):
    return npy(f"{{'descr': '{kind}', 'fortran_order': False, 'shape': {shape}, }}")


def an_array(path):
    return next(n for n in parts_of(path)[0] if n[-1] == "0") + ".npy"


BAD = {
    "brackets": npy("[" * 9000),
    "huge": of_shape("(1000000000000000,)"),
    "huger": of_shape("(10**30,)"),
    "overflowing": of_shape(f"({10**30},)"),
    "negative": of_shape("(-1, 2)"),
    "object": of_shape("(2,)", "|O"),
    "structured": of_shape("(2,)", "|V8"),
    "long": of_shape("(3,)"),
    "none": b"",
}


@pytest.mark.parametrize("what", BAD)
def test_arrays_that_are_none(path, what):
    gb.save(ard(), path)
    with_bytes(path, an_array(path), BAD[what])
    refuses(path)


@pytest.mark.parametrize(
    "text", ["[" * 100_000, '{"kind":' * 900 + "1" + "}" * 900, "[]", "null", ""]
)
def test_descriptions_that_are_none(path, text):
    gb.save(ard(), path)
    content = io.BytesIO()
    np.save(content, np.frombuffer(text.encode(), np.uint8))
    with_bytes(path, None, content.getvalue())
    refuses(path)


@pytest.mark.parametrize("method", [zipfile.ZIP_DEFLATED, zipfile.ZIP_LZMA])
def test_nothing_is_unpacked(path, method):
    gb.save(ard(), path)
    with_bytes(path, "more.npy", bytes(10), method)
    refuses(path, "compressed")


@pytest.mark.parametrize("method", [1, 9, 93, 99])
def test_packed_in_ways_that_nobody_knows(path, method):
    gb.save(ard(), path)
    content = path.read_bytes().replace(b"PK\x01\x02", b"PK\x01\x02", 1)
    at = content.index(b"PK\x01\x02") + 10
    path.write_bytes(content[:at] + method.to_bytes(2, "little") + content[at + 2 :])
    refuses(path)


def entry(name, content, offset, size=None):
    """:return: an entry of an archive, and what its directory says of it."""
    size = len(content) if size is None else size
    name, check = name.encode(), zlib.crc32(content)
    common = struct.pack("<5H3L2H", 20, 0, 0, 0, 33, check, size, size, len(name), 0)
    told = b"PK\1\2" + struct.pack("<H", 20) + common + struct.pack("<3H2L", 0, 0, 0, 0, offset)
    return b"PK\3\4" + common + name + content, told + name


def archive(entries):
    """:return: an archive of (name, content, offset): None: where it comes to stand."""
    body, directory = b"", b""
    for name, content, offset in entries:
        there, told = entry(name, content, len(body) if offset is None else offset)
        body, directory = body + (there if offset is None else b""), directory + told
    numbers = struct.pack("<4H2LH", 0, 0, len(entries), len(entries), len(directory), len(body), 0)
    return body + directory + b"PK\5\6" + numbers


def test_entries_do_not_overlap(path, monkeypatch):
    """A directory may say a thousand times that the same bytes are an entry."""
    content = of_shape("(2,)")
    path.write_bytes(archive([("header.npy", content, None)] + [("header.npy", content, 0)] * 9))
    refuses(path, "two entries have the same name")
    many = [(f"{n}.npy", content, n and None) for n in range(3)]
    path.write_bytes(archive([*many, ("header.npy", content, 0)]))
    monkeypatch.setattr(zipfile.ZipFile, "testzip", None)  # nothing has been read
    refuses(path, "entries overlap")


def test_entries_end_in_the_file(path):
    content, told = entry("header.npy", of_shape("(2,)"), 0, size=10**9)
    numbers = struct.pack("<4H2LH", 0, 0, 1, 1, len(told), len(content), 0)
    path.write_bytes(content + told + b"PK\5\6" + numbers)
    refuses(path, "reach beyond the end")


def test_any_flipped_bit_of_the_last_bytes_is_harmless_or_told(path):
    gb.save(ard(), path)
    content = path.read_bytes()
    for place in range(1, 23):
        for bit in range(8):
            spoilt = bytearray(content)
            spoilt[-place] ^= 1 << bit
            path.write_bytes(bytes(spoilt))
            try:
                assert type(gb.load(path)) is gpflow.kernels.SquaredExponential
            except ValueError as error:
                assert re.search(
                    r"model\.bsvm is not a complete file from .*it is damaged", str(error)
                )


def put(path, value):
    """:return: nothing; the first array in the file is this."""
    content = io.BytesIO()
    np.save(content, value, allow_pickle=False)
    with_bytes(path, an_array(path), content.getvalue())


@pytest.mark.parametrize("value", [np.nan, np.inf, "text", 3, 1j, np.datetime64(1, "s")])
def test_parameters_are_numbers(path, value):
    gb.save(ard(), path)
    shape = parts_of(path)[0][an_array(path)[:-4]].shape
    put(path, np.full(shape, value))
    refuses(path, r"\.(variance|lengthscales)")


def fitted(path, cls, **attributes):
    """An estimator as a file has it, with these attributes of a fit."""
    estimator = cls()
    vars(estimator).update(attributes)
    gb.save(estimator, path)


NOT_FINITE = [
    *(np.nan, np.inf, -np.inf, [np.nan], [[1.0, np.inf]]),
    {"kind": "list", "items": [np.nan]},
    {"kind": "dict", "pairs": [["a", -np.inf]]},
]


@pytest.mark.parametrize("value", NOT_FINITE)
@pytest.mark.parametrize(
    ("cls", "name"), [(gb.BSVMRegressor, "y_scale_"), (gb.OneClassBSVM, "offset_")]
)
def test_what_a_fit_has_found_is_finite(path, cls, name, value):
    """JSON of Python knows NaN and Infinity: every prediction was NaN, every row an inlier."""
    fitted(path, cls, **{name: 1.0})
    rewrite(path, lambda header: state_of(header).update({name: value}))
    refuses(path, rf"\.{name}: numbers must be finite, got \[.*(nan|inf)")


@pytest.mark.parametrize("value", [np.array([1.0, np.inf]), np.float32(np.inf), np.nan])
def test_what_is_not_finite_is_not_saved(path, value):
    with pytest.raises(TypeError, match=r"classifier\.found_:? .*(must be finite|NaN)"):
        fitted(path, gb.BSVMClassifier, found_=value)
    assert not path.exists()


def test_options_and_classes_of_a_user_may_be_infinite(path, monkeypatch):
    class Cut(gpflow.kernels.SquaredExponential):
        cutoff = np.inf

    monkeypatch.setattr(objects, "_registered", {})
    gb.saving.register(Cut)
    kernel = Cut()
    kernel.cutoff = -np.inf
    gb.save([kernel, gb.BSVMClassifier(penalty=np.inf), gb.inference.SVI()], path)
    kernel, estimator, _ = gb.load(path)
    assert kernel.cutoff == -estimator.penalty == -np.inf


def test_what_is_nan_is_not_saved(path):
    kernel = ard()
    kernel.variance.unconstrained_variable.assign(np.nan)
    with pytest.raises(TypeError, match=r"model.*variance.*NaN"):
        gb.save(kernel, path)
    assert not path.exists()


def test_one_array_is_one_value(path):
    """A small file could hold a large array a thousand times."""
    gb.save(ard(), path)

    def again(header):
        header["content"] = {"kind": "list", "items": [{"kind": "array", "value": 0}] * 2}

    rewrite(path, again)
    refuses(path, "array")


@pytest.mark.parametrize(
    "change",
    [
        {"settings": None},
        {"settings": {"float": None}},
        {"format": [1]},
        {"content": {"kind": "rows", "value": [0]}},
    ],
)
def test_odd_headers(path, change):
    gb.save(ard(), path)
    rewrite(path, lambda header: header.update(change))
    refuses(path)


@pytest.mark.parametrize("name", ["settings", "format", "content"])
def test_headers_that_lack_something(path, name):
    gb.save(ard(), path)
    rewrite(path, lambda header: header.pop(name))
    refuses(path)
