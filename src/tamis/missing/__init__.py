"""Missing values: their definition, filling the gaps that they leave, and restoring them."""
