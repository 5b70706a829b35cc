"""Live reading: what is written is findable seconds later, and summarised when it is complete."""
