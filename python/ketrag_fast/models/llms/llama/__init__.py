"""Models on this machine, run by llama.cpp through llama-cpp-python."""
