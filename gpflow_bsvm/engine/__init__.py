"""project -> localise -> accumulate -> solve: what every fit and every prediction is made of."""
