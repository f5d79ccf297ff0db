"""The accessor ``Dataset.tamis``: filters of variables, and files with any filters."""
