//! Chance that can be replayed.

/// A small random number generator (xorshift64*), the same on every machine.
#[derive(Clone, Debug)]
pub struct Random {
    state: u64,
}

impl Random {
    /// A generator that always yields the same numbers for the same seed.
    #[must_use]
    pub fn new(seed: u64) -> Self {
        // Spreads small seeds over all bits; the state must not be 0.
        let state = seed.wrapping_add(0x9E37_79B9_7F4A_7C15).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        Self { state: (state ^ (state >> 31)).max(1) }
    }

    /// The next number.
    pub fn number(&mut self) -> u64 {
        self.state ^= self.state >> 12;
        self.state ^= self.state << 25;
        self.state ^= self.state >> 27;
        self.state.wrapping_mul(0x2545_F491_4F6C_DD1D)
    }

    /// A number below `limit`, which is not 0.
    pub fn below(&mut self, limit: u64) -> u64 {
        // The upper bits are the good ones.
        (self.number() >> 11) % limit
    }

    /// True once in `times`.
    pub fn once_in(&mut self, times: u64) -> bool {
        self.below(times) == 0
    }

    /// One of these, which are some.
    pub fn pick<'a, T>(&mut self, from: &'a [T]) -> &'a T {
        let index = self.below(from.len() as u64);
        &from[usize::try_from(index).unwrap_or(0)]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_seed_replays() {
        let (mut left, mut right, mut other) = (Random::new(7), Random::new(7), Random::new(8));
        let numbers: Vec<_> = (0..100).map(|_| left.number()).collect();
        assert_eq!(numbers, (0..100).map(|_| right.number()).collect::<Vec<_>>());
        assert_ne!(numbers, (0..100).map(|_| other.number()).collect::<Vec<_>>());
    }

    #[test]
    fn every_choice_happens() {
        let mut random = Random::new(1);
        let mut seen = [0_u32; 5];
        for _ in 0..1000 {
            seen[*random.pick(&[0_usize, 1, 2, 3, 4])] += 1;
        }
        assert!(seen.iter().all(|count| (150..250).contains(count)), "{seen:?}");
    }
}
