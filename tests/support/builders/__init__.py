"""Objects, types, filters and profiles, built for tests."""
