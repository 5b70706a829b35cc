"""The hooks of Memex in the settings of AI CLIs."""
