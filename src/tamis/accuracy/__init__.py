"""Accuracy of values: differences, statistics, and comparison of two arrays."""
