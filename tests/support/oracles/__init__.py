"""Programs and readers that know the truth, to compare with."""
