"""What a pass over all values of an array finds: missing values, range and deviation, measures of whole fields."""
