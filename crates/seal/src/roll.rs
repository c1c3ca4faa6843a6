//! Which of a growing list of things are there.
//!
//! Each thing gets a number, once; when it goes, its number goes and never comes back. So a thing that was removed and is put
//! back by somebody else is told from one that is there, and one that is missing is missed, without a list of all that ever
//! was. Numbers that live are kept as ranges: a roll of a hundred thousand of which few went is a few bytes.
//!
//! A roll is only worth what its seal is: whoever keeps one seals it, and keeps its [`version`](Roll::version) elsewhere if
//! an older one must not be taken for it.

/// Numbers that live.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Roll {
    version: u64,
    next: u64,
    /// `[start, end)`, in order, with gaps between them.
    living: Vec<(u64, u64)>,
}

impl Roll {
    /// A roll of nothing that goes on where another stood: no number below `next` is given again.
    #[must_use]
    pub fn after(version: u64, next: u64) -> Self {
        Self { version, next, living: Vec::new() }
    }

    /// How often it was changed.
    #[must_use]
    pub fn version(&self) -> u64 {
        self.version
    }

    /// The number that is given next.
    #[must_use]
    pub fn next(&self) -> u64 {
        self.next
    }

    /// How many numbers live.
    #[must_use]
    pub fn len(&self) -> u64 {
        self.living.iter().map(|(start, end)| end - start).sum()
    }

    /// Whether none lives.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.living.is_empty()
    }

    /// Whether this number lives.
    #[must_use]
    pub fn has(&self, number: u64) -> bool {
        let at = self.living.partition_point(|(_, end)| *end <= number);
        self.living.get(at).is_some_and(|(start, _)| *start <= number)
    }

    /// Every number that lives, in order.
    pub fn numbers(&self) -> impl Iterator<Item = u64> + '_ {
        self.living.iter().flat_map(|(start, end)| *start..*end)
    }

    /// Gives the next number.
    pub fn add(&mut self) -> u64 {
        let number = self.next;
        self.put(number);
        number
    }

    /// Takes in a number that somebody else gives, such as a database; false if it was given before.
    pub fn put(&mut self, number: u64) -> bool {
        if number < self.next || number == u64::MAX {
            return false;
        }
        match self.living.last_mut() {
            Some((_, end)) if *end == number => *end += 1,
            _ => self.living.push((number, number + 1)),
        }
        self.next = number + 1;
        self.version += 1;
        true
    }

    /// Takes a number out; false if it does not live.
    pub fn remove(&mut self, number: u64) -> bool {
        if !self.has(number) {
            return false;
        }
        let at = self.living.partition_point(|(_, end)| *end <= number);
        let (start, end) = self.living[at];
        let rest = [(start, number), (number + 1, end)];
        self.living.splice(at..=at, rest.into_iter().filter(|(start, end)| start < end));
        self.version += 1;
        true
    }

    /// Its byte form.
    #[must_use]
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut bytes = Vec::new();
        write(&mut bytes, self.version);
        write(&mut bytes, self.next);
        let mut before = 0;
        for (start, end) in &self.living {
            write(&mut bytes, start - before);
            write(&mut bytes, end - start);
            before = *end;
        }
        bytes
    }

    /// Reads the byte form; nothing if it is not one.
    #[must_use]
    pub fn from_bytes(mut bytes: &[u8]) -> Option<Self> {
        let bytes = &mut bytes;
        let mut roll = Self::after(read(bytes)?, read(bytes)?);
        let mut before = 0_u64;
        while !bytes.is_empty() {
            let start = before.checked_add(read(bytes)?)?;
            let end = start.checked_add(read(bytes)?)?;
            let apart = start < end && end <= roll.next && (roll.living.is_empty() || start > before);
            if !apart {
                return None;
            }
            roll.living.push((start, end));
            before = end;
        }
        Some(roll)
    }
}

/// Seven bits at a time, the lowest first.
fn write(bytes: &mut Vec<u8>, mut number: u64) {
    while number >= 0x80 {
        bytes.push((number & 0x7f) as u8 | 0x80);
        number >>= 7;
    }
    bytes.push(number as u8);
}

fn read(bytes: &mut &[u8]) -> Option<u64> {
    let mut number = 0_u64;
    for shift in (0..64).step_by(7) {
        let (byte, rest) = bytes.split_first()?;
        *bytes = rest;
        let part = u64::from(byte & 0x7f);
        if (part << shift) >> shift != part {
            return None;
        }
        number |= part << shift;
        if byte & 0x80 == 0 {
            return Some(number);
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn a_roll_is_the_set_that_it_stands_for(
            steps in prop::collection::vec((any::<bool>(), 0_u64..40, 0_u64..3), 0..120),
        ) {
            let (mut roll, mut set, mut next) = (Roll::default(), BTreeSet::new(), 0);
            for (adds, number, gap) in steps {
                if adds {
                    prop_assert!(roll.put(next + gap));
                    prop_assert!(next == 0 || !roll.put(next - 1));
                    set.insert(next + gap);
                    next += gap + 1;
                } else {
                    prop_assert_eq!(roll.remove(number), set.remove(&number));
                }
                prop_assert_eq!(roll.numbers().collect::<Vec<_>>(), set.iter().copied().collect::<Vec<_>>());
                prop_assert_eq!((roll.len(), roll.is_empty()), (set.len() as u64, set.is_empty()));
                prop_assert!((0..next + 2).all(|number| roll.has(number) == set.contains(&number)));
                prop_assert_eq!(Roll::from_bytes(&roll.to_bytes()), Some(roll.clone()));
            }
        }

        #[test]
        fn other_bytes_are_no_roll_or_the_same_one_again(bytes in prop::collection::vec(any::<u8>(), 0..40)) {
            if let Some(roll) = Roll::from_bytes(&bytes) {
                prop_assert_eq!(Roll::from_bytes(&roll.to_bytes()), Some(roll));
            }
        }
    }
}
