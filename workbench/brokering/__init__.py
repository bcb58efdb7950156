"""Brokers and the way of a notification: what stands between an engine and a client."""
