//! Hashing for the request tables.

use std::hash::{BuildHasher, Hasher, RandomState};

use greenroom_protocol::RawId;

/// Spreads a `u64` key with one multiplication. Only for keys that no peer chooses: ids that
/// this process counts up, and hashes that [`Spelling`] already seeded.
#[derive(Clone, Copy, Default)]
pub(super) struct Spread(u64);

impl Hasher for Spread {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.write_u64(u64::from(*byte));
        }
    }

    fn write_u64(&mut self, key: u64) {
        self.0 = fold(self.0 ^ key, MULTIPLIER);
    }
}

/// Builds [`Spread`]; a map's hasher.
#[derive(Clone, Copy, Default)]
pub(super) struct SpreadKeys;

impl BuildHasher for SpreadKeys {
    type Hasher = Spread;

    fn build_hasher(&self) -> Spread {
        Spread::default()
    }
}

/// A hash map keyed by numbers of our own.
pub(super) type Map<V> = std::collections::HashMap<u64, V, SpreadKeys>;

/// Hashes ids as peers spell them. Seeded at random, so that no peer can aim for collisions.
#[derive(Clone, Copy)]
pub(super) struct Spelling {
    seed: u64,
}

impl Spelling {
    pub(super) fn new() -> Self {
        Self { seed: RandomState::new().build_hasher().finish() | 1 }
    }

    pub(super) fn hash(self, id: &RawId) -> u64 {
        match id {
            RawId::Int(number) => fold(number.cast_unsigned() ^ self.seed, MULTIPLIER),
            RawId::Text(text) => {
                // The first factor keeps `1` and `"1"` apart.
                let mut hash = fold(text.len() as u64 ^ self.seed, !MULTIPLIER);
                for chunk in text.as_bytes().chunks(8) {
                    let mut word = [0u8; 8];
                    word[..chunk.len()].copy_from_slice(chunk);
                    hash = fold(hash ^ u64::from_le_bytes(word), self.seed ^ MULTIPLIER);
                }
                hash
            }
        }
    }
}

/// 2^64 divided by the golden ratio, made odd.
const MULTIPLIER: u64 = 0x9E37_79B9_7F4A_7C15;

/// Multiplies to 128 bits and folds the halves, so that every input bit reaches every output bit.
fn fold(a: u64, b: u64) -> u64 {
    let product = u128::from(a) * u128::from(b);
    (product as u64) ^ ((product >> 64) as u64)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;

    #[test]
    fn neighbours_and_kinds_hash_apart() {
        let spelling = Spelling::new();
        let ids = (-500i64..500).flat_map(|number| {
            [
                RawId::Int(number),
                RawId::Text(format!("\"{number}\"").into()),
                RawId::Text(format!("\"request-{number}\"").into()),
            ]
        });
        let hashes: HashSet<u64> = ids.map(|id| spelling.hash(&id)).collect();
        assert_eq!(hashes.len(), 3000);
        assert_eq!(spelling.hash(&RawId::Int(7)), spelling.hash(&RawId::Int(7)));
    }
}
