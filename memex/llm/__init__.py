"""Who writes summaries: the seam, the shapes of the answers, and the writer that needs no model."""
