"""When and in what order: each flow strings tasks together and reports in an artifact."""
