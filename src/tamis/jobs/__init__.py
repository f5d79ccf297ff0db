"""What the commands and Python call: a folder or module for each job.

Jobs know storage formats by `tamis.formats.registry` alone; `export` and `repair` are about one format, and name it.

- `result`: how results become text, tables, JSON and HTML.
- `workers`: processes for tasks, here or of a Dask cluster.
- `progress`: what a job tells its caller while it runs.
"""
