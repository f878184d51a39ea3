//! Lists of different lengths in one vector.

/// Lists that are stored one after the other.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Lists<T> {
    /// Start of each list, with one more entry for the end of the last.
    begins: Vec<usize>,
    entries: Vec<T>,
}

impl<T> Lists<T> {
    pub(super) fn new() -> Lists<T> {
        Lists {
            begins: vec![0],
            entries: Vec::new(),
        }
    }

    /// Appends a list. Its number is the number of lists before it.
    pub(super) fn push(&mut self, list: impl IntoIterator<Item = T>) {
        self.entries.extend(list);
        self.begins.push(self.entries.len());
    }

    /// Number of lists, including empty ones.
    pub(super) fn len(&self) -> usize {
        self.begins.len() - 1
    }

    /// Returns the entries of all lists.
    pub(super) fn entries(&self) -> &[T] {
        &self.entries
    }

    /// Returns the list with this number, counted from 0.
    #[inline]
    pub(super) fn list(&self, number: u32) -> &[T] {
        let number = number as usize;
        &self.entries[self.begins[number]..self.begins[number + 1]]
    }
}
