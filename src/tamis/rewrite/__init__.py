"""Facts from a pass over all values of an array: missing values, range and deviation, measures of whole fields."""
