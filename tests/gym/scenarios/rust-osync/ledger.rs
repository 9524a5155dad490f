use std::fs::OpenOptions;
use std::io::Write;
use std::os::unix::fs::OpenOptionsExt;

#[inline(never)]
fn append_record(file: &mut std::fs::File, number: u64) {
    file.write_all(format!("{:0>500}\n", number).as_bytes()).unwrap();
}

fn main() {
    let path = std::env::args().nth(1).unwrap();
    let mut file = OpenOptions::new().create(true).append(true).custom_flags(0o10000).open(path).unwrap();
    let mut number = 0;
    loop {
        append_record(&mut file, number);
        number += 1;
    }
}
