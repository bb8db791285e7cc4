"""Builds: read the sources, run the stages whose fingerprint changed, publish a generation."""
