"""Memory that arrives by itself."""
