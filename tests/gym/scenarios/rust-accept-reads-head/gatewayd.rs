use std::io::{BufRead, BufReader, Write};
use std::net::{TcpListener, TcpStream};
use std::thread;

#[inline(never)]
fn read_first_line(stream: &TcpStream) -> String {
    let mut line = String::new();
    let mut reader = BufReader::new(stream);
    let _ = reader.read_line(&mut line);
    line
}

#[inline(never)]
fn answer(mut stream: TcpStream, line: String) {
    let body = format!("{}\n", line.len());
    let _ = write!(stream, "HTTP/1.1 200 OK\r\nContent-Length: {}\r\nConnection: close\r\n\r\n{}", body.len(), body);
}

fn main() {
    let port = std::env::args().nth(1).unwrap();
    let listener = TcpListener::bind(format!("127.0.0.1:{port}")).unwrap();
    for stream in listener.incoming() {
        let stream = stream.unwrap();
        let line = read_first_line(&stream);
        thread::spawn(move || answer(stream, line));
    }
}
