"""Programs that tests run and look into."""
