use std::collections::HashMap;
use std::fs::{File, OpenOptions};
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::os::fd::AsRawFd;

#[repr(C, packed)]
#[derive(Clone, Copy)]
struct Event {
    events: u32,
    data: u64,
}

extern "C" {
    fn epoll_create1(flags: i32) -> i32;
    fn epoll_ctl(epoll: i32, operation: i32, fd: i32, event: *mut Event) -> i32;
    fn epoll_wait(epoll: i32, events: *mut Event, most: i32, timeout: i32) -> i32;
}

#[inline(never)]
fn record_act(acts: &mut File, text: &[u8]) -> std::io::Result<()> {
    acts.write_all(&text[..text.len().min(64)])?;
    Ok(())
}

#[inline(never)]
fn answer_client(acts: &mut File, client: &mut TcpStream) -> bool {
    let mut text = [0u8; 4096];
    match client.read(&mut text) {
        Ok(count) if count > 0 => {
            let _ = record_act(acts, &text[..count]);
            client.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nok\n").is_ok()
        }
        _ => false,
    }
}

fn main() {
    let mut words = std::env::args().skip(1);
    let listener = TcpListener::bind(format!("127.0.0.1:{}", words.next().unwrap())).unwrap();
    let mut acts = OpenOptions::new().create(true).append(true).open(words.next().unwrap()).unwrap();
    let epoll = unsafe { epoll_create1(0) };
    let mut clients: HashMap<u64, TcpStream> = HashMap::new();
    let add = |fd: i32| {
        let mut event = Event { events: 1, data: fd as u64 };
        unsafe { epoll_ctl(epoll, 1, fd, &mut event) };
    };
    add(listener.as_raw_fd());
    let mut events = [Event { events: 0, data: 0 }; 64];
    loop {
        let count = unsafe { epoll_wait(epoll, events.as_mut_ptr(), 64, -1) };
        for event in &events[..count.max(0) as usize] {
            let fd = event.data;
            if fd == listener.as_raw_fd() as u64 {
                if let Ok((client, _)) = listener.accept() {
                    add(client.as_raw_fd());
                    clients.insert(client.as_raw_fd() as u64, client);
                }
            } else if let Some(client) = clients.get_mut(&fd) {
                if !answer_client(&mut acts, client) {
                    clients.remove(&fd);
                }
            }
        }
    }
}
