"""What the attach kinds share: options, hooks, order, errors."""
