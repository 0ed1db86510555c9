"""Tables of rows on a cluster: measured on two workers, calculated for more."""

from __future__ import annotations

import math

import pandas as pd

from .markdown import markdown

#: What is calculated: rows in all, and in a partition; numbers of workers.
ROWS, PARTITION_ROWS, WORKERS = 1_000_000_000, 1_000_000, (1, 8, 32, 128, 512, 1024)
#: Of a network, assumed: bytes a second, and seconds of a message. Sums of so many become one.
BANDWIDTH, LATENCY, FAN_IN = 1e8, 1e-3, 8


def cluster(rows: pd.DataFrame) -> str:
    large = rows[rows["rows"] == rows["rows"].max()]
    lines = []
    for kept, group in large.groupby("kept"):
        one, two = (group[group["workers"] == number]["seconds"].median() for number in (1, 2))
        speed = [f"{group['rows'].iloc[0] / seconds / 1e6:.2f}" for seconds in (one, two)]
        name = "kept on the workers" if kept else "made anew in each pass"
        lines.append([name, *speed, f"{one / two:.2f}"])
    header = ["features", "million rows a second, one worker", "two workers", "times faster"]
    return markdown(header, lines)


def cluster_growth(rows: pd.DataFrame) -> str:
    large, tiny = (rows[rows["rows"] == size] for size in (rows["rows"].max(), rows["rows"].min()))
    one = large[(large["workers"] == 1) & ~large["kept"]]
    rate = (one["rows"] / one["seconds"]).median()
    first, both = (tiny[tiny["workers"] == n]["seconds"].median() for n in (1, 2))
    # A task costs its worker something, which two workers share, and the scheduler, which is one.
    task = (2 * both - first) / tiny["partitions"].iloc[0]
    message = LATENCY + FAN_IN * rows["sum_bytes"].iloc[0] / BANDWIDTH
    partitions = ROWS // PARTITION_ROWS
    lines = []
    for number in WORKERS:
        rounds = math.ceil(partitions / number)  # of partitions that a worker has
        work = rounds * PARTITION_ROWS / rate
        tree = math.ceil(math.log(partitions, FAN_IN)) * message
        whole = max(work, partitions * task) + tree
        speedup = ROWS / rate / whole
        shown = (f"{part:.2g}" for part in (work, partitions * task, tree, whole))
        lines.append([number, *shown, f"{speedup:.0f}", f"{speedup / number:.0%}"])
    header = ["workers", "seconds of computing", "of scheduling", "of adding up", "a pass"]
    return markdown([*header, "times faster than one", "of the ideal"], lines)


def worker_kills(rows: pd.DataFrame) -> str:
    lines = []
    for name, fit in rows.groupby("fit", sort=False):
        longer = fit["seconds"].median() / fit["alone_seconds"].iloc[0]
        lines.append([name, len(fit), f"{longer:.1f}", int(fit["equal"].sum())])
    return markdown(
        ["fit", "workers killed", "times longer, median", "equal to the last bit"], lines
    )
