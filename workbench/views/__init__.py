"""What people look at: maps, plots, reports and controls, made from tables and callables, never from an engine."""
