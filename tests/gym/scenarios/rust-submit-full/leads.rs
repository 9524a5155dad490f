use std::collections::VecDeque;
use std::env;
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Condvar, Mutex};
use std::thread;

struct Backlog {
    leads: Mutex<VecDeque<u64>>,
    changed: Condvar,
    most: usize,
}

impl Backlog {
    #[inline(never)]
    fn submit(&self, lead: u64) {
        let mut leads = self.leads.lock().unwrap();
        while leads.len() >= self.most {
            leads = self.changed.wait(leads).unwrap();
        }
        leads.push_back(lead);
        self.changed.notify_all();
    }

    #[inline(never)]
    fn next(&self) -> u64 {
        let mut leads = self.leads.lock().unwrap();
        loop {
            if let Some(lead) = leads.pop_front() {
                self.changed.notify_all();
                return lead;
            }
            leads = self.changed.wait(leads).unwrap();
        }
    }
}

#[inline(never)]
fn export_lead(crm: &mut TcpStream, lead: u64) -> usize {
    let mut answer = [0u8; 512];
    write!(crm, "GET /lead/{lead} HTTP/1.1\r\nHost: crm\r\n\r\n").unwrap();
    crm.read(&mut answer).unwrap()
}

fn serve(mut client: TcpStream, backlog: Arc<Backlog>) {
    let mut request = [0u8; 2048];
    let mut lead = 0;
    while matches!(client.read(&mut request), Ok(count) if count > 0) {
        lead += 1;
        backlog.submit(lead);
        if client.write_all(b"HTTP/1.1 202 Accepted\r\nContent-Length: 2\r\n\r\nok").is_err() {
            return;
        }
    }
}

fn main() {
    let words: Vec<String> = env::args().collect();
    let backlog = Arc::new(Backlog { leads: Mutex::new(VecDeque::new()), changed: Condvar::new(), most: 16 });
    let mut crm = TcpStream::connect(format!("127.0.0.1:{}", words[2])).unwrap();
    let mine = backlog.clone();
    thread::Builder::new()
        .name("exporter".into())
        .spawn(move || loop {
            let lead = mine.next();
            export_lead(&mut crm, lead);
        })
        .unwrap();
    let listener = TcpListener::bind(format!("127.0.0.1:{}", words[1])).unwrap();
    for client in listener.incoming().flatten() {
        let backlog = backlog.clone();
        thread::spawn(move || serve(client, backlog));
    }
}
