use std::fs::File;
use std::io::Read;

#[inline(never)]
fn load_rules(path: &str) -> usize {
    let mut text = [0u8; 64];
    File::open(path).and_then(|mut file| file.read(&mut text)).unwrap_or(0)
}

fn main() {
    loop {
        load_rules("/etc/hostname");
    }
}
