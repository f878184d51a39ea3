//! What a message-passing program does: readers, the compiled form, writers, generators.
