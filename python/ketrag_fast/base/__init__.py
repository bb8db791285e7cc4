"""Settings, filters, progress, memory and safe reading of small files: what every other part may use."""
