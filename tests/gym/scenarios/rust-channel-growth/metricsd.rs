use std::sync::mpsc;
use std::thread;
use std::time::Duration;

#[inline(never)]
fn make_sample(number: u64) -> Vec<u8> {
    vec![number as u8; 900]
}

#[inline(never)]
fn record_sample(queue: &mpsc::Sender<Vec<u8>>, number: u64) {
    queue.send(make_sample(number)).unwrap();
}

#[inline(never)]
fn store_batch(queue: &mpsc::Receiver<Vec<u8>>) -> usize {
    let sample = queue.recv().unwrap();
    thread::sleep(Duration::from_millis(2));
    sample.len()
}

fn main() {
    let (sender, receiver) = mpsc::channel();
    thread::spawn(move || loop {
        std::hint::black_box(store_batch(&receiver));
    });
    for number in 0.. {
        record_sample(&sender, number);
        if number % 10 == 0 {
            thread::sleep(Duration::from_millis(2));
        }
    }
}
