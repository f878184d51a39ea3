//! Statistics: medians, intervals, regression, error measures.
