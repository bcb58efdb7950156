"""Side by side with what a user would pick instead.

Each peer computes the same timelines in its own way; its answer is checked before its time counts.
"""
