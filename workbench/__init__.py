"""A workbench for location-based publish/subscribe."""
