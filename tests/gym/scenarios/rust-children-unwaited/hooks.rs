use std::process::{Command, Stdio};
use std::thread;
use std::time::Duration;

struct Hook {
    program: &'static str,
}

impl Hook {
    #[inline(never)]
    fn fire(&self, event: u64) {
        let child = Command::new(self.program)
            .arg(event.to_string())
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .spawn();
        if let Err(error) = child {
            eprintln!("hook: {error}");
        }
    }
}

fn main() {
    let hook = Hook { program: "/bin/true" };
    for event in 0u64.. {
        hook.fire(event);
        thread::sleep(Duration::from_millis(150));
    }
}
