"""Forget: what a person wants gone leaves archive, lake and indexes, and is kept from coming back."""
