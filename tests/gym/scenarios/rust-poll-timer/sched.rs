use std::collections::VecDeque;
use std::thread;
use std::time::Duration;

#[inline(never)]
fn next_job(jobs: &mut VecDeque<u64>) -> Option<u64> {
    thread::sleep(Duration::from_micros(500));
    jobs.pop_front()
}

fn main() {
    let mut jobs = VecDeque::new();
    loop {
        std::hint::black_box(next_job(&mut jobs));
    }
}
