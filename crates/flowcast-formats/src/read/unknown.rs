//! Descriptions of files that are not traces, for errors.

/// First bytes of files that are often named by mistake.
const KINDS: [(&[u8], &str); 15] = [
    (
        b"\xff\xaa\xddDUMPI",
        "a binary DUMPI trace (run dumpi2ascii on the file of each rank)",
    ),
    (b"\x7fELF", "an ELF executable, library or object file"),
    (b"PK\x03\x04", "a zip archive"),
    (b"BZh", "a file compressed with bzip2"),
    (b"\xfd7zXZ\0", "a file compressed with xz"),
    (b"\x1f\x8b", "a file compressed twice with gzip"),
    (b"\x89PNG", "a picture (PNG)"),
    (b"%PDF", "a PDF document"),
    (b"\x89HDF", "an HDF5 file"),
    (b"SQLite format 3", "an SQLite database"),
    (b"PAR1", "a Parquet file"),
    (b"#!", "a script"),
    (b"<!DOCTYPE html", "an HTML page"),
    (b"<?xml", "an XML document"),
    (b"{", "a JSON document"),
];

/// Returns `true` if the bytes are a tar archive.
pub(super) fn is_tar(bytes: &[u8]) -> bool {
    bytes.get(257..262).is_some_and(|magic| magic == b"ustar")
}

/// Returns a description of the file, or its first bytes.
pub(super) fn described(bytes: &[u8]) -> String {
    if bytes.is_empty() {
        return "an empty file".to_owned();
    }
    if is_tar(bytes) {
        return "a tar archive".to_owned();
    }
    if let Some((_, kind)) = KINDS
        .iter()
        .find(|(beginning, _)| bytes.starts_with(beginning))
    {
        return (*kind).to_owned();
    }
    let line = bytes.split(|byte| *byte == b'\n').next().unwrap_or(bytes);
    let line = line.strip_suffix(b"\r").unwrap_or(line);
    match std::str::from_utf8(line)
        .ok()
        .filter(|text| !text.contains(|c: char| c.is_control() && c != '\t'))
    {
        Some(text) => format!(
            "`{}`",
            text.chars().take(40).collect::<String>().escape_default()
        ),
        None => {
            let shown: Vec<String> = bytes
                .iter()
                .take(8)
                .map(|byte| format!("{byte:02x}"))
                .collect();
            format!("bytes that are not text ({} ...)", shown.join(" "))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unknown_files_are_described_by_their_kind() {
        assert_eq!(described(b""), "an empty file");
        assert_eq!(
            described(b"\x7fELF\x02\x01"),
            "an ELF executable, library or object file"
        );
        assert_eq!(
            described(b"\xff\xaa\xddDUMPI\0\0"),
            "a binary DUMPI trace (run dumpi2ascii on the file of each rank)"
        );
        assert_eq!(described(b"GIF89a\r\n"), "`GIF89a`");
        assert_eq!(
            described(b"\xff\xfe\x00\x01\x02\x03\x04\x05\x06"),
            "bytes that are not text (ff fe 00 01 02 03 04 05 ...)"
        );
        let mut tar = vec![0; 512];
        tar[257..262].copy_from_slice(b"ustar");
        assert_eq!(described(&tar), "a tar archive");
    }
}
