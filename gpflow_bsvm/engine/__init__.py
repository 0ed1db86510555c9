"""project -> localise -> accumulate -> solve: the steps of every fit and every prediction."""
