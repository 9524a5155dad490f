"""V8: the frames of JavaScript functions, read from outside of the process that runs them."""
