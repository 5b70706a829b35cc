"""How often again: each task is one verb of the library on one batch, with the retries of `policy`."""
