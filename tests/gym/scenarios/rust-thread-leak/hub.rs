use std::sync::mpsc::{channel, Sender};
use std::thread;
use std::time::Duration;

fn open_feed(kept: &mut Vec<Sender<u32>>) {
    let (sender, receiver) = channel::<u32>();
    kept.push(sender);
    thread::spawn(move || for _ in receiver {});
}

fn main() {
    let mut kept = Vec::new();
    loop {
        open_feed(&mut kept);
        thread::sleep(Duration::from_millis(40));
    }
}
