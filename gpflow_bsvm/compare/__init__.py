"""Compare Bayesian SVMs and other models with the same folds, scaling and inducing points."""
