"""The named data sets: one file = one data set (its constant SET), found by the file's name."""
