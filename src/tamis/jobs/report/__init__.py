"""The job report: statistics, charts and maps of what compression did, as one HTML page.

`job` compares the variables, and `profiler` adds up their statistics in the same pass; `variable` then reads some
fields once more, by `pair`.

- `charts`, `maps`, `rates`, `findings`: the sections of a variable, and what they mean in words.
- `page`, `parts`: the page, and what all pages are made of; the folder beside them has scripts and styles.
- `chunk_figures`: how the chunks of an array are stored, also for the page of inspect.
- `folder`: a page about a folder of files.
"""
