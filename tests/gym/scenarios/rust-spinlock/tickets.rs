use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

static HELD: AtomicBool = AtomicBool::new(false);

#[inline(never)]
fn take_ticket() {
    while HELD.swap(true, Ordering::Acquire) {
        std::hint::spin_loop();
    }
}

#[inline(never)]
fn sell() {
    take_ticket();
    thread::sleep(Duration::from_millis(15));
    HELD.store(false, Ordering::Release);
    thread::sleep(Duration::from_micros(200));
}

fn main() {
    let threads: Vec<_> = (0..3).map(|_| thread::spawn(|| loop { sell() })).collect();
    for one in threads {
        one.join().unwrap();
    }
}
