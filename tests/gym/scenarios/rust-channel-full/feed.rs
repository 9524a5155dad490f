use std::sync::mpsc::{sync_channel, SyncSender};
use std::thread;
use std::time::Duration;

#[inline(never)]
fn publish_quote(sink: &SyncSender<u64>, n: u64) {
    sink.send(n).unwrap();
}

#[inline(never)]
fn store_quote(_n: u64) {
    thread::sleep(Duration::from_millis(10));
}

fn main() {
    let (sink, source) = sync_channel(8);
    for n in 0..3u64 {
        let sink = sink.clone();
        thread::spawn(move || loop {
            publish_quote(&sink, n);
        });
    }
    for n in source {
        store_quote(n);
    }
}
