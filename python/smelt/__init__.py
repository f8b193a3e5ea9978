"""Metal compute kernels on machines without Metal: compile, run, check and differentiate them from Python."""

from smelt._smelt import __version__, devices

__all__ = ["__version__", "devices"]
