use std::fs::{File, OpenOptions};
use std::io::Write;
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

#[inline(never)]
fn append_entry(journal: &Mutex<File>, n: u64) {
    let mut file = journal.lock().unwrap();
    writeln!(file, "entry {}", n).unwrap();
    thread::sleep(Duration::from_millis(4));
}

fn main() {
    let path = std::env::args().nth(1).unwrap();
    let file = OpenOptions::new().create(true).append(true).open(path).unwrap();
    let journal = Arc::new(Mutex::new(file));
    let mut workers = Vec::new();
    for n in 0..6u64 {
        let journal = journal.clone();
        workers.push(thread::spawn(move || loop {
            append_entry(&journal, n);
            thread::sleep(Duration::from_micros(200));
        }));
    }
    for worker in workers {
        worker.join().unwrap();
    }
}
