use std::sync::{Arc, RwLock};
use std::thread;
use std::time::Duration;

#[inline(never)]
fn reload_limits(limits: &RwLock<Vec<u32>>) {
    let mut guard = limits.write().unwrap();
    thread::sleep(Duration::from_millis(120));
    guard[0] += 1;
}

#[inline(never)]
fn check_limit(limits: &RwLock<Vec<u32>>) -> u32 {
    limits.read().unwrap()[0]
}

fn main() {
    let limits = Arc::new(RwLock::new(vec![0u32; 16]));
    for _ in 0..6 {
        let limits = limits.clone();
        thread::spawn(move || loop {
            if check_limit(&limits) == u32::MAX {
                println!("full");
            }
            thread::sleep(Duration::from_millis(2));
        });
    }
    loop {
        reload_limits(&limits);
        thread::sleep(Duration::from_millis(20));
    }
}
