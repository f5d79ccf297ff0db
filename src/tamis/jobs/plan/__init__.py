"""The job plan: which filters meet a requirement, measured on a sample of each variable, and which to choose.

- `requirements`, `recommended`: what is required, by the user or by publications.
- `sample`, `measure`, `candidates`, `planner`: a sample, what filters do to it, and the choice.
- `planned`: what a plan says of a variable.
- `costs`: what filters cost, in classes that are the same on each machine.
- `noise`, `ladder`: bounds from the noise of a variable, where nothing is required.
- `chunk_shapes`: chunk shapes for the ways in which an array is read.
- `foreign_filters`: filters that are measured for comparison, and never chosen.
- `choices`: the words that options may be.
- `readers`: who can read what is chosen.
"""
