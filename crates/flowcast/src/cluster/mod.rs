//! Nodes, racks and the flows between them.
