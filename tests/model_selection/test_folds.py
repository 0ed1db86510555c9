"""Folds of held-out rows: they depend on the rows alone."""

import numpy as np
import pytest
from helpers import make_data

from gpflow_bsvm.model_selection import held_out as selection
from gpflow_bsvm.prediction.calibration import has_company


@pytest.fixture(scope="module")
def data():
    return make_data()


def members(X, Y, **options):
    """The rows of each fold, as a set of the rows' contents."""
    rows = np.column_stack([X, Y])
    return [{tuple(row) for row in rows[test]} for _, test in selection._folds(X, Y, 3, 0)]


def test_folds_are_a_stratified_partition_of_the_rows(data):
    X, Y = (np.concatenate([column, column[:20], column[:5]]) for column in data)
    folds = selection._folds(X, Y, 3, 0)
    for train, test in folds:
        assert len(np.intersect1d(train, test)) == 0 and len(train) + len(test) == len(X)
        for label, count in zip(*np.unique(Y, return_counts=True)):
            assert count // 3 <= (Y[test] == label).sum() <= -(-count // 3)
    assert sorted(np.concatenate([test for _, test in folds])) == [*range(len(X))]


def cells(labels=3):
    """:return: 300 distinct rows of few values, in no order, and their numbers of copies."""
    rng = np.random.default_rng(1)
    rows = np.array([[a, b, c] for a in range(10) for b in range(10) for c in range(labels)])
    rows = rng.permutation(rows).astype(float)
    return rows[:, :2], rows[:, 2:], rng.integers(1, 5, len(rows))


def test_parts_of_a_row_share_its_copies_and_are_in_different_folds():
    X, Y, counts = cells()
    rows, share = selection.in_parts(X, Y, counts)
    np.testing.assert_allclose(np.bincount(rows, share), 1, rtol=1e-12)
    copies = share * counts[rows]
    np.testing.assert_allclose(copies, np.round(copies), rtol=1e-12)
    assert (copies[counts[rows] == 1] == 1).all()
    each = np.full(len(rows), -1)
    for k, (_, test) in enumerate(selection._folds(X[rows], Y[rows], 3, 0, are_parts=True)):
        each[test] = k
    assert len(np.unique(np.column_stack([rows, each]), axis=0)) == len(rows)


def test_copies_are_held_out_as_if_each_were_put_into_a_fold_at_random():
    """A row that was always held out with all its copies taught fits that its label is rare."""
    X, Y, _ = cells()
    rows, _ = selection.in_parts(X, Y, np.full(len(X), 2))
    separate = (np.bincount(rows) == 2).mean()  # probability 2/3
    assert abs(separate - 2 / 3) < 3 * (2 / 9 / len(X)) ** 0.5  # standard errors
    _, share = selection.in_parts(X, Y, np.full(len(X), 1e300))
    np.testing.assert_allclose(share, 1 / 3, atol=0.002)  # four deviations of a million copies


def test_parts_depend_on_no_order_of_rows_or_columns_and_on_no_names():
    X, Y, counts = cells()
    rows, share = selection.in_parts(X, Y, counts)
    order = np.random.default_rng(0).permutation(len(X))
    for other in (
        selection.in_parts(X[:, ::-1], Y, counts),
        selection.in_parts(X, np.array(["c", "a", "b"])[Y.astype(int)], counts),
    ):
        assert all(map(np.array_equal, other, (rows, share)))
    again, shares = selection.in_parts(X[order], Y[order], counts[order])
    expected = np.concatenate([share[rows == row] for row in order])
    np.testing.assert_array_equal(shares, expected)
    assert list(again) == list(np.repeat(np.arange(len(X)), np.bincount(rows)[order]))


def test_folds_do_not_depend_on_the_order_of_the_rows(data):
    order = np.random.default_rng(0).permutation(len(data[0]))
    assert members(*data) == members(data[0][order], data[1][order])


def test_folds_do_not_depend_on_the_names_of_the_classes(data):
    X, Y = (column[:58] for column in data)
    Y = Y + (X[:, :1] > 0)
    assert any(np.unique(Y, return_counts=True)[1] % 3)  # else classes would not shift each other
    folds = [test for _, test in selection._folds(X, Y, 3, 0)]
    for names in ([2, 0, 1], [1, 2, 0], [7, 5, 3], ["c", "a", "b"]):
        again = [test for _, test in selection._folds(X, np.array(names)[Y.astype(int)], 3, 0)]
        assert all(map(np.array_equal, folds, again))


def test_folds_depend_on_no_order_of_columns_or_names_even_if_rows_are_alike():
    """Rows of few values: some differ in the label only, or in the order of their values."""
    rng = np.random.default_rng(0)
    X, Y = np.round(rng.normal(size=(60, 3))), rng.integers(0, 3, (60, 1))
    folds = [test for _, test in selection._folds(X, Y, 3, 0)]
    for columns, names in (([2, 0, 1], [0, 1, 2]), ([0, 1, 2], [2, 0, 1])):
        again = selection._folds(X[:, columns], np.array(names)[Y], 3, 0)
        assert all(map(np.array_equal, folds, [test for _, test in again]))


def test_a_class_of_one_row_is_left_out_in_no_fold_and_changes_no_other(data):
    X, Y = data
    classes = [np.full((1, 1), 5.0), np.full((2, 1), 6.0)]
    places = np.array([[9.0, 9.0], [8.0, 9.0], [9.0, 8.0]])
    folds = selection._folds(np.r_[X, places], np.concatenate([Y, *classes]), 3, 0)
    assert all(len(X) in train for train, _ in folds)
    assert sorted(np.concatenate([test for _, test in folds])) == [*range(len(X)), 61, 62]
    for train, _ in folds:  # of two rows one is there
        assert np.intersect1d(train, [61, 62]).size > 0
    alone = selection._folds(X, Y, 3, 0)
    with_one = selection._folds(np.r_[X, places[:1]], np.r_[Y, classes[0]], 3, 0)
    share = [len(np.intersect1d(a, b)) / len(a) for (_, a), (_, b) in zip(alone, with_one)]
    assert len(alone) == len(with_one) and min(share) > 0


def test_lists_of_rows(data):
    given = []

    def look(*rows):
        given.append(rows[0])
        raise InterruptedError

    with pytest.raises(InterruptedError):
        selection.held_out_density(look, tuple(part.tolist() for part in data))
    assert given[0].shape == (40, data[0].shape[1])


def test_bad_folds(data):
    X, _ = data
    with pytest.raises(ValueError, match="num_folds must be at least 2, got 1"):
        selection.held_out_density(None, data, num_folds=1)
    with pytest.raises(ValueError, match="enough_rows must be at least 1, got 0"):
        selection.held_out_density(None, data, enough_rows=0)
    each = np.arange(len(X), dtype=float)[:, None]
    each[1] = 0
    with pytest.raises(ValueError, match=r"3 folds need .* twice or more, got 2 such rows of 60; "):
        selection.held_out_density(None, (X, each), num_folds=3)
    assert has_company(each, np.ones(len(X))).sum() == 2
    for bad in ((X, each[1:]), (X[:, 0], each), (X, None)):
        with pytest.raises(ValueError, match=r"X must be \[N, D\] and Y \[N, 1\], got shapes"):
            selection.held_out_density(None, bad)
