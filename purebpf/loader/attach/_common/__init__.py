"""The common parts of the attach kinds: options, hooks, order, errors."""
