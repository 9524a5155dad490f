use std::process::{Command, Stdio};

#[inline(never)]
fn make_label(item: u64) -> bool {
    Command::new("/bin/echo").arg(item.to_string()).stdout(Stdio::null()).status().is_ok()
}

fn main() {
    let mut item = 0;
    while make_label(item) {
        item += 1;
    }
}
