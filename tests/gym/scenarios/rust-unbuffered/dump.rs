use std::fs::File;
use std::io::{Seek, Write};

#[inline(never)]
fn write_field(file: &mut File, number: u32) {
    write!(file, "{},", number).unwrap();
}

fn main() {
    let mut file = File::create(std::env::args().nth(1).unwrap()).unwrap();
    for number in 0.. {
        write_field(&mut file, number % 100);
        if number % 1000000 == 0 {
            file.rewind().unwrap();
        }
    }
}
