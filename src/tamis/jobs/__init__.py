"""What tamis does with whole files: one job, one module."""

from tamis.jobs.inspect import inspect
from tamis.jobs.repack import repack

__all__ = ["inspect", "repack"]
