"""Backups: what nothing else can bring back, in one file or folder, and homes made, or mended, from it."""
