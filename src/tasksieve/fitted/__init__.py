"""What a fitted model is, by any solver: prediction, scores, progress, model selection, the path.

`parameters` is the table of parameters that estimators share (default, text, check), `documented` completes signatures
and docstrings from it when a class is made.
"""
