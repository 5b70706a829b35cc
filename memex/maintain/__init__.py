"""A graph of memories that stays small and true: derive, consolidate, compress, roll up, sleep; every step undone."""
