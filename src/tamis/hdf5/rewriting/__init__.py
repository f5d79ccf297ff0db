"""Write one dataset anew, chunk by chunk in threads, and compare what is in the file with its source."""

from tamis.hdf5.rewriting.companions import create_empty, flags_for, replace_companions
from tamis.hdf5.rewriting.copies import stored_alike, stored_so
from tamis.hdf5.rewriting.counting import MissingCount, count_missing, count_partial
from tamis.hdf5.rewriting.estimating import likely_nbytes, most_nbytes
from tamis.hdf5.rewriting.growth import LargerError, compresses
from tamis.hdf5.rewriting.history import History
from tamis.hdf5.rewriting.plans import Plan, Written
from tamis.hdf5.rewriting.shapes import better_chunks
from tamis.hdf5.rewriting.streams import has_streams
from tamis.hdf5.rewriting.unreadable import unreadable
from tamis.hdf5.rewriting.verifying import Verified, verify, verify_copied
from tamis.hdf5.rewriting.writing import would_grow, write
from tamis.store.journal import Journal, Run, companion_key
from tamis.store.leftovers import Leftover, find_leftovers

__all__ = [
    "History",
    "Journal",
    "LargerError",
    "Leftover",
    "MissingCount",
    "Plan",
    "Run",
    "Verified",
    "Written",
    "better_chunks",
    "companion_key",
    "compresses",
    "count_missing",
    "count_partial",
    "create_empty",
    "find_leftovers",
    "flags_for",
    "has_streams",
    "likely_nbytes",
    "most_nbytes",
    "replace_companions",
    "stored_alike",
    "stored_so",
    "unreadable",
    "verify",
    "verify_copied",
    "would_grow",
    "write",
]
