"""What `tamis.open` returns: a file of any format, its groups, and arrays that are read by selections.

A read: `tamis.formats.opening.open` returns a `tamis.reading.file.File`; a selection of one of its arrays is cut into
parts of chunks (`tamis.arrays.selection`). The array's `tamis.arrays.chunk_reader.ChunkReader` looks them up in the
index, reads their bytes and decodes them in threads; `tamis.arrays.cache` keeps chunks that may be needed again.

- `file`: files and groups.
- `array`: the base of arrays.
- `listed`: stores that list all their arrays when they are opened.
"""
