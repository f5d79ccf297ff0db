from tamis._of_hdf5 import Appender as Appender
from tamis._of_hdf5 import Partial as Partial
from tamis._of_hdf5 import PhaseChange as PhaseChange
from tamis._of_hdf5 import chunk_type as chunk_type
from tamis._of_hdf5 import create_appender as create_appender
from tamis._of_hdf5 import create_dataset as create_dataset
from tamis._of_hdf5 import create_group as create_group
from tamis._of_hdf5 import group_filters as group_filters
from tamis._of_hdf5 import group_phase_change as group_phase_change
from tamis._of_hdf5 import pipeline_of as pipeline_of
from tamis._of_hdf5 import read_chunk as read_chunk
from tamis._of_hdf5 import write as write
from tamis._of_hdf5 import write_stream as write_stream

__all__ = ["Appender", "Partial", "PhaseChange", "chunk_type", "create_appender", "create_dataset", "create_group", "group_filters", "group_phase_change", "pipeline_of", "read_chunk", "write", "write_stream"]
