//! Whatever a checkpoint of the first system holds: what is taken over was in it, and each question has an answer.

#![no_main]

use confidant_engine::fuzzing::checkpoint;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|json: &[u8]| {
    for (question, replies) in checkpoint(json).unwrap_or_default() {
        assert!(!replies.is_empty());
        // Escapes only ever get shorter; lines are put together with one character each.
        let taken = question.len() + replies.iter().map(String::len).sum::<usize>();
        assert!(taken <= 2 * json.len());
    }
    // The same as Python prints it, whatever else is around.
    let printed = String::from_utf8_lossy(json);
    for list in [
        serde_json::json!([printed]),
        serde_json::json!(["content='q'", printed, "content='a' tool_calls=[]"]),
    ] {
        let whole = serde_json::json!({ "channel_values": { "messages": list } });
        let _ = checkpoint(whole.to_string().as_bytes());
    }
});
