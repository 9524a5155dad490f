use std::env;
use std::fs::OpenOptions;
use std::io::Write;
use std::thread;
use std::time::Duration;

#[inline(never)]
fn store_reading(path: &str, reading: &[u8]) {
    let mut file = OpenOptions::new().create(true).append(true).open(path).unwrap();
    while file.write_all(reading).is_err() {
        thread::sleep(Duration::from_millis(2));
    }
}

fn main() {
    let path = format!("{}/readings.bin", env::args().nth(1).unwrap());
    let reading = vec![7u8; 65536];
    loop {
        store_reading(&path, &reading);
    }
}
