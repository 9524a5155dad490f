"""Profiles of many hosts: a hub that stores what agents send, and answers about any range of it."""
