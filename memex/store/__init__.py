"""The lake: LanceDB tables, opened, read and upserted under one locking rule."""
