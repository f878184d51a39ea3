//! Dictionary of call signatures: each combination of function and arguments is written once and has a number.

/// Largest number of signatures. When it is reached, all signatures are forgotten.
pub(crate) const MOST: usize = 1 << 15;
/// Largest number of words of all signatures together.
const MOST_WORDS: usize = 1 << 20;

#[derive(Debug)]
pub(crate) struct Dictionary {
    /// Hash table of signature numbers plus one.
    places: Vec<u32>,
    entries: Vec<DictionaryEntry>,
    words: Vec<i64>,
}

#[derive(Debug, Clone, Copy)]
struct DictionaryEntry {
    hash: u64,
    start: u32,
    length: u32,
}

/// Result of a search for a signature.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum SignatureState {
    Known(u32),
    /// The signature is new and has this number.
    New(u32),
    /// The dictionary is full: after it has been cleared, the signature gets number 0.
    Full,
}

impl Default for Dictionary {
    fn default() -> Dictionary {
        Dictionary {
            places: vec![0; MOST * 4],
            entries: Vec::with_capacity(1 << 10),
            words: Vec::with_capacity(1 << 13),
        }
    }
}

impl Dictionary {
    #[inline]
    pub(crate) fn number(&mut self, signature: &[i64]) -> SignatureState {
        let hash = hash(signature);
        let mask = self.places.len() - 1;
        let mut at = (hash >> 20) as usize & mask;
        while self.places[at] != 0 {
            let number = self.places[at] - 1;
            let entry = self.entries[number as usize];
            if entry.hash == hash && self.words_of(entry) == signature {
                return SignatureState::Known(number);
            }
            at = (at + 1) & mask;
        }
        self.add(signature, hash, at)
    }

    #[inline]
    fn words_of(&self, entry: DictionaryEntry) -> &[i64] {
        &self.words[entry.start as usize..][..entry.length as usize]
    }

    #[cold]
    fn add(&mut self, signature: &[i64], hash: u64, at: usize) -> SignatureState {
        let full = self.entries.len() == MOST || self.words.len() + signature.len() > MOST_WORDS;
        if full && !self.entries.is_empty() {
            return SignatureState::Full;
        }
        let number = self.entries.len() as u32;
        self.places[at] = number + 1;
        self.entries.push(DictionaryEntry {
            hash,
            start: self.words.len() as u32,
            length: signature.len() as u32,
        });
        self.words.extend_from_slice(signature);
        SignatureState::New(number)
    }

    pub(crate) fn clear(&mut self) {
        self.places.fill(0);
        self.entries.clear();
        self.words.clear();
    }
}

#[inline]
fn hash(signature: &[i64]) -> u64 {
    signature
        .iter()
        .fold(signature.len() as u64, |hash: u64, word: &i64| {
            (hash.rotate_left(5) ^ *word as u64).wrapping_mul(0x9E37_79B9_7F4A_7C15)
        })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_signatures_have_equal_numbers() {
        let mut dictionary = Dictionary::default();
        assert_eq!(dictionary.number(&[1, 2, 3]), SignatureState::New(0));
        assert_eq!(dictionary.number(&[1, 2]), SignatureState::New(1));
        assert_eq!(dictionary.number(&[1, 2, 3]), SignatureState::Known(0));
        dictionary.clear();
        assert_eq!(dictionary.number(&[1, 2]), SignatureState::New(0));
    }

    #[test]
    fn a_full_dictionary_reports_this_and_can_restart() {
        let mut dictionary = Dictionary::default();
        let first = (0..MOST as i64)
            .all(|word| dictionary.number(&[word]) == SignatureState::New(word as u32));
        assert!(first);
        assert_eq!(dictionary.number(&[-1]), SignatureState::Full);
        assert_eq!(dictionary.number(&[7]), SignatureState::Known(7));
        dictionary.clear();
        assert_eq!(dictionary.number(&[-1]), SignatureState::New(0));
    }
}
