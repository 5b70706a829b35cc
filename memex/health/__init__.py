"""Whether archive, lake and indexes agree, and what to do when they do not."""
