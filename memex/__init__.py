"""Memex: the long-term memory of people who work with AI coding CLIs."""

__version__ = "0.1.0"
