//! Codes of an authenticator: RFC 6238 with SHA-1, six digits, 30 seconds, one step early or late.
//!
//! Owns the arithmetic. That a step counts once is the store's part ([`crate::store::Codes::spend`]).

use confidant_chat_protocol::Totp;
use ring::hmac;

use crate::store::Millis;

/// The step that a code is of, if it is one of now, of the step before or of the one after.
pub(crate) fn step_of(secret: &[u8], code: &Totp, now: Millis) -> Option<u64> {
    let step = now.0 / 1000 / STEP;
    // All three are computed, so that the time does not tell which one it is.
    let mut found = None;
    for step in [step.saturating_sub(1), step, step + 1] {
        let same =
            digits(secret, step).bytes().zip(code.digits().bytes()).fold(0, |all, (a, b)| all | (a ^ b));
        if same == 0 {
            found = Some(step);
        }
    }
    found
}

/// The six digits of a step.
pub(crate) fn digits(secret: &[u8], step: u64) -> String {
    let key = hmac::Key::new(hmac::HMAC_SHA1_FOR_LEGACY_USE_ONLY, secret);
    let mac = hmac::sign(&key, &step.to_be_bytes());
    let mac = mac.as_ref();
    let at = usize::from(mac.last().copied().unwrap_or(0) & 15);
    let four = mac.get(at..at + 4).unwrap_or(&[0; 4]);
    let number = four.iter().fold(0_u32, |number, byte| number << 8 | u32::from(*byte)) & 0x7fff_ffff;
    format!("{:06}", number % 1_000_000)
}

const STEP: u64 = 30;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_digits_are_those_of_rfc_6238() {
        // Appendix B, SHA-1; the last six of eight digits.
        for (seconds, expected) in [
            (59, "287082"),
            (1_111_111_109, "081804"),
            (1_111_111_111, "050471"),
            (1_234_567_890, "005924"),
            (2_000_000_000, "279037"),
            (20_000_000_000, "353130"),
        ] {
            assert_eq!(digits(b"12345678901234567890", seconds / STEP), expected);
        }
    }

    #[test]
    fn a_code_is_good_one_step_early_or_late() {
        let secret = b"12345678901234567890";
        let code = Totp::parse(&digits(secret, 100)).unwrap();
        let at = |step: u64| step_of(secret, &code, Millis(step * STEP * 1000 + 15_000));
        assert_eq!([98, 99, 100, 101, 102].map(at), [None, Some(100), Some(100), Some(100), None]);
    }
}
