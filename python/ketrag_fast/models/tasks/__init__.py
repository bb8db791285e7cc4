"""LLM tasks: prompts and reply parsers, and the driver that runs them."""
