use std::fs::OpenOptions;
use std::io::Write;
use std::thread::sleep;
use std::time::Duration;

#[inline(never)]
fn keep_parcel(path: &str, parcel: &[u8]) -> std::io::Result<()> {
    let mut file = OpenOptions::new().create(true).append(true).open(path)?;
    file.write_all(parcel)
}

fn main() {
    let path = std::env::args().nth(1).unwrap();
    let parcel = vec![7u8; 9000];
    loop {
        while keep_parcel(&path, &parcel).is_err() {
            sleep(Duration::from_millis(1));
        }
    }
}
