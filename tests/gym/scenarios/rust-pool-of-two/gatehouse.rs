use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::{mpsc, Arc, Mutex};
use std::time::Duration;

#[inline(never)]
fn wait_for_turn() {
    std::thread::sleep(Duration::from_millis(150));
}

#[inline(never)]
fn answer(mut client: TcpStream) {
    let mut text = [0u8; 1024];
    let _ = client.read(&mut text);
    wait_for_turn();
    let _ = client.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nConnection: close\r\n\r\nok");
}

fn main() {
    let port: u16 = std::env::args().nth(1).unwrap().parse().unwrap();
    let listener = TcpListener::bind(("127.0.0.1", port)).unwrap();
    let (sender, receiver) = mpsc::channel::<TcpStream>();
    let receiver = Arc::new(Mutex::new(receiver));
    for _ in 0..2 {
        let receiver = receiver.clone();
        std::thread::spawn(move || loop {
            let client = receiver.lock().unwrap().recv().unwrap();
            answer(client);
        });
    }
    for client in listener.incoming() {
        sender.send(client.unwrap()).unwrap();
    }
}
