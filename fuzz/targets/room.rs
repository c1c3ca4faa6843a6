//! Whatever a room says, under whatever name: a model reads one line for each, nothing that a person does not see, no
//! fence, nobody who is called as the agent is, and no more than fits.

#![no_main]

use confidant_engine::Fence;
use confidant_engine::clock::Millis;
use confidant_engine::model::Voice;
use confidant_engine::room::{RoomContext, RoomLimits};
use confidant_engine::{fuzzing::is_hidden, fuzzing::read_again, fuzzing::room_block};
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
            let read = read_again(text);
            for mark in ["<<<", ">>>", "<|im_start|>", "[INST]", "<s>", "<start_of_turn>"] {
                assert!(!read.contains(mark), "{text:?}");
            }
            assert!(!text.chars().any(|c| c.is_control() || is_hidden(c)), "{text:?}");
        }
        assert!(!line.speaker.contains(": "), "{:?}", line.speaker);
        let is_agent = matches!(line.voice, Voice::Agent);
        let read = read_again(&line.speaker).to_lowercase();
        let is_role = ["assistant", "system", "user", "tool", "developer"].contains(&read.trim());
        assert!(!read.is_empty() && (is_agent || !is_role), "{:?}", line.speaker);
    }
    assert!(block.render(&Fence::new([0; 8])).lines().count() <= block.lines.len() + 3);
});
