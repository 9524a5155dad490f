use std::fs::File;
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::os::fd::IntoRawFd;
use std::thread;

#[inline(never)]
fn store_upload(folder: &str, number: u64, data: &[u8]) -> std::io::Result<i32> {
    let mut file = File::create(format!("{folder}/upload-{}", number % 50))?;
    file.write_all(data)?;
    Ok(file.into_raw_fd())
}

fn serve(mut client: TcpStream, folder: &str) {
    let mut text = [0u8; 2048];
    let mut number = 0;
    while let Ok(size) = client.read(&mut text) {
        if size == 0 {
            return;
        }
        number += 1;
        let answer: &[u8] = match store_upload(folder, number, &text[..size]) {
            Ok(_) => b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok",
            Err(_) => b"HTTP/1.1 503 Full\r\nContent-Length: 2\r\n\r\nno",
        };
        let _ = client.write_all(answer);
    }
}

fn main() {
    let arguments: Vec<String> = std::env::args().collect();
    let listener = TcpListener::bind(("127.0.0.1", arguments[1].parse::<u16>().unwrap())).unwrap();
    for client in listener.incoming().flatten() {
        let folder = arguments[2].clone();
        thread::spawn(move || serve(client, &folder));
    }
}
