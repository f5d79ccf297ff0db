"""What tamis does with whole files: one job, one module."""

from tamis.jobs.encoding import encoding
from tamis.jobs.inspect import inspect
from tamis.jobs.repack import repack
from tamis.jobs.spec import spec
from tamis.jobs.verify import verify

__all__ = ["encoding", "inspect", "repack", "spec", "verify"]
