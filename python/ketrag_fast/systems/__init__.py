"""The systems: each a module that says everything about itself. `registry` knows which there are."""
