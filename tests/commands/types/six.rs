//! Phases with one member of a slice or a box each; prints the share of CPU time of each.

use std::hint::black_box;
use std::time::Instant;

struct Inner {
    low: u64,
    deep: f64,
}

struct Item {
    next: usize,
    gap: [u64; 7],
    key: i64,
    inner: Inner,
    flags: u16,
    left: u32,
}

extern "C" {
    fn clock() -> i64;
}

fn now() -> f64 {
    unsafe { clock() as f64 / 1e6 }
}

#[inline(never)]
fn chase(items: &[Item], mut at: usize, times: usize) -> usize {
    for _ in 0..times {
        at = items[at].next;
    }
    at
}

#[inline(never)]
fn keys(items: &[Item], order: &[u32]) -> i64 {
    order.iter().fold(0, |sum, &i| sum ^ items[i as usize].key)
}

#[inline(never)]
fn deep(list: &[&Item]) -> f64 {
    list.iter().map(|item| item.inner.deep).sum()
}

#[inline(never)]
fn flags(list: &[Box<Item>], order: &[u32]) -> usize {
    let count = |&&i: &&u32| list[i as usize].flags & 1 == 1;
    order.iter().filter(count).count()
}

#[inline(never)]
fn fill(items: &mut [Item], order: &[u32]) {
    for &i in order {
        items[i as usize].left = i;
    }
}

fn item(i: usize) -> Item {
    let inner = Inner { low: 0, deep: i as f64 };
    Item { next: 0, gap: [0; 7], key: i as i64, inner, flags: i as u16, left: 0 }
}

fn main() {
    let count = 1usize << 17;
    let mut items: Vec<Item> = (0..count).map(item).collect();
    let boxes: Vec<Box<Item>> = (0..count).map(|i| Box::new(item(i))).collect();
    let mut order: Vec<u32> = (0..count as u32).collect();
    let mut seed = 88172645463325252u64;
    for i in (1..count).rev() {
        seed ^= seed << 13;
        seed ^= seed >> 7;
        seed ^= seed << 17;
        order.swap(i, (seed % i as u64) as usize);
    }
    for i in 0..count {
        items[order[i] as usize].next = order[(i + 1) % count] as usize;
    }
    let mut spent = [0f64; 5];
    let mut at = 0;
    let start = Instant::now();
    while start.elapsed().as_secs_f64() < 4.0 {
        let mut times = [now(); 6];
        at = black_box(chase(&items, at, count / 4));
        times[1] = now();
        for _ in 0..4 {
            black_box(keys(&items, &order));
        }
        times[2] = now();
        for _ in 0..4 {
            fill(&mut items, &order);
        }
        times[3] = now();
        for _ in 0..4 {
            black_box(flags(&boxes, &order));
        }
        let list: Vec<&Item> = order.iter().map(|&i| &items[i as usize]).collect();
        times[4] = now();
        for _ in 0..4 {
            black_box(deep(&list));
        }
        times[5] = now();
        for i in 0..5 {
            spent[i] += times[i + 1] - times[i];
        }
    }
    let rest = items.iter().map(|item| item.gap[0] + item.inner.low + u64::from(item.left));
    black_box(rest.sum::<u64>());
    let total: f64 = spent.iter().sum();
    for (name, spent) in ["next", "key", "left", "flags", "inner.deep"].iter().zip(spent) {
        println!("phase {name} {:.4}", spent / total);
    }
}
