//! Lists of different lengths in one vector.

/// Lists, one after the other.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Lists<T> {
    /// Where each list begins; one more entry at the end.
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

    /// Adds a list behind the others.
    pub(super) fn push(&mut self, list: impl IntoIterator<Item = T>) {
        self.entries.extend(list);
        self.begins.push(self.entries.len());
    }

    /// How many lists there are.
    pub(super) fn len(&self) -> usize {
        self.begins.len() - 1
    }

    /// The entries of all lists.
    pub(super) fn entries(&self) -> &[T] {
        &self.entries
    }

    /// The list with a number from 0.
    #[inline]
    pub(super) fn list(&self, number: u32) -> &[T] {
        let number = number as usize;
        &self.entries[self.begins[number]..self.begins[number + 1]]
    }
}
