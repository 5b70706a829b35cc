"""From a CLI's log files to records: archive, adapters, ingest."""
