"""Local LLMs, run by llama.cpp through llama-cpp-python."""
