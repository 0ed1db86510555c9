"""Files of a directory, compressed or not: none is left out, or read, without a word."""

import bz2
import gzip
import lzma

import pytest
from tables_as_read import read, values

from gpflow_bsvm.tables.paths import about_folder, find_files

pa = pytest.importorskip("pyarrow")

ROWS = b"x,y\n1,u\n2,v\n3,u\n"
PACKED = {"": bytes, ".gz": gzip.compress, ".bz2": bz2.compress, ".xz": lzma.compress}


def zstd(content):
    return pa.compress(content, "zstd", asbytes=True)


@pytest.fixture
def folder(tmp_path):
    for stem in ("a.csv", "b.tab", "c.txt", "d.dat", "sub/e.tsv"):
        for ending, pack in PACKED.items():
            path = tmp_path / (stem + ending)
            path.parent.mkdir(exist_ok=True)
            path.write_bytes(pack(ROWS))
    for name in ("f.csv.zip", "g.xlsx", "_SUCCESS", ".hidden.csv", "._a.csv"):
        (tmp_path / name).write_bytes(b"PK\3\4")
    return tmp_path


def test_files_that_can_be_read_are_read_and_others_are_named(folder):
    found = find_files(folder)
    assert len(found) == 5 * len(PACKED)
    assert about_folder(str(folder), found) == (
        f"20 files of {folder} are read: a.csv to sub/e.tsv.xz, 1 subdirectories; left out: "
        "_SUCCESS, f.csv.zip, g.xlsx"
    )


@pytest.mark.parametrize("pack", [*PACKED.values(), zstd])
@pytest.mark.parametrize("name", ["t.csv", "t.dat.xz", "t"])
def test_compression_is_told_by_the_content(tmp_path, pack, name):
    (tmp_path / name).write_bytes(pack(ROWS))
    found = read(tmp_path / name, classes="auto")
    assert values(found)[:, 0].tolist() == [1, 2, 3]


@pytest.mark.parametrize("name", ["t.arff.gz", "t.svm.gz"])
def test_other_formats_may_be_compressed(tmp_path, name):
    arff = b"@relation r\n@attribute x real\n@attribute y {u,v}\n@data\n1,u\n2,v\n"
    content = arff if "arff" in name else b"1 1:1\n2 1:2\n"
    (tmp_path / name).write_bytes(gzip.compress(content))
    assert values(read(tmp_path / name, classes="auto"))[:, 0].tolist() == [1, 2]


def test_a_workbook_is_no_text_whatever_its_name(tmp_path):
    (tmp_path / "t.csv").write_bytes(b"PK\3\4 and more")
    with pytest.raises(ValueError, match="is neither CSV nor Parquet: save it"):
        read(tmp_path / "t.csv")


@pytest.mark.parametrize("pack", [*PACKED.values()][1:])
def test_a_file_cut_short_is_refused(tmp_path, pack):
    (tmp_path / "t.csv").write_bytes(pack(ROWS * 9)[:-12])
    with pytest.raises(ValueError, match=r"cannot read .*t\.csv"):
        read(tmp_path / "t.csv", classes="auto")
