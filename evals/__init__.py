"""How well memories are found again, on public data with labels."""
