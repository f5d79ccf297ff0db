"""Files that appear complete or not at all: the transaction, its journal, and what a killed run leaves."""
