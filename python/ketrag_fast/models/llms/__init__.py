"""Large language models (LLMs), local or behind an endpoint."""
