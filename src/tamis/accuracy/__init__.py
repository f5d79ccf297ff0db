"""How far values are from others: differences, statistics, and two arrays compared."""
