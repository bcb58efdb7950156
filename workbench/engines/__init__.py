"""Engines: a scenario and a history of updates in, timelines out.

* `reference`: the definitions, transcribed; no index, no cache; the judge of all others.
"""
