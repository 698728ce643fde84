"""The version of the workbench, for every layer: the package's front door may not be opened from below."""

__version__ = "0.1.0"
