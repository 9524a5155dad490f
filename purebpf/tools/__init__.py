"""One package a command: request, session, render."""
