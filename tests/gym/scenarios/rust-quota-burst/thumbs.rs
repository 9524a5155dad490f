use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};

struct Image {
    pixels: Vec<u8>,
    width: usize,
}

impl Image {
    fn noise(width: usize, height: usize) -> Image {
        let mut state = 17u32;
        let pixels = (0..width * height)
            .map(|_| {
                state = state.wrapping_mul(1664525).wrapping_add(1013904223);
                (state >> 24) as u8
            })
            .collect();
        Image { pixels, width }
    }

    #[inline(never)]
    fn shrink(&self, by: usize) -> Vec<u8> {
        let rows = self.pixels.len() / self.width;
        let mut out = Vec::new();
        for y in (0..rows - by).step_by(by) {
            for x in (0..self.width - by).step_by(by) {
                let mut sum = 0u32;
                for dy in 0..by {
                    for dx in 0..by {
                        sum += u32::from(self.pixels[(y + dy) * self.width + x + dx]);
                    }
                }
                out.push((sum / (by * by) as u32) as u8);
            }
        }
        out
    }
}

fn serve(mut stream: TcpStream, image: &Image) {
    let mut request = [0u8; 2048];
    while let Ok(got) = stream.read(&mut request) {
        if got == 0 {
            return;
        }
        let mut size = 0;
        for by in 2..12 {
            size += image.shrink(by).len();
        }
        let body = size.to_string();
        let text = format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n{}", body.len(), body);
        if stream.write_all(text.as_bytes()).is_err() {
            return;
        }
    }
}

fn main() {
    let port = std::env::args().nth(1).unwrap();
    let listener = TcpListener::bind(format!("127.0.0.1:{port}")).unwrap();
    let image: &'static Image = Box::leak(Box::new(Image::noise(640, 400)));
    for (number, stream) in listener.incoming().flatten().enumerate() {
        std::thread::Builder::new()
            .name(format!("thumb-{number}"))
            .spawn(move || serve(stream, image))
            .unwrap();
    }
}
