//! From samples to the parameters of a model.
