"""Full text, vectors, and their fusion."""
