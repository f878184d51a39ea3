//! Which of several networks carries the next message.
