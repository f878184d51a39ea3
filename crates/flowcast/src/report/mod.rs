//! What people look at: the self-contained page.
