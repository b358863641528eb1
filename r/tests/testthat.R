library(testthat)
library(tasksieve)

test_check("tasksieve")
