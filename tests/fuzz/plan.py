"""Which cases the tests run: a few for every day, all of them with the slow tests."""

SEED = 13
ALL = range(2196)
PARTS = 18  # tests that share them, so that they run side by side
SHORT = range(0, 2196, 61)  # 36 cases; 61 and the number of estimators have no common factor
SHORT_PARTS = 4
