"""Continue a fit in another process: store its state in files, and identify the fit."""

from .. import quiet  # noqa: F401 - imports GPflow before others do
