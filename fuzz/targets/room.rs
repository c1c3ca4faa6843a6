//! Whatever a room says, under whatever name: a model reads one line for each, nothing that a person does not see, no
//! fence, nobody who is called as the agent is, and no more than fits.

#![no_main]

use confidant_engine::fuzzing::{is_hidden, room_block};
use confidant_engine::{Millis, RoomContext, RoomLimits, Voice};
use libfuzzer_sys::fuzz_target;

const LIMITS: RoomLimits = RoomLimits { lines: 20, max_age_seconds: Some(3600) };
const NOW: Millis = Millis(1_700_000_100_000);

fuzz_target!(|input: &[u8]| {
    let Some((&budget, json)) = input.split_first() else { return };
    let Ok(room) = serde_json::from_slice::<RoomContext>(json) else { return };
    let (said, budget) = (room.len(), u32::from(budget) * 8);
    let Some((block, tokens)) = room_block(room, "@dave:a.org", "what now?", NOW, LIMITS, budget) else {
        return;
    };
    assert!(tokens <= budget && !block.lines.is_empty() && block.lines.len() <= said.min(LIMITS.lines));
    for line in &block.lines {
        for text in [&line.speaker, &line.text] {
            assert!(!text.contains("<<<") && !text.contains(">>>"), "{text:?}");
            assert!(!text.chars().any(|c| c.is_control() || is_hidden(c)), "{text:?}");
        }
        assert!(!line.speaker.contains(": "), "{:?}", line.speaker);
        let is_agent = matches!(line.voice, Voice::Agent);
        assert!(is_agent || !line.speaker.eq_ignore_ascii_case("assistant"), "{:?}", line.speaker);
    }
    assert!(block.render().lines().count() <= block.lines.len() + 3);
});
