"""project -> localise -> accumulate -> solve: the steps of fits and predictions."""
