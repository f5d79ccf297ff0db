"""Files that are elsewhere, on object stores and web servers.

- `address`: texts that go wherever a path goes.
- `object_store`: what a store of objects can do, and the files of this machine as one.
- `objects`: stores of objects by address, through obstore or fsspec.
- `counted`: a store that counts what is asked of it.
- `file`: the bytes of an object, in parallel ranges.
- `metadata`: what libhdf5 reads, filled ahead by `nodes`, and kept by `disk_cache`.
- `references`: a document of references (kerchunk) as a store.
- `waiting`: a warning about requests without an answer.
"""
