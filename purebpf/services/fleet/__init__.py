"""Profiles of many hosts: a hub that stores the windows of agents and answers about them."""
