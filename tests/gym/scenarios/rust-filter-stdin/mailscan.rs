use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::process::{ChildStdin, Command, Stdio};
use std::sync::{Arc, Mutex};
use std::thread;

struct Filter {
    input: Mutex<ChildStdin>,
}

impl Filter {
    fn start(script: &str) -> Filter {
        let child = Command::new("/bin/sh")
            .arg(script)
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .spawn()
            .unwrap();
        Filter { input: Mutex::new(child.stdin.unwrap()) }
    }

    #[inline(never)]
    fn submit_mail(&self, mail: &[u8]) {
        let mut input = self.input.lock().unwrap();
        let _ = input.write_all(mail);
    }
}

fn serve(mut client: TcpStream, filter: &Filter) {
    let mut text = [0u8; 2048];
    let mail = [b'x'; 3000];
    while let Ok(size) = client.read(&mut text) {
        if size == 0 {
            return;
        }
        filter.submit_mail(&mail);
        let _ = client.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok");
    }
}

fn main() {
    let arguments: Vec<String> = std::env::args().collect();
    let filter = Arc::new(Filter::start(&arguments[2]));
    let listener = TcpListener::bind(("127.0.0.1", arguments[1].parse::<u16>().unwrap())).unwrap();
    for client in listener.incoming().flatten() {
        let filter = Arc::clone(&filter);
        thread::spawn(move || serve(client, &filter));
    }
}
