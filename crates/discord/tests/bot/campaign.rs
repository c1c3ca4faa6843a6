//! A thousand events, told twice and out of order, with the connection cut and the process killed in between.

use std::collections::HashMap;

use crate::fake::{GENERAL, ME};
use crate::rig::Rig;

#[tokio::test(flavor = "multi_thread")]
async fn a_thousand_events_are_answered_once_each() {
    let rig = Rig::new().await;
    let fake = &rig.fake;
    let mut bot = rig.start().await;
    let mut asked = Vec::new();
    for n in 0..1000_u64 {
        let user = 200 + n % 40;
        let channel = if n % 5 == 0 { GENERAL } else { fake.direct(user) };
        let text = if channel == GENERAL { format!("<@{ME}> q{n}") } else { format!("q{n}") };
        asked.push((fake.post(user, channel, &text), channel, format!("noted: q{n}")));
    }
    // Each is told, a third of them twice, in an order of its own.
    let mut order: Vec<usize> = (0..1000).chain((0..1000).step_by(3)).collect();
    order.sort_by_key(|n| (n * 7_919 + n / 7) % 1_009);
    for (at, n) in order.iter().enumerate() {
        fake.tell(asked[*n].0);
        match at {
            300 | 900 => fake.cut(),
            600 => {
                // In the middle of answering.
                fake.until("some answers", |fake| fake.answers(GENERAL).len() >= 20).await;
                bot.kill().await;
                bot = rig.start().await;
            }
            _ => {}
        }
    }
    fake.until("a thousand answers", |fake| {
        let channels: std::collections::BTreeSet<u64> =
            asked.iter().map(|(_, channel, _)| *channel).collect();
        channels.iter().map(|channel| fake.answers(*channel).len()).sum::<usize>() >= 1000
    })
    .await;
    bot.idle().await;
    let mut answers: HashMap<(u64, String), usize> = HashMap::new();
    for channel in asked.iter().map(|(_, channel, _)| *channel).collect::<std::collections::BTreeSet<u64>>() {
        for post in fake.answers(channel) {
            *answers.entry((channel, post.text)).or_default() += 1;
        }
    }
    assert_eq!(answers.len(), 1000);
    for (_, channel, answer) in asked {
        assert_eq!(answers.get(&(channel, answer.clone())), Some(&1), "{answer}");
    }
    bot.stop().await;
}
