"""Settings, filters, progress, memory and safe reading of small files, for use by all other packages."""
