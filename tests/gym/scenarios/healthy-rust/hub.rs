use std::io::{Read, Write};
use std::net::TcpListener;
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

fn main() {
    let (sender, receiver) = mpsc::channel::<u64>();
    thread::spawn(move || loop {
        let mut sum = 0;
        while let Ok(one) = receiver.recv_timeout(Duration::from_millis(100)) {
            sum += one;
        }
        std::hint::black_box(sum);
    });
    let listener = TcpListener::bind(format!("127.0.0.1:{}", std::env::args().nth(1).unwrap())).unwrap();
    for stream in listener.incoming() {
        let (mut stream, sender) = (stream.unwrap(), sender.clone());
        thread::spawn(move || {
            let mut buffer = [0; 4096];
            while let Ok(size) = stream.read(&mut buffer) {
                if size == 0 {
                    break;
                }
                sender.send(size as u64).unwrap();
                stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok").unwrap();
            }
        });
    }
}
