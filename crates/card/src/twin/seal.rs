//! Checks that an image file is intact. `scripts/images` appends a mark, and the length and CRC-32 (ISO 3309, as in
//! zlib) of everything before the mark.

use std::path::Path;

const MARK: &[u8; 8] = b"HUEIMAGE";
/// Mark, length (8 bytes, little endian), checksum (4).
const SEAL_BYTES: usize = 20;
const POLYNOMIAL: u32 = 0xedb8_8320;

/// Reads the file and checks it against its seal.
pub fn check(path: &Path) -> Result<(), String> {
    let bytes = std::fs::read(path).map_err(|error| error.to_string())?;
    if whole(&bytes) { Ok(()) } else { Err("not an image, or damaged: its seal is wrong".to_owned()) }
}

fn whole(bytes: &[u8]) -> bool {
    let Some((content, seal)) = bytes.split_last_chunk::<SEAL_BYTES>() else { return false };
    let length = (content.len() as u64).to_le_bytes();
    let sum = crc32(content).to_le_bytes();
    seal.iter().eq(MARK.iter().chain(&length).chain(&sum))
}

fn crc32(bytes: &[u8]) -> u32 {
    const TABLE: [u32; 256] = table();
    let step = |sum: u32, byte: &u8| TABLE[usize::from(sum as u8 ^ byte)] ^ (sum >> 8);
    !bytes.iter().fold(u32::MAX, step)
}

const fn table() -> [u32; 256] {
    let mut table = [0; 256];
    let mut index = 0;
    while index < table.len() {
        let mut word = index as u32;
        let mut bit = 0;
        while bit < 8 {
            word = if word & 1 != 0 { (word >> 1) ^ POLYNOMIAL } else { word >> 1 };
            bit += 1;
        }
        table[index] = word;
        index += 1;
    }
    table
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_seal_holds_for_what_it_was_made_for() {
        assert_eq!(crc32(b"123456789"), 0xcbf4_3926);
        let mut sealed = b"123456789HUEIMAGE".to_vec();
        sealed.extend([9, 0, 0, 0, 0, 0, 0, 0]);
        sealed.extend(0xcbf4_3926u32.to_le_bytes());
        assert!(whole(&sealed));
        for at in 0..sealed.len() {
            let mut damaged = sealed.clone();
            damaged[at] ^= 1;
            assert!(!whole(&damaged), "byte {at}");
            assert!(!whole(&sealed[..at]), "cut at {at}");
        }
    }
}
