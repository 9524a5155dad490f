use std::env;
use std::fs::OpenOptions;
use std::io::{Read, Write};
use std::net::TcpListener;
use std::sync::mpsc::sync_channel;
use std::thread;

fn main() {
    let words: Vec<String> = env::args().collect();
    let mut file = OpenOptions::new().append(true).create(true).open(&words[2]).unwrap();
    let (sender, receiver) = sync_channel::<String>(256);
    thread::Builder::new()
        .name("writer".into())
        .spawn(move || {
            for line in receiver {
                file.write_all(line.as_bytes()).unwrap();
            }
        })
        .unwrap();
    let listener = TcpListener::bind(format!("127.0.0.1:{}", words[1])).unwrap();
    for mut client in listener.incoming().flatten() {
        let sender = sender.clone();
        thread::spawn(move || {
            let mut request = [0u8; 2048];
            while let Ok(count) = client.read(&mut request) {
                if count == 0 {
                    return;
                }
                sender.send(format!("request of {count} bytes\n")).unwrap();
                if client.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok").is_err() {
                    return;
                }
            }
        });
    }
}
