"""Wenzel et al. (2016): the kernel machine over all points, the linear machine, grids of 1000.

Four parts. The paper's table: 10-fold errors of the kernel machine with the augmented bound, its
kernel learned, beside the exact bound, SVC and GPC. The linear machine on generated rows of known
weights and on USPS: time against the number of rows, by coordinate ascent, stochastically, and by
the Gibbs sampler that it competes with. The same sampler for the kernel machine. And the
regularisation constant learned, against a grid of 1000. First what is cheap.
"""

from __future__ import annotations

from ._contract import Stage, Suite

SMALL, USPS = ("sonar", "crabs", "pima"), ("usps_3vs5",)
SETS = (*SMALL, *USPS)
FOLDS = tuple(range(10))
#: "all": its kernel is learned over all points, too; of the others over 200 of them.
MACHINES, ALL = ("bsvm-augmented", "bsvm-exact", "bsvm-exact-priors"), ("bsvm-augmented-all",)
PEERS = ("svc", "gpc")
KERNEL_MCMC = ("bsvm-mcmc",)

CHEAP, GPC = (*MACHINES, PEERS[0]), PEERS[1:]

#: Generated rows of so many; a split is a draw.
GENERATED = tuple(f"generated-{number}" for number in (1000, 10_000, 100_000))
LARGEST = ("generated-1000000",)
LINEAR = ("linear-augmented", "linear-exact", "linear-svi", "linear-svc")
LINEAR_MCMC = ("linear-mcmc",)

CONSTANT_SETS = ("heart", "diabetis", "sonar", "german")
LEARNED, GRIDS = ("learned-augmented", "learned-exact"), ("grid-30", "grid-1000")

CONSTANT = (*LEARNED, *GRIDS)

#: The others are these with another bound, more points, or a finer grid.
SMOKE = (
    *(MACHINES[0], MACHINES[2], *PEERS, *KERNEL_MCMC),
    *(LINEAR[0], *LINEAR[2:], *LINEAR_MCMC, LEARNED[0], GRIDS[0]),
)

SUITE = Suite(
    fits="suites._wenzel2016",
    stages=(
        Stage(SMALL, FOLDS[:5], CHEAP),
        Stage(GENERATED, FOLDS[:1], (*LINEAR, *LINEAR_MCMC)),
        Stage(SMALL[:2], FOLDS, GPC),
        Stage(SMALL, FOLDS[:1], KERNEL_MCMC),
        Stage(CONSTANT_SETS[:1], FOLDS[:1], CONSTANT),
        Stage(SMALL, FOLDS[5:], CHEAP),
        Stage(USPS, FOLDS[:1], (*CHEAP, *LINEAR, *LINEAR_MCMC, *KERNEL_MCMC)),
        Stage(CONSTANT_SETS[1:3], FOLDS[:1], CONSTANT),
        Stage(SMALL[2:], FOLDS[:5], GPC),
        Stage(USPS, FOLDS[:1], GPC),
        Stage(USPS, FOLDS[1:5], CHEAP),
        Stage(LARGEST, FOLDS[:1], LINEAR[:3]),
        Stage(SMALL[2:], FOLDS[:1], ALL),
        Stage(CONSTANT_SETS[:3], FOLDS[1:3], CONSTANT),
        Stage(GENERATED, FOLDS[1:3], (*LINEAR, *LINEAR_MCMC)),
        Stage(SMALL, FOLDS[1:3], KERNEL_MCMC),
        Stage(CONSTANT_SETS[3:], FOLDS[:3], CONSTANT),
        Stage(SMALL[2:], FOLDS[5:], GPC),
        Stage(USPS, FOLDS[5:], CHEAP),
        Stage(CONSTANT_SETS, FOLDS[3:], CONSTANT),
        Stage(SMALL[2:], FOLDS[1:], ALL),
        Stage(USPS, FOLDS[1:], GPC),
        Stage(USPS, FOLDS[1:3], KERNEL_MCMC),
        Stage(USPS, FOLDS[:3], ALL),
    ),
    smoke=(Stage(("generated-60",), (0,), SMOKE),),
    limit=1200.0,
)
