"""The Subject Spaces model: one concept of the paper a file.

H. K. Y. Leung, I. Burcea, H.-A. Jacobsen: *Modeling Location-based Services with Subject Spaces*
(CASCON 2003). The section that a module implements stands in its docstring, and what it reads
differently under *Departure*.
"""
