use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::mpsc::{channel, Sender};
use std::thread;
use std::time::Duration;

struct Query {
    length: usize,
    reply: Sender<usize>,
}

#[inline(never)]
fn consult_map(length: usize) -> usize {
    thread::sleep(Duration::from_millis(40));
    length * 31
}

#[inline(never)]
fn ask_router(router: &Sender<Query>, length: usize) -> usize {
    let (reply, answer) = channel();
    router.send(Query { length, reply }).unwrap();
    answer.recv().unwrap()
}

#[inline(never)]
fn handle_trip(router: &Sender<Query>, mut client: TcpStream) {
    let mut text = [0u8; 4096];
    let count = client.read(&mut text).unwrap_or(0);
    let route = ask_router(router, count);
    let _ = write!(client, "HTTP/1.1 200 OK\r\nConnection: close\r\n\r\n{route}\n");
}

fn main() {
    let port = std::env::args().nth(1).unwrap();
    let listener = TcpListener::bind(format!("127.0.0.1:{port}")).unwrap();
    let (router, queries) = channel::<Query>();
    thread::spawn(move || {
        for query in queries {
            let _ = query.reply.send(consult_map(query.length));
        }
    });
    for client in listener.incoming().flatten() {
        let router = router.clone();
        thread::spawn(move || handle_trip(&router, client));
    }
}
