"""A fuzzer of certificates: nasty problems, and a judge of what models store that shares no code with the library.

`evaluate` says what the objective of stored numbers is, `descend` finds points that are better, `cases`
makes problems, `library` hands them to the estimators (the only file that imports the library), `judge` compares.
`entries` is one of its own, for L1,1 paths. By hand: ``python -m tests.fuzz --fits 500 --seed 1 --only lasso``.
"""
