"""The job of many files: listed, given to processes or a cluster, and recorded beside the targets.

`job` runs it: `listing` finds sources and targets, `order` says which files wait for others, and each file is a `task`
for a process, which writes a record (`state`).

- `ranges`: one packing of a variable for all files.
- `look_ahead`: mistakes that are found before the first file is made.
- `leftovers`: what killed runs left.
- `manifest`, `result`: what was done.
- `verify`: two folders compared.
"""
