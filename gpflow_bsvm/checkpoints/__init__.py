"""How a fit goes on in another process: its state in files, and what tells one fit from another."""

from .. import quiet  # noqa: F401 - imports GPflow before others do
