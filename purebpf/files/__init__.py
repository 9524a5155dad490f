"""Files that no other user can redirect: opened step by step, and replaced as a whole."""
