"""From raw text to observations (L1), talk summaries (L2) and session summaries (L3)."""
